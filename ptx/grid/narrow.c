/* Purpose: compare index tiles in 32 bits. An index is a number that all lanes of a tile share, in 64 bits, and a small
 * number of the lane's own. The shared parts of both sides are subtracted once, as scalars, and limited to 30 bits,
 * which changes no comparison with numbers that are smaller still; the lanes' own parts are compared. A GPU computes
 * with 64 bits in two steps, and keeps them in two registers.
 *
 * Before:
 *     func phase tile @k.0(%y: tensor<bool, 1, out> {noalias}, %begin: i64, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 32} : i64
 *       %N = dim %y {axis = 0} : i64
 *       %x = iota {axis = 0} : i64[32]
 *       %s = splat %N : i64[32]
 *       %z = lt %x, %s : bool[32]
 *       store_tile %y, %z, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%y: tensor<bool, 1, out> {noalias}, %begin: i64, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 32} : i64
 *       %N = dim %y {axis = 0} : i64
 *       %x = iota {axis = 0} : i64[32]
 *       %s = splat %N : i64[32]
 *       %0 = iota {axis = 0} : i32[32]
 *       %1 = const {value = -1073741824} : i64
 *       %2 = const {value = 1073741824} : i64
 *       %3 = max %N, %1 : i64
 *       %4 = min %3, %2 : i64
 *       %5 = convert %4 : i32
 *       %6 = splat %5 : i32[32]
 *       %z = lt %0, %6 : bool[32]
 *       store_tile %y, %z, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * Needs: gpu-whole, which compares the sums of both sides. Keeps: tile form. Cost: linear. */
#include "lang/index/index.h"
#include "lang/ir/build.h"
#include "ptx/passes.h"

/* Shared parts are less, so that their sums do not wrap. What is limited is more than what lanes have of their own, and
 * the sum of both is an i32. */
#define MOST_SHARED (INT64_C(1) << 50)
#define MOST_LIMITED (INT64_C(1) << 30)
#define MOST_OWN (INT64_C(1) << 29)

enum { MOST_DEPTH = 16 };

/* value = own + shared */
typedef struct Part {
    TileValue *own;    /* i32, of the value's shape; NULL: 0 */
    TileValue *shared; /* i64; NULL: 0 */
} Part;

typedef struct Narrow {
    TileIndices *indices;
    TileBuilder b;
} Narrow;

static bool is_bounded(Narrow *narrow, const TileValue *scalar) {
    TileIndexRange range = tile_index_range(narrow->indices, scalar);
    return range.lo > -MOST_SHARED && range.hi < MOST_SHARED;
}

/* ---- can the value be split? ---- */

/* Adds to *most what the lanes' own part is less than. */
static bool splits(Narrow *narrow, const TileValue *value, unsigned depth, int64_t *most) {
    const TileOp *op = value->op;
    int64_t constant;
    if (!op || !depth || value->type->scalar != TILE_I64 || !tile_type_is_tile(value->type)) return false;
    switch ((TileOpId)op->id) {
    case TILE_OP_IOTA:
        *most += value->type->extent[tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0)];
        return *most < MOST_OWN;
    case TILE_OP_CONST: return tile_value_integer(value, &constant) && is_bounded(narrow, value);
    case TILE_OP_SPLAT: return is_bounded(narrow, tile_op_operand(op, 0));
    case TILE_OP_ADD:
    case TILE_OP_SUB:
        return splits(narrow, tile_op_operand(op, 0), depth - 1, most) &&
               splits(narrow, tile_op_operand(op, 1), depth - 1, most);
    case TILE_OP_RESHAPE:
    case TILE_OP_BROADCAST: return splits(narrow, tile_op_operand(op, 0), depth - 1, most);
    default: return false;
    }
}

/* ---- its parts ---- */

static TileValue *combine(Narrow *narrow, TileOpId id, TileValue *x, TileValue *y) {
    if (!y) return x;
    if (x) return tile_build_binary(&narrow->b, id, x, y);
    return id == TILE_OP_SUB ? tile_build_unary(&narrow->b, TILE_OP_NEG, y) : y;
}

static TileValue *reshape(Narrow *narrow, const TileOp *op, TileValue *own) {
    const TileType *type = op->results[0].type;
    if (!own) return NULL;
    if (op->id == TILE_OP_BROADCAST) return tile_build_broadcast(&narrow->b, own, type->extent);
    return tile_build_reshape(&narrow->b, own, type->rank, type->extent);
}

static const TileType *in_words(const TileOp *op) {
    return tile_type_with_scalar(tile_op_func(op)->module->context, op->results[0].type, TILE_I32);
}

/* Requires `splits`. */
static Part split(Narrow *narrow, const TileValue *value) {
    const TileOp *op = value->op;
    int64_t constant;
    if (op->id == TILE_OP_IOTA)
        return (Part){.own = tile_build_iota(&narrow->b, in_words(op), tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0))};
    if (op->id == TILE_OP_SPLAT) return (Part){.shared = tile_op_operand(op, 0)};
    if (tile_value_integer(value, &constant)) return (Part){.shared = tile_build_i64(&narrow->b, constant)};
    Part x = split(narrow, tile_op_operand(op, 0)), y;
    if (op->id != TILE_OP_ADD && op->id != TILE_OP_SUB)
        return (Part){.own = reshape(narrow, op, x.own), .shared = x.shared};
    y = split(narrow, tile_op_operand(op, 1));
    return (Part){.own = combine(narrow, (TileOpId)op->id, x.own, y.own),
                  .shared = combine(narrow, (TileOpId)op->id, x.shared, y.shared)};
}

/* The scalar as i32, limited. */
static TileValue *limit(Narrow *narrow, TileValue *shared) {
    TileValue *least = tile_build_i64(&narrow->b, -MOST_LIMITED), *most = tile_build_i64(&narrow->b, MOST_LIMITED);
    shared = tile_build_binary(&narrow->b, TILE_OP_MAX, shared, least);
    shared = tile_build_binary(&narrow->b, TILE_OP_MIN, shared, most);
    return tile_build_convert(&narrow->b, shared, TILE_I32);
}

/* Adds to fewer lanes where the tile is a broadcast. */
static TileValue *add_scalar(Narrow *narrow, TileValue *own, TileValue *scalar, const TileType *type) {
    if (!own) return tile_build_splat(&narrow->b, scalar, type);
    if (tile_op_is(own->op, TILE_OP_BROADCAST)) {
        TileValue *inner = tile_op_operand(own->op, 0);
        return tile_build_broadcast(&narrow->b, add_scalar(narrow, inner, scalar, inner->type), type->extent);
    }
    return tile_build_binary(&narrow->b, TILE_OP_ADD, own, tile_build_splat(&narrow->b, scalar, type));
}

static bool narrow_comparison(Narrow *narrow, TileOp *op) {
    TileValue *x = tile_op_operand(op, 0), *y = tile_op_operand(op, 1);
    int64_t most = 0; /* of both sides */
    if (!splits(narrow, x, MOST_DEPTH, &most) || !splits(narrow, y, MOST_DEPTH, &most)) return false;
    TileContext *context = tile_op_func(op)->module->context;
    const TileType *words = tile_type_with_scalar(context, x->type, TILE_I32);
    Part left = split(narrow, x), right = split(narrow, y);
    if (!left.own) left.own = tile_build_integer(&narrow->b, words, 0);
    TileValue *shared = combine(narrow, TILE_OP_SUB, right.shared, left.shared);
    if (shared) right.own = add_scalar(narrow, right.own, limit(narrow, shared), words);
    if (!right.own) right.own = tile_build_integer(&narrow->b, words, 0);
    if (narrow->b.error) return false;
    tile_op_set_operand(op, 0, left.own);
    tile_op_set_operand(op, 1, right.own);
    return true;
}

static bool compares(const TileOp *op) {
    switch (op->id) {
    case TILE_OP_EQ:
    case TILE_OP_NE:
    case TILE_OP_LT:
    case TILE_OP_LE:
    case TILE_OP_GT:
    case TILE_OP_GE: return true;
    }
    return false;
}

static bool walk(Narrow *narrow, TilePassContext *context, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->region_count; i++) changed |= walk(narrow, context, &op->regions[i]);
        if (!compares(op)) continue;
        const char *error = narrow->b.error;
        narrow->b = tile_builder_before(context->module, op);
        narrow->b.error = error;
        narrow->b.location = op->location;
        changed |= narrow_comparison(narrow, op);
    }
    return changed;
}

TileResult tile_pass_gpu_narrow(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    Narrow narrow = {.indices = tile_pass_indices(context, func)};
    bool changed = walk(&narrow, context, &func->body);
    if (narrow.b.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-narrow: %s", narrow.b.error);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
