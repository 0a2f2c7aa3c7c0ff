/* Purpose: compare index tiles in 32 bits. An index is a number that all lanes of a tile share, in 64 bits, and a small
 * number of the lane's own. The shared parts of both sides are subtracted once, as scalars, and limited to 30 bits,
 * which changes no comparison with numbers that are smaller still; the lanes' own parts are compared. Whether both sides are equal can be said
 * of any shared parts, others have to be bounded, so that nothing wraps. A GPU computes with 64 bits in two steps, and keeps them in two registers.
 *
 * A tile whose numbers are known to be small is the lanes' own part, however it is computed.
 *
 * Quotients and remainders by a number that all lanes share are computed in 32 bits, too. The shared part is divided once, as a
 * scalar. Its remainder and a lane's own part are a number of 31 bits, of which the upper half of the product with
 * (2**32 - 1) / divisor is the quotient or one less. Where the divisor is below 1 or above 2**30, or the sum might wrap, which one
 * test says for a whole program, the division is what it was. By a constant, of a number whose shared part is known to be small, words are divided
 * without a test, and by a power of two they are shifted.
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
    TileArena *arena;
    TileBuilder b;
} Narrow;

static bool is_bounded(Narrow *narrow, const TileValue *scalar) {
    TileIndexRange range = tile_index_range(narrow->indices, scalar);
    return range.lo > -MOST_SHARED && range.hi < MOST_SHARED;
}

/* ---- can the value be split? ---- */

/* Is the value a small number, however it is computed? */
static bool is_own(Narrow *narrow, const TileValue *value, int64_t *most) {
    TileIndexRange range = tile_index_range(narrow->indices, value);
    if (range.lo < 0 || range.hi >= MOST_OWN) return false;
    *most += range.hi + 1;
    return *most < MOST_OWN;
}

/* Adds to *most what the lanes' own part is less than. `may_wrap`: the shared part may be any number, modulo 2**64. */
static bool splits(Narrow *narrow, const TileValue *value, unsigned depth, bool may_wrap, int64_t *most) {
    const TileOp *op = value->op;
    int64_t constant;
    if (!op || !depth || value->type->scalar != TILE_I64 || !tile_type_is_tile(value->type)) return false;
    switch ((TileOpId)op->id) {
    case TILE_OP_IOTA:
        *most += value->type->extent[tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0)];
        return *most < MOST_OWN;
    case TILE_OP_CONST: return tile_value_integer(value, &constant) && (may_wrap || is_bounded(narrow, value));
    case TILE_OP_SPLAT: return may_wrap || is_bounded(narrow, tile_op_operand(op, 0));
    case TILE_OP_ADD:
    case TILE_OP_SUB:
        return splits(narrow, tile_op_operand(op, 0), depth - 1, may_wrap, most) &&
               splits(narrow, tile_op_operand(op, 1), depth - 1, may_wrap, most);
    case TILE_OP_RESHAPE:
    case TILE_OP_BROADCAST: return splits(narrow, tile_op_operand(op, 0), depth - 1, may_wrap, most);
    default: return is_own(narrow, value, most);
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
    bool linear = op->id == TILE_OP_ADD || op->id == TILE_OP_SUB || op->id == TILE_OP_RESHAPE || op->id == TILE_OP_BROADCAST;
    if (!linear) {
        tile_index_use(narrow->indices, tile_index_range(narrow->indices, value).because);
        return (Part){.own = tile_build_convert(&narrow->b, (TileValue *)value, TILE_I32)};
    }
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
    bool same = op->id == TILE_OP_EQ || op->id == TILE_OP_NE; /* modulo 2**64 what all lanes share differs by as much as lanes' own parts do */
    if (!splits(narrow, x, MOST_DEPTH, same, &most) || !splits(narrow, y, MOST_DEPTH, same, &most)) return false;
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

/* ---- quotients ---- */

typedef struct Division {
    TileOp *op;
    TileValue *own, *shared, *divisor; /* u32 of the op's shape, below 2**30; i64; i64 */
    const TileType *words;
} Division;

static TileValue *with_lanes(TileBuilder *b, const Division *division, TileValue *scalar) {
    return tile_build_splat(b, tile_build_convert(b, scalar, TILE_U32), division->words);
}

/* Requires 1 <= divisor <= 2**30, and that the shared part and a lane's own one have a sum that does not wrap. The remainder of t with the
 * estimated quotient is less than twice the divisor. */
static TileValue *divide_in_words(TileBuilder *b, const Division *division) {
    TileValue *whole = tile_build_binary(b, TILE_OP_DIV, division->shared, division->divisor);
    TileValue *rest = tile_build_binary(b, TILE_OP_SUB, division->shared, tile_build_binary(b, TILE_OP_MUL, whole, division->divisor));
    TileValue *by = with_lanes(b, division, division->divisor), *word = tile_build_convert(b, division->divisor, TILE_U32);
    TileValue *inverse = tile_build_binary(b, TILE_OP_DIV, tile_build_integer(b, word->type, UINT32_MAX), word);
    TileValue *t = tile_build_binary(b, TILE_OP_ADD, division->own, with_lanes(b, division, rest));
    TileValue *quotient = tile_build_binary(b, TILE_OP_MULHI, t, tile_build_splat(b, inverse, division->words));
    TileValue *remainder = tile_build_binary(b, TILE_OP_SUB, t, tile_build_binary(b, TILE_OP_MUL, quotient, by));
    TileValue *less = tile_build_binary(b, TILE_OP_SUB, remainder, by);
    if (division->op->id == TILE_OP_REM) return tile_build_convert(b, tile_build_binary(b, TILE_OP_MIN, remainder, less), TILE_I64);
    TileValue *more = tile_build_binary(b, TILE_OP_ADD, quotient, tile_build_integer(b, division->words, 1));
    TileValue *over = tile_build_binary(b, TILE_OP_GE, remainder, by);
    quotient = tile_build_convert(b, tile_build_ternary(b, TILE_OP_SELECT, over, more, quotient), TILE_I64);
    return tile_build_binary(b, TILE_OP_ADD, quotient, tile_build_splat(b, whole, quotient->type));
}

/* By a constant: the back end knows how. The shared part's remainder is added to a lane's own part. */
static TileValue *divide_by_constant(TileBuilder *b, const Division *division, int64_t divisor, bool divides) {
    TileValue *t = division->own;
    if (!divides) {
        TileValue *rest = tile_build_binary(b, TILE_OP_REM, division->shared, division->divisor);
        t = tile_build_binary(b, TILE_OP_ADD, t, with_lanes(b, division, rest));
    }
    bool power = (divisor & (divisor - 1)) == 0, remainder = division->op->id == TILE_OP_REM;
    int64_t number = !power ? divisor : remainder ? divisor - 1 : __builtin_ctzll((uint64_t)divisor);
    TileOpId id = !power ? (TileOpId)division->op->id : remainder ? TILE_OP_AND : TILE_OP_SHR;
    TileValue *result = tile_build_binary(b, id, t, tile_build_integer(b, division->words, number));
    result = tile_build_convert(b, result, TILE_I64);
    if (remainder) return result;
    TileValue *whole = tile_build_binary(b, TILE_OP_DIV, division->shared, division->divisor);
    return tile_build_binary(b, TILE_OP_ADD, result, tile_build_splat(b, whole, result->type));
}

/* Both bounds of the divisor, and that no lane's sum wraps. */
static TileValue *fits_words(TileBuilder *b, const Division *division) {
    TileValue *least = tile_build_binary(b, TILE_OP_GE, division->divisor, tile_build_i64(b, 1));
    TileValue *most = tile_build_binary(b, TILE_OP_LE, division->divisor, tile_build_i64(b, MOST_LIMITED));
    TileValue *apart = tile_build_binary(b, TILE_OP_LE, division->shared, tile_build_i64(b, INT64_MAX - MOST_LIMITED));
    return tile_build_binary(b, TILE_OP_AND, tile_build_binary(b, TILE_OP_AND, least, most), apart);
}

/* A number that all lanes share; NULL: it is not known to be one. */
static TileValue *shared_divisor(Narrow *narrow, const TileValue *value) {
    int64_t constant;
    if (tile_op_is(value->op, TILE_OP_SPLAT)) return tile_op_operand(value->op, 0);
    return tile_value_integer(value, &constant) ? tile_build_i64(&narrow->b, constant) : NULL;
}

static bool narrow_quotient(Narrow *narrow, TileOp *op) {
    TileModule *module = tile_op_func(op)->module;
    TileValue *x = tile_op_operand(op, 0);
    int64_t most = 0;
    if (!splits(narrow, x, MOST_DEPTH, true, &most) || !most) return false;
    TileValue *divisor = shared_divisor(narrow, tile_op_operand(op, 1));
    if (!divisor) return false;
    Part part = split(narrow, x);
    const TileType *type = op->results[0].type;
    Division division = {.op = op, .divisor = divisor, .words = tile_type_with_scalar(module->context, type, TILE_U32)};
    division.shared = part.shared ? part.shared : tile_build_i64(&narrow->b, 0);
    if (tile_index_range(narrow->indices, part.own).lo < 0) {
        part.own = tile_build_binary(&narrow->b, TILE_OP_ADD, part.own, tile_build_integer(&narrow->b, part.own->type, most));
        division.shared = tile_build_binary(&narrow->b, TILE_OP_SUB, division.shared, tile_build_i64(&narrow->b, most));
    }
    division.own = tile_build_bitcast(&narrow->b, part.own, TILE_U32);
    int64_t constant;
    bool by_constant = tile_value_integer(divisor, &constant) && constant >= 1 && constant <= MOST_LIMITED;
    if (by_constant && is_bounded(narrow, division.shared)) {
        TileIndexRange range = tile_index_range(narrow->indices, division.shared);
        tile_index_use(narrow->indices, range.because);
        tile_value_replace(&op->results[0], divide_by_constant(&narrow->b, &division, constant, range.multiple % constant == 0));
        tile_op_erase(op);
        return true;
    }
    TileOp *branch = tile_build_if(&narrow->b, fits_words(&narrow->b, &division), &type, 1);
    TileBuilder words = tile_builder_at_end(module, &branch->regions[0]), otherwise = tile_builder_at_end(module, &branch->regions[1]);
    TileMap map;
    words.location = otherwise.location = op->location;
    TileValue *result = by_constant ? divide_by_constant(&words, &division, constant, false) : divide_in_words(&words, &division);
    tile_build_end(&words, TILE_OP_YIELD, &result, 1);
    tile_map_init(&map, narrow->arena);
    tile_builder_insert(&otherwise, tile_op_clone(module, op, &map));
    result = &otherwise.block->last->results[0];
    tile_build_end(&otherwise, TILE_OP_YIELD, &result, 1);
    if (words.error || otherwise.error) narrow->b.error = words.error ? words.error : otherwise.error;
    tile_value_replace(&op->results[0], &branch->results[0]);
    tile_op_erase(op);
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
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) changed |= walk(narrow, context, &op->regions[i]);
        bool divides = (op->id == TILE_OP_DIV || op->id == TILE_OP_REM) && op->results[0].type->scalar == TILE_I64;
        if (!compares(op) && !divides) continue;
        const char *error = narrow->b.error;
        narrow->b = tile_builder_before(context->module, op);
        narrow->b.error = error;
        narrow->b.location = op->location;
        changed |= divides ? narrow_quotient(narrow, op) : narrow_comparison(narrow, op);
    }
    return changed;
}

TileResult tile_pass_gpu_narrow(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    Narrow narrow = {.indices = tile_pass_indices(context, func), .arena = context->scratch};
    bool changed = walk(&narrow, context, &func->body);
    if (narrow.b.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-narrow: %s", narrow.b.error);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
