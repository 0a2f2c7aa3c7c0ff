/* Purpose: find the place of a line's greatest or least element by comparing with it. The element itself is reduced first, as one
 * number; then the least place of those that are equal, of 32 bits. Reduced together, each step of the tree compares two elements, both
 * ways and with themselves, and two places of 64 bits, and lanes exchange three words. Mostly the element is wanted too, and then is
 * reduced once.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, in> {noalias}, %y: tensor<i64, 1, out> {noalias}, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 128} : i64
 *       %i = iota {axis = 0} : i64[128]
 *       %v = load_tile %x, %zero, %one, %zero, %n {access = [range]} : f32[128]
 *       %at = arg_reduce %v, %i {axis = 0, kind = max} : i64
 *       store_tile %y, %at, %zero {access = [index]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 1, in> {noalias}, %y: tensor<i64, 1, out> {noalias}, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 128} : i64
 *       %i = iota {axis = 0} : i64[128]
 *       %v = load_tile %x, %zero, %one, %zero, %n {access = [range]} : f32[128]
 *       %0 = reduce %v {axis = 0, kind = max} : f32
 *       %1 = splat %0 : f32[128]
 *       %2 = eq %v, %1 : bool[128]
 *       %3 = isnan %v : bool[128]
 *       %4 = or %2, %3 : bool[128]
 *       %5 = const {value = 2147483647} : i32[128]
 *       %6 = iota {axis = 0} : i32[128]
 *       %7 = select %4, %6, %5 : i32[128]
 *       %8 = reduce %7 {axis = 0, kind = min} : i32
 *       %at = convert %8 : i64
 *       store_tile %y, %at, %zero {access = [index]}
 *       return
 *     }
 * Needs: nothing. Keeps: tile form, and all bits. Cost: linear. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"

enum { MOST_DEPTH = 8, NO_PLACE = INT32_MAX };

/* ---- which places ---- */

static bool is_no_place(const TileValue *value) {
    return tile_value_is_integer(value, INT64_MAX);
}

/* Is it the place of each element along the axis, or of some, and else greater than all? */
static bool numbers_lanes(const TileValue *index, int64_t axis, unsigned depth) {
    const TileOp *op = index->op;
    if (!op || !depth) return false;
    if (op->id == TILE_OP_IOTA) return tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) == axis;
    if (op->id == TILE_OP_FILL)
        return is_no_place(tile_op_operand(op, 1)) && numbers_lanes(tile_op_operand(op, 0), axis, depth - 1);
    return op->id == TILE_OP_SELECT && is_no_place(tile_op_named(op, TILE_OPERAND_Y)) &&
           numbers_lanes(tile_op_named(op, TILE_OPERAND_X), axis, depth - 1);
}

/* ---- the places of those that are equal ---- */

/* The element that each one is compared with, in the shape of the tile. */
static TileValue *spread(TileBuilder *b, TileValue *best, const TileType *tile, int64_t axis) {
    int64_t extent[TILE_MAX_TILE_RANK];
    if (tile->rank == 1) return tile_build_splat(b, best, tile);
    for (unsigned a = 0; a < tile->rank; a++) extent[a] = a == (unsigned)axis ? 1 : tile->extent[a];
    return tile_build_broadcast(b, tile_build_reshape(b, best, tile->rank, extent), tile->extent);
}

/* Where it is the best one. NaN is before all others, and equal to nothing. */
static TileValue *find_best(TileBuilder *b, TileValue *tile, TileValue *best, int64_t axis) {
    TileValue *equal = tile_build_binary(b, TILE_OP_EQ, tile, spread(b, best, tile->type, axis));
    if (!tile_scalar_is_float(tile->type->scalar)) return equal;
    return tile_build_binary(b, TILE_OP_OR, equal, tile_build_unary(b, TILE_OP_ISNAN, tile));
}

/* As `index` says, in 32 bits, of the best ones. Requires `numbers_lanes`. */
static TileValue *number_best(TileBuilder *b, const TileValue *index, TileValue *best, const TileType *words) {
    const TileOp *op = index->op;
    TileValue *none = tile_build_integer(b, words, NO_PLACE);
    if (op->id == TILE_OP_IOTA)
        return tile_build_ternary(b, TILE_OP_SELECT, best, tile_build_iota(b, words, tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0)), none);
    if (op->id == TILE_OP_SELECT)
        return tile_build_ternary(b, TILE_OP_SELECT, tile_op_named(op, TILE_OPERAND_CONDITION),
                                  number_best(b, tile_op_named(op, TILE_OPERAND_X), best, words), none);
    TileValue *inner = number_best(b, tile_op_operand(op, 0), best, words), *operands[2 + 2 * TILE_MAX_TILE_RANK];
    operands[0] = inner;
    operands[1] = tile_build_integer(b, tile_type_scalar(b->module->context, TILE_I32), NO_PLACE);
    for (unsigned i = 2; i < op->operand_count; i++) operands[i] = tile_op_operand(op, i);
    return tile_op_result(tile_build_op(b, TILE_OP_FILL, operands, op->operand_count, op->attributes, op->attribute_count, NULL, 1), 0);
}

static void replace(TilePassContext *context, TileOp *op) {
    TileBuilder b = tile_builder_before(context->module, op);
    TileValue *tile = tile_op_operand(op, 0), *index = tile_op_operand(op, 1);
    int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    TileName kind = (TileName)tile_op_integer(op, TILE_ATTRIBUTE_KIND, TILE_KIND_MAX);
    const TileType *words = tile_type_with_scalar(context->module->context, index->type, TILE_I32);
    TileValue *best = find_best(&b, tile, tile_build_reduce(&b, tile, kind, axis), axis);
    TileValue *place = tile_build_reduce(&b, number_best(&b, index, best, words), TILE_KIND_MIN, axis);
    TileValue *found = tile_build_convert(&b, place, TILE_I64);
    if (index->op->id != TILE_OP_IOTA) {
        TileValue *none = tile_build_binary(&b, TILE_OP_EQ, place, tile_build_integer(&b, place->type, NO_PLACE));
        found = tile_build_ternary(&b, TILE_OP_SELECT, none, tile_build_integer(&b, found->type, INT64_MAX), found);
    }
    found->name = op->results[0].name;
    tile_value_replace(&op->results[0], found);
    tile_op_erase(op);
}

/* ---- the pass ---- */

static bool visit(TilePassContext *context, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned r = 0; r < op->region_count; r++) changed |= visit(context, &op->regions[r]);
        if (op->id != TILE_OP_ARG_REDUCE) continue;
        if (!numbers_lanes(tile_op_operand(op, 1), tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), MOST_DEPTH)) {
            tile_pass_remark(context, op, TILE_DECISION_NOT_COMPARED, "the place", "it is given as numbers of 64 bits");
            continue;
        }
        replace(context, op);
        changed = true;
    }
    return changed;
}

TileResult tile_pass_gpu_places(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    return visit(context, &func->body) ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
