/* Purpose: simplify integers by their ranges (lang/index/index.h): values with a single possible number become
 * constants, and min, max, rem, div and abs become one of their operands if the range decides it.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 1, in>, %y: tensor<f32, 1, out>) {
 *       %n = dim %x {axis = 0} : i64
 *       %seven = const {value = 7} : i64
 *       %eight = const {value = 8} : i64
 *       %above = add %n, %seven : i64
 *       %blocks = div %above, %eight : i64
 *       grid %blocks (%p: i64) {
 *         %i = mul %p, %eight : i64
 *         %zero = const {value = 0} : i64
 *         %one = const {value = 1} : i64
 *         %left = sub %n, %i : i64
 *         %some = max %left, %zero : i64
 *         %hi = min %some, %eight : i64
 *         %v = load_tile %x, %i, %one, %zero, %hi {access = [range]} : f32[8]
 *         store_tile %y, %v, %i, %one, %zero, %hi {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 1, in>, %y: tensor<f32, 1, out>) {
 *       %n = dim %x {axis = 0} : i64
 *       %seven = const {value = 7} : i64
 *       %eight = const {value = 8} : i64
 *       %above = add %n, %seven : i64
 *       %blocks = div %above, %eight : i64
 *       grid %blocks (%p: i64) {
 *         %i = mul %p, %eight : i64
 *         %zero = const {value = 0} : i64
 *         %one = const {value = 1} : i64
 *         %left = sub %n, %i : i64
 *         %hi = min %left, %eight : i64
 *         %v = load_tile %x, %i, %one, %zero, %hi {access = [range]} : f32[8]
 *         store_tile %y, %v, %i, %one, %zero, %hi {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: canonical form, to recognise bounds. Keeps: every value; records the parameter facts that it used.
 * Cost: linear, a few queries for each integer op. */
#include "lang/ir/build.h"
#include "lang/index/index.h"
#include "lowering/pass.h"

typedef struct Application {
    TilePassContext *context;
    TileIndices *facts;
    bool changed;
} Application;

/* An operand that the op always equals, and the facts that this depends on. */
static TileValue *decided_operand(TileIndices *facts, const TileOp *op, uint64_t *because) {
    TileValue *x = tile_op_operand(op, 0), *y = op->operand_count == 2 ? tile_op_operand(op, 1) : NULL;
    TileIndexRange a, b, d;
    switch (op->id) {
    case TILE_OP_MIN:
    case TILE_OP_MAX:
        d = tile_index_difference(facts, x, y);
        *because = d.because;
        if (d.lo >= 0) return op->id == TILE_OP_MAX ? x : y;
        return d.hi <= 0 ? (op->id == TILE_OP_MAX ? y : x) : NULL;
    case TILE_OP_REM:
        a = tile_index_range(facts, x);
        b = tile_index_range(facts, y);
        *because = a.because | b.because;
        return a.lo >= 0 && a.hi < b.lo ? x : NULL;
    case TILE_OP_ABS:
        a = tile_index_range(facts, x);
        *because = a.because;
        return a.lo >= 0 ? x : NULL;
    default: return NULL;
    }
}

/* x * c / c is x if the product does not wrap; only for the type of indices. */
static TileValue *undone_product(TileIndices *facts, const TileOp *op, uint64_t *because) {
    const TileOp *mul = tile_value_def(tile_op_operand(op, 0), TILE_OP_MUL);
    int64_t factor, divisor;
    if (op->id != TILE_OP_DIV || op->results[0].type->scalar != TILE_I64 || !mul ||
        !tile_value_integer(tile_op_operand(mul, 1), &factor) ||
        !tile_value_integer(tile_op_operand(op, 1), &divisor) || factor != divisor || factor <= 0)
        return NULL;
    TileIndexRange fact = tile_index_range(facts, tile_op_operand(mul, 0));
    *because = fact.because;
    return fact.lo >= INT64_MIN / factor && fact.hi <= INT64_MAX / factor ? tile_op_operand(mul, 0) : NULL;
}

/* Does the comparison hold between all numbers of the ranges? 1: it does, 0: between none, -1: between some. */
static int compare_ranges(TileOpId id, TileIndexRange x, TileIndexRange y) {
    switch ((int)id) {
    case TILE_OP_LT: return x.hi < y.lo ? 1 : x.lo >= y.hi ? 0 : -1;
    case TILE_OP_LE: return x.hi <= y.lo ? 1 : x.lo > y.hi ? 0 : -1;
    case TILE_OP_GT: return compare_ranges(TILE_OP_LT, y, x);
    case TILE_OP_GE: return compare_ranges(TILE_OP_LE, y, x);
    default: return -1;
    }
}

/* A comparison that holds for all lanes inside of a fill's bounds, and for none of those that it fills, or the other way round, as of indices that
 * are -1 where a tile has no row: it says which lanes lie inside. */
static TileValue *decided_lanes(Application *application, TileOp *op, uint64_t *because) {
    TileIndices *facts = application->facts;
    const TileType *type = op->results[0].type;
    TileOp *fill = op->operand_count == 2 && tile_type_is_tile(type) ? tile_value_def(tile_op_operand(op, 0), TILE_OP_FILL) : NULL;
    if (!fill || type->scalar != TILE_BOOL) return NULL;
    TileIndexRange inside = tile_index_range(facts, tile_op_operand(fill, 0)), filling = tile_index_range(facts, tile_op_operand(fill, 1)),
                   other = tile_index_range(facts, tile_op_operand(op, 1));
    int within = compare_ranges((TileOpId)op->id, inside, other), outside = compare_ranges((TileOpId)op->id, filling, other);
    if (within < 0 || outside < 0 || within == outside) return NULL;
    TileBuilder b = tile_builder_before(application->context->module, op);
    TileMap map;
    tile_map_init(&map, application->context->scratch);
    tile_map_set(&map, tile_op_operand(fill, 0), tile_build_integer(&b, type, within));
    tile_map_set(&map, tile_op_operand(fill, 1), tile_build_integer(&b, tile_type_scalar(application->context->module->context, TILE_BOOL), outside));
    TileOp *lanes = tile_op_clone(application->context->module, fill, &map);
    lanes->results[0].type = type;
    lanes->results[0].name = op->results[0].name;
    tile_builder_insert(&b, lanes);
    *because = inside.because | filling.because | other.because;
    return &lanes->results[0];
}

static bool is_described(const TileType *type) {
    return type->kind != TILE_TYPE_TENSOR && type->kind != TILE_TYPE_POINTER && !tile_scalar_is_float(type->scalar) &&
           type->scalar != TILE_U64;
}

static void apply(TileOp *op, void *state) {
    Application *application = state;
    const TileOpInfo *info = tile_op_info((TileOpId)op->id);
    if (!(info->traits & TILE_TRAIT_PURE) || op->id == TILE_OP_CONST || op->result_count != 1 ||
        !is_described(op->results[0].type) || !tile_value_has_uses(op->results))
        return;
    uint64_t because = 0;
    TileValue *with = NULL;
    TileIndexRange fact = tile_index_range(application->facts, op->results);
    if (tile_index_is_constant(fact)) {
        TileBuilder builder = tile_builder_before(application->context->module, op);
        with = tile_build_integer(&builder, op->results[0].type, fact.lo);
        because = fact.because;
    } else if (info->class == TILE_CLASS_ELEMENTWISE && op->operand_count &&
               is_described(tile_op_operand(op, 0)->type)) {
        with = decided_operand(application->facts, op, &because);
        if (!with) with = undone_product(application->facts, op, &because);
        if (!with) with = decided_lanes(application, op, &because);
    }
    if (!with) return;
    tile_index_use(application->facts, because);
    tile_value_replace(op->results, with);
    tile_op_erase(op);
    application->changed = true;
}

TileResult tile_pass_facts(TilePassContext *context, TileFunc *func) {
    Application application = {context, tile_pass_indices(context, func), false};
    tile_block_walk(&func->body, apply, &application);
    return application.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
