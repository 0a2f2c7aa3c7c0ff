/* Purpose: gather positions that no tensor map copies: lanes divide their numbers, and what lies outside of the tensor is 0.
 *
 * Run: --passes=gpu-gather-positions,cse --target=sm_90a
 * Before:
 *     func phase tile @k.0(%x: tensor<f16, 3, in> {role = data, argument = 0}, %y: tensor<f16, 2, out> {role = data, argument = 1},
 *                          %begin: i64 {role = begin}, %end: i64 {role = end}) threads = 32 {
 *       %B = dim %x {axis = 0} : i64
 *       %Q = dim %y {axis = 0} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 8} : i64
 *       %t = load_tile %x, %zero, %one, %zero, %B, %begin, %one, %zero, %Q, %zero, %one, %zero, %n
 *           {access = [position, position, range]} : f16[8, 8]
 *       store_tile %y, %t, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f16, 3, in> {role = data, argument = 0}, %y: tensor<f16, 2, out> {role = data, argument = 1},
 *         %begin: i64 {role = begin}, %end: i64 {role = end}) threads = 32 {
 *       %B = dim %x {axis = 0} : i64
 *       %Q = dim %y {axis = 0} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 8} : i64
 *       %0 = iota {axis = 0} : i64[8]
 *       %1 = splat %begin : i64[8]
 *       %2 = add %0, %1 : i64[8]
 *       %3 = splat %Q : i64[8]
 *       %4 = rem %2, %3 : i64[8]
 *       %5 = div %2, %3 : i64[8]
 *       %6 = const {value = 0} : i64[8]
 *       %7 = ge %4, %6 : bool[8]
 *       %8 = dim %x {axis = 1} : i64
 *       %9 = splat %8 : i64[8]
 *       %10 = lt %4, %9 : bool[8]
 *       %11 = and %7, %10 : bool[8]
 *       %12 = ge %5, %6 : bool[8]
 *       %13 = splat %B : i64[8]
 *       %14 = lt %5, %13 : bool[8]
 *       %15 = and %12, %14 : bool[8]
 *       %16 = and %11, %15 : bool[8]
 *       %17 = reshape %16 : bool[8, 1]
 *       %18 = broadcast %17 : bool[8, 8]
 *       %19 = const {value = 0.0} : f16
 *       %t = load_tile %x, %5, %4, %zero, %one, %zero, %n, %18, %19 {access = [gather, gather, range], parts = [mask, fill]} : f16[8, 8]
 *       store_tile %y, %t, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Needs: gpu-channels, behind which no load is copied any more. Keeps: tile form. Cost: linear. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/each.h"
#include "ptx/passes.h"

static TileValue *lanes_of(TileBuilder *b, TileOpId id, TileValue *lanes, TileValue *scalar) {
    return tile_build_binary(b, id, lanes, tile_build_splat(b, scalar, lanes->type));
}

static bool is_zero(const TileValue *value) { return tile_value_is_integer(value, 0); }

/* The index of each lane along a dimension of positions. `rest`: the numbers that it goes on by; then those of the dimension before. */
static TileValue *build_index(TileBuilder *b, const TileAccessIndex *position, bool first, TileValue **rest) {
    TileValue *number = is_zero(position->first) ? *rest : lanes_of(b, TILE_OP_ADD, *rest, position->first), *index = number;
    if (!first) {
        index = lanes_of(b, TILE_OP_REM, number, position->hi);
        *rest = lanes_of(b, TILE_OP_DIV, number, position->hi);
    }
    if (!tile_value_is_integer(position->step, 1)) index = lanes_of(b, TILE_OP_MUL, index, position->step);
    return is_zero(position->lo) ? index : lanes_of(b, TILE_OP_ADD, index, position->lo);
}

/* Does each lane's index lie in the tensor? */
static TileValue *build_inside(TileBuilder *b, const TileOp *load, unsigned d, TileValue *index) {
    TileValue *zero = tile_build_integer(b, index->type, 0), *begins = tile_build_binary(b, TILE_OP_GE, index, zero);
    return tile_build_binary(b, TILE_OP_AND, begins, lanes_of(b, TILE_OP_LT, index, tile_build_dim(b, tile_op_operand(load, 0), d)));
}

/* The mask of the lanes along an axis as one of the tile. */
static TileValue *build_mask(TileBuilder *b, TileValue *lanes, const TileType *tile, unsigned axis) {
    int64_t extents[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < tile->rank; i++) extents[i] = i == axis ? tile->extent[i] : 1;
    if (tile->rank == 1) return lanes;
    return tile_build_broadcast(b, tile_build_reshape(b, lanes, tile->rank, extents), tile->extent);
}

static bool has_positions(const TileOp *access) {
    const TileAttribute *kinds = tile_op_get(access, TILE_ATTRIBUTE_ACCESS);
    for (unsigned d = 0; d < kinds->count; d++)
        if (kinds->integers[d] == TILE_ACCESS_POSITION) return true;
    return false;
}

typedef struct Gathered {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank, axis;
    TileValue *index[TILE_MAX_TENSOR_RANK]; /* NULL: a dimension without positions */
    TileValue *inside;                      /* along the axis */
} Gathered;

static Gathered build_indices(TileBuilder *b, const TileOp *access, const TileType *tile) {
    Gathered made = {.rank = 0};
    unsigned first = 0;
    made.rank = tile_access_read(access, made.indices);
    while (made.indices[first].kind != TILE_ACCESS_POSITION) first++;
    made.axis = (unsigned)made.indices[first].axis;
    TileValue *rest = tile_build_iota(b, tile_type_tile(b->module->context, TILE_I64, 1, &tile->extent[made.axis]), 0);
    for (unsigned d = made.rank; d-- > 0;) {
        if (made.indices[d].kind != TILE_ACCESS_POSITION) continue;
        made.index[d] = build_index(b, &made.indices[d], d == first, &rest);
        TileValue *own = build_inside(b, access, d, made.index[d]);
        made.inside = made.inside ? tile_build_binary(b, TILE_OP_AND, made.inside, own) : own;
    }
    return made;
}

static bool try_access(TilePassContext *context, TileOp *access, const char **error) {
    (void)error;
    bool stored_by_map = access->id == TILE_OP_STORE_TILE && tile_op_get(access, TILE_ATTRIBUTE_TENSOR_MAP);
    if (stored_by_map || !has_positions(access)) return false;
    TileBuilder b = tile_builder_before(context->module, access);
    bool store = access->id == TILE_OP_STORE_TILE;
    const TileType *tile = store ? tile_op_named(access, TILE_OPERAND_VALUE)->type : access->results[0].type;
    TileValue *operands[4 + 4 * TILE_MAX_TENSOR_RANK] = {tile_op_operand(access, 0), tile_op_operand(access, 1)};
    int64_t kinds[TILE_MAX_TENSOR_RANK], parts[] = {TILE_PARTS_MASK, TILE_PARTS_FILL};
    unsigned count = tile_access_first(access);
    b.location = access->location;
    Gathered made = build_indices(&b, access, tile);
    for (unsigned d = 0; d < made.rank; d++) {
        kinds[d] = made.index[d] ? TILE_ACCESS_GATHER : made.indices[d].kind;
        unsigned own = made.index[d] ? 1 : tile_access_operands(kinds[d]);
        for (unsigned i = 0; i < own; i++) operands[count++] = made.index[d] ? made.index[d] : tile_op_operand(access, made.indices[d].operand + i);
    }
    operands[count++] = build_mask(&b, made.inside, tile, made.axis);
    if (!store) operands[count++] = tile_build_bits(&b, tile_type_scalar(context->module->context, tile->scalar), 0);
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_ACCESS, .count = made.rank, .integers = kinds},
                                  {.key = TILE_ATTRIBUTE_PARTS, .count = store ? 1 : 2, .integers = parts}};
    TileOp *op = tile_build_op(&b, (TileOpId)access->id, operands, count, attributes, 2, &tile, access->result_count);
    TileAttributeKey kept[] = {TILE_ATTRIBUTE_CACHE, TILE_ATTRIBUTE_BY_ROWS, TILE_ATTRIBUTE_APART};
    for (unsigned i = 0; i < sizeof kept / sizeof *kept; i++)
        if (tile_op_get(access, kept[i])) tile_op_set(context->module, op, *tile_op_get(access, kept[i]));
    if (!store) {
        op->results[0].name = access->results[0].name;
        tile_value_replace(&access->results[0], &op->results[0]);
    }
    tile_op_erase(access);
    return true;
}

TileResult tile_pass_gpu_gather_positions(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    TileResult loads = tile_try_each(context, func, TILE_OP_LOAD_TILE, try_access, "gpu-gather-positions");
    if (loads != TILE_RESULT_CHANGED && loads != TILE_RESULT_UNCHANGED) return loads;
    TileResult stores = tile_try_each(context, func, TILE_OP_STORE_TILE, try_access, "gpu-gather-positions");
    return stores == TILE_RESULT_UNCHANGED ? loads : stores;
}
