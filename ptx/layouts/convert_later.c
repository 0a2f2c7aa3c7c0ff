/* Purpose: compute before a conversion of layouts what more threads would compute behind it. A vector that a sum has left, one element or a
 * few in each thread, becomes part of a row or a column of a larger tile, of which each thread has many elements, and many threads the same ones: the square
 * root of 256 sums would be taken of 64 by each thread in place of 8. So an elementwise op that takes what is converted to a layout of which a thread has
 * more elements takes it as it was, with constants and splats of that layout, and its result is converted.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, inout>, %begin: i64, %end: i64) threads = 32 {
 *       layout 0 = [64] register 32 lane 1 2 4 8 16 warp block
 *       layout 1 = [64] register 1 2 4 8 16 32 lane 0 0 0 0 0 warp block
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %v = load_tile %x, %begin, %one, %zero, %n {access = [range]} : f32[64] layout 0
 *       %0 = convert_layout %v : f32[64] layout 1
 *       %least = const {value = 1.0} : f32[64] layout 1
 *       %1 = max %0, %least : f32[64] layout 1
 *       %2 = rsqrt %1 : f32[64] layout 1
 *       store_tile %x, %2, %begin, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 1, inout>, %begin: i64, %end: i64) threads = 32 {
 *       layout 0 = [64] register 32 lane 1 2 4 8 16 warp block
 *       layout 1 = [64] register 1 2 4 8 16 32 lane 0 0 0 0 0 warp block
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %v = load_tile %x, %begin, %one, %zero, %n {access = [range]} : f32[64] layout 0
 *       %0 = const {value = 1.0} : f32[64] layout 0
 *       %1 = max %v, %0 : f32[64] layout 0
 *       %2 = rsqrt %1 : f32[64] layout 0
 *       %3 = convert_layout %2 : f32[64] layout 1
 *       store_tile %x, %3, %begin, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * Run: --passes=gpu-convert-later,dce
 * Needs: gpu-rematerialise, which takes away the conversions of what is cheaper computed again. Keeps: tile form; each element's value. Cost: linear in
 * the conversions and the ops that follow them. */
#include "lang/ir/build.h"
#include "lang/layout/layout.h"
#include "lowering/each.h"
#include "ptx/passes.h"

enum { MOST_OPERANDS = 3 };

static bool is_same_everywhere(const TileValue *value) { return tile_value_def(value, TILE_OP_CONST) || tile_value_def(value, TILE_OP_SPLAT); }

/* The op that takes what is converted, if it alone does, and only beside what is the same in each layout; NULL: it stays behind the conversion. */
static TileOp *find_taker(const TileOp *convert) {
    const TileValue *converted = tile_op_result(convert, 0);
    if (!tile_value_has_one_use(converted)) return NULL;
    TileOp *taker = converted->first_use->user;
    const TileType *type = taker->result_count == 1 ? taker->results[0].type : NULL;
    bool elementwise = tile_op_info((TileOpId)taker->id)->class == TILE_CLASS_ELEMENTWISE && tile_op_is_pure(taker);
    if (!elementwise || taker->block != convert->block || taker->operand_count > MOST_OPERANDS || !type) return NULL;
    if (!tile_type_same_shape(type, converted->type) || tile_scalar_bits(type->scalar) > tile_scalar_bits(converted->type->scalar)) return NULL;
    for (unsigned i = 0; i < taker->operand_count; i++) {
        const TileValue *operand = tile_op_operand(taker, i);
        if (operand != converted && tile_type_is_tile(operand->type) && !is_same_everywhere(operand)) return NULL;
    }
    return taker;
}

static TileValue *in_layout(TileBuilder *b, const TileValue *value, const TileLayout *layout) {
    const TileType *type = tile_type_with_layout(b->module->context, value->type, layout);
    const TileOp *op = value->op;
    TileValue *operands[] = {op->operand_count ? tile_op_operand(op, 0) : NULL};
    return tile_op_result(tile_build_op(b, (TileOpId)op->id, operands, op->operand_count, op->attributes, op->attribute_count, &type, 1), 0);
}

/* One op after the other. */
static bool try_conversion(TilePassContext *context, TileOp *convert, const char **error) {
    TileValue *given = tile_op_operand(convert, 0), *converted = tile_op_result(convert, 0);
    const TileLayout *from = given->type->layout, *to = converted->type->layout;
    if (!from || !to || tile_layout_registers(from) >= tile_layout_registers(to)) return false;
    TileOp *taker = find_taker(convert);
    if (!taker) return false;
    TileBuilder b = tile_builder_before(context->module, taker);
    b.location = taker->location;
    const TileType *type = tile_type_with_layout(context->module->context, taker->results[0].type, from);
    TileValue *operands[MOST_OPERANDS];
    for (unsigned i = 0; i < taker->operand_count; i++) {
        TileValue *operand = tile_op_operand(taker, i);
        bool moved = operand == converted || !tile_type_is_tile(operand->type);
        operands[i] = operand == converted ? given : moved ? operand : in_layout(&b, operand, from);
    }
    TileOp *before = tile_build_op(&b, (TileOpId)taker->id, operands, taker->operand_count, taker->attributes, taker->attribute_count, &type, 1);
    TileOp *later = tile_build_op(&b, TILE_OP_CONVERT_LAYOUT, (TileValue *[]){tile_op_result(before, 0)}, 1, convert->attributes,
                                  convert->attribute_count, &taker->results[0].type, 1);
    tile_value_replace(&taker->results[0], tile_op_result(later, 0));
    tile_op_erase(taker);
    tile_op_erase(convert);
    if (b.error) *error = b.error;
    else try_conversion(context, later, error);
    return true;
}

TileResult tile_pass_gpu_convert_later(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    TileOps found = tile_find_each(&func->body, TILE_OP_CONVERT_LAYOUT, context->scratch);
    const char *error = NULL;
    bool changed = false;
    for (size_t i = 0; i < found.count && !error; i++) changed |= try_conversion(context, found.items[i], &error);
    if (error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-convert-later: %s", error);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
