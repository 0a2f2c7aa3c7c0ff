/* Purpose: let second operands that are computed on their way to wgmma pass through shared memory. Its instructions take an `a` from
 * registers, but not a `b`, which all warpgroups read. So all threads compute a part of it, in registers, put it into a slot,
 * and know that all have before they begin the product. While products of an iteration are under way, threads compute for the next
 * one, which is put into another slot (gpu_put_slots): a product has been waited for by all when its slot is filled
 * again, since between the two lies the barrier of another slot.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %end: i64) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %x = load_tile %a, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : f16[64, 64]
 *       %sum = for %zero, %end, %n, %acc : f32[64, 64] (%k: i64, %acc.1: f32[64, 64]) {
 *         %y = mul %x, %x : f16[64, 64]
 *         %z = permute %y {axes = [1, 0]} : f16[64, 64]
 *         %s = dot %x, %z, %acc.1 {instruction = wgmma} : f32[64, 64]
 *         %t = dot_wait %s {pending = 0} : f32[64, 64]
 *         yield %t
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %end: i64) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %x = load_tile %a, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : f16[64, 64]
 *       %0 = buffer {bytes = 16384, align = 1024, slots = 2} : ptr<shared, f16[64, 64], swizzle 128 panels>
 *       %1 = const {value = 0} : i64
 *       %sum, %2 = for %zero, %end, %n, %acc, %1 : f32[64, 64], i64 (%k: i64, %acc.1: f32[64, 64], %3: i64) {
 *         %y = mul %x, %x : f16[64, 64]
 *         %z = permute %y {axes = [1, 0]} : f16[64, 64]
 *         %4 = const {value = 1} : i64
 *         %5 = eq %3, %4 : bool
 *         %6 = const {value = 1} : i64
 *         %7 = add %3, %6 : i64
 *         %8 = const {value = 0} : i64
 *         %9 = select %5, %8, %7 : i64
 *         %10 = const {value = 8192} : i64
 *         %11 = mul %3, %10 : i64
 *         %12 = ptr_add %0, %11 : ptr<shared, f16[64, 64], swizzle 128 panels>
 *         put_tile %12, %y
 *         %13 = shared_tile %12 : f16[64, 64]
 *         %14 = permute %13 {axes = [1, 0]} : f16[64, 64]
 *         %s = dot %x, %14, %acc.1 {instruction = wgmma} : f32[64, 64]
 *         %t = dot_wait %s {pending = 0} : f32[64, 64]
 *         yield %t, %9
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Needs: gpu-warpgroups; behind all passes that move products within their loops. Keeps: tile form. Cost: linear. */
#include "lang/ir/operands.h"
#include "lowering/each.h"
#include "ptx/passes.h"
#include "ptx/pipeline/copies.h"
#include "ptx/pipeline/loop.h"
#include "ptx/target/map.h"

enum { OPERAND = 1 };

/* ---- slots ---- */

/* In front of all that the function's warps execute in partitions, or else of the loop's outermost op: others' buffers do not take
 * these bytes while products may read them. */
static TileOp *place_of_buffer(TileOp *loop) {
    TileOp *outermost = loop;
    while (outermost->block->op) outermost = outermost->block->op;
    return outermost;
}

/* Does the loop run several times in a program? Between programs there are barriers, where results pass through shared memory. */
static bool is_repeated(const TileOp *loop) {
    for (const TileOp *outer = loop->block->op; outer; outer = outer->block->op)
        if ((outer->id == TILE_OP_FOR && !tile_loop_is_of_programs(outer)) || outer->id == TILE_OP_WHILE) return true;
    return false;
}

/* The number of the iteration's slot, which the loop counts. Where it runs again, all have waited for its products by then. */
static TileValue *count_slots(TilePassContext *context, TileOp *loop, int64_t slots, TileBuilder *in_body, const char **error) {
    TileBuilder b = tile_builder_before(context->module, loop);
    b.location = loop->location;
    TileValue *first = tile_build_i64(&b, 0);
    if (is_repeated(loop)) gpu_build_plain(&b, TILE_OP_BARRIER);
    if (b.error) *error = b.error;
    if (b.error) return NULL;
    loop = gpu_loop_carry(context, loop, &first, 1);
    TileBlock *body = &loop->regions[0];
    TileValue *slot = body->arguments[body->argument_count - 1];
    TileValue *last = tile_build_binary(in_body, TILE_OP_EQ, slot, tile_build_i64(in_body, slots - 1));
    TileValue *more = tile_build_binary(in_body, TILE_OP_ADD, slot, tile_build_i64(in_body, 1));
    tile_op_add_operand(context->module, body->last, tile_build_ternary(in_body, TILE_OP_SELECT, last, tile_build_i64(in_body, 0), more));
    return slot;
}

/* ---- the operand ---- */

/* The fills between the product and what is put there, of its axes in place of the transposed tile's. */
static TileValue *fill_source(TileBuilder *b, TileValue *value, TileValue *source) {
    const TileOp *fill = tile_value_def(value, TILE_OP_FILL);
    if (!fill) return source;
    source = fill_source(b, tile_op_operand(fill, 0), source);
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    for (unsigned i = 0; i < axes->count && source; i++) {
        int64_t axis = 1 - axes->integers[i];
        TileAttribute one = {.key = TILE_ATTRIBUTE_AXES, .count = 1, .integers = &axis};
        TileValue *operands[] = {source, tile_op_named(fill, TILE_OPERAND_FILLING), tile_fill_lo(fill, i), tile_fill_hi(fill, i)};
        source = tile_op_result(tile_build_op(b, TILE_OP_FILL, operands, 4, &one, 1, &source->type, 1), 0);
    }
    return source;
}

static bool try_dot(TilePassContext *context, TileOp *dot, const char **error) {
    if (!gpu_dot_is_wgmma(dot) || !gpu_operand_is_computed(dot, OPERAND)) return false;
    TileOp *loop = dot->block->op;
    if (!loop || loop->id != TILE_OP_FOR) return false;
    bool permuted;
    int64_t slots = gpu_put_slots(dot);
    TileValue *source = gpu_put_source(dot, &permuted), *operand = tile_op_operand(dot, OPERAND);
    const TileType *place = gpu_panel_type(context->module->context, source->type);
    TileBuilder outside = tile_builder_before(context->module, place_of_buffer(loop)), b = tile_builder_before(context->module, dot);
    b.location = dot->location;
    if (permuted) source = fill_source(&b, operand, source);
    TileValue *buffer = gpu_build_buffer(&outside, place, gpu_shared_bytes(place), GPU_PANEL_ALIGN, slots);
    TileValue *slot = count_slots(context, loop, slots, &b, error);
    if (!slot) return false;
    TileValue *bytes = tile_build_i64(&b, gpu_shared_bytes(place));
    TileValue *at = tile_build_ptr_add(&b, buffer, tile_build_binary(&b, TILE_OP_MUL, slot, bytes));
    TileValue *put[] = {at, source};
    tile_build_op(&b, TILE_OP_PUT_TILE, put, 2, NULL, 0, NULL, 0);
    TileValue *tile = tile_op_result(tile_build_op(&b, TILE_OP_SHARED_TILE, &at, 1, NULL, 0, &source->type, 1), 0);
    if (permuted) tile = tile_build_permute(&b, tile, (const int64_t[]){1, 0});
    if (b.error || outside.error) *error = b.error ? b.error : outside.error;
    if (!tile) return false;
    tile_op_set_operand(dot, OPERAND, tile);
    return true;
}

TileResult tile_pass_gpu_puts(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    return tile_try_each(context, func, TILE_OP_DOT, try_dot, "gpu-puts");
}
