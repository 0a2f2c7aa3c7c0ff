/* Purpose: make one loop of loops that only go through the iterations of an inner one, whose operands of products are
 * copied ahead: over a window and over channels. Copies for the first channels of the next position then are in flight
 * during the products of this one, where each inner loop waited for its first copies; and what threads keep for
 * each of the loops is that of one.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 3, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out>
 *                          {noalias}, %begin: i64, %end: i64) threads = 64 {
 *       %S = dim %a {axis = 0} : i64
 *       %C = dim %a {axis = 2} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %sum = for %zero, %S, %one, %acc : f32[16, 16] (%j: i64, %acc.1: f32[16, 16]) {
 *         %w = add %begin, %j : i64
 *         %sum.1 = for %zero, %C, %n, %acc.1 : f32[16, 16] (%k: i64, %acc.2: f32[16, 16]) {
 *           %x = load_tile %a, %w, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [index, range, range]} : f16[16, 16]
 *           %y = load_tile %b, %k, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : f16[16, 16]
 *           %acc.3 = dot %x, %y, %acc.2 {instruction = mma} : f32[16, 16]
 *           yield %acc.3
 *         }
 *         yield %sum.1
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 3, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out>
 *                          {noalias}, %begin: i64, %end: i64) threads = 64 {
 *       %S = dim %a {axis = 0} : i64
 *       %C = dim %a {axis = 2} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %0 = max %S, %zero : i64
 *       %1 = max %C, %zero : i64
 *       %2 = const {value = 15} : i64
 *       %3 = add %1, %2 : i64
 *       %4 = bitcast %3 : u64
 *       %5 = const {value = 16} : u64
 *       %6 = div %4, %5 : u64
 *       %7 = bitcast %6 : i64
 *       %8 = mul %0, %7 : i64
 *       %9 = max %7, %one : i64
 *       %sum = for %zero, %8, %one, %acc : f32[16, 16] (%10: i64, %acc.1: f32[16, 16]) {
 *         %11 = bitcast %10 : u64
 *         %12 = bitcast %9 : u64
 *         %13 = div %11, %12 : u64
 *         %j = bitcast %13 : i64
 *         %14 = mul %j, %9 : i64
 *         %15 = sub %10, %14 : i64
 *         %k = mul %15, %n : i64
 *         %w = add %begin, %j : i64
 *         %x = load_tile %a, %w, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [index, range, range]} : f16[16, 16]
 *         %y = load_tile %b, %k, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : f16[16, 16]
 *         %acc.3 = dot %x, %y, %acc.1 {instruction = mma} : f32[16, 16]
 *         yield %acc.3
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Run: --passes=gpu-join-loops,canonicalise,cse,dce
 * Needs: gpu-threads and gpu-warpgroups, which choose the instruction. Keeps: tile form, and the order of all iterations.
 * Cost: linear; a division for each loop that is joined, in each iteration. */
#include "lang/ir/operands.h"
#include "lowering/nest.h"
#include "ptx/passes.h"
#include "ptx/pipeline/copies.h"

/* ---- which loops ---- */

static bool is_counted(const TileOp *op) {
    int64_t step;
    return op->id == TILE_OP_FOR && tile_value_integer(tile_op_named(op, TILE_OPERAND_STEP), &step) && step > 0;
}

/* What a joined loop can say of its iterations: that programs share them. */
static bool has_attributes_of(const TileOp *loop, const TileOp *outermost) {
    int64_t part = tile_op_integer(outermost, TILE_ATTRIBUTE_PART, 0);
    return loop->attribute_count == (part != 0) && tile_op_integer(loop, TILE_ATTRIBUTE_PART, 0) == part;
}

/* Are products computed in the loop by all warps, from loads that are copied to shared memory? Warps that copy for others run across the
 * ends of loops. Loops that compute with the sums of fused multiply-adds take long for an iteration: there it pays less than the registers
 * that it takes (gradients of attention in f32 took 1.1 times as long). */
static bool copies_ahead(TileOp *loop) {
    bool copies = false, uses = gpu_loops_use_sums(&loop->regions[0]);
    for (const TileOp *op = loop->regions[0].first; op; op = op->next) {
        if (op->id == TILE_OP_FOR || (op->id == TILE_OP_DOT && (gpu_dot_is_wgmma(op) || (uses && !gpu_dot_is_mma(op))))) return false;
        copies |= op->id == TILE_OP_LOAD_TILE && gpu_load_is_copied(op);
    }
    return copies;
}

/* Are all bounds known before the nest? */
static bool has_fixed_bounds(const TileOp *loop, const TileOp *outermost) {
    return tile_value_outside(tile_op_operand(loop, 0), outermost) && tile_value_outside(tile_op_operand(loop, 1), outermost) &&
           tile_value_outside(tile_op_named(loop, TILE_OPERAND_STEP), outermost);
}

static bool find_nest(TileOp *op, TileNest *nest) {
    nest->count = 0;
    for (TileOp *loop = op->id == TILE_OP_FOR && !tile_loop_is_of_programs(op) ? op : NULL; loop; loop = tile_nest_next(loop)) {
        bool joins = nest->count < TILE_MOST_NESTED && is_counted(loop) && has_attributes_of(loop, op) && has_fixed_bounds(loop, op);
        if (!joins) return false;
        nest->loops[nest->count++] = loop;
    }
    return nest->count > 1 && copies_ahead(nest->loops[nest->count - 1]);
}

/* ---- one loop ---- */

static TileValue *integer(TileBuilder *b, int64_t number) {
    return tile_build_integer(b, tile_type_scalar(b->module->context, TILE_I64), number);
}

static TileValue *trip_count(TileBuilder *b, const TileOp *loop) {
    TileValue *length = tile_build_binary(b, TILE_OP_SUB, tile_op_operand(loop, 1), tile_op_operand(loop, 0)),
              *step = tile_op_named(loop, TILE_OPERAND_STEP);
    length = tile_build_binary(b, TILE_OP_MAX, length, integer(b, 0));
    if (tile_value_is_integer(step, 1)) return length;
    TileValue *more = tile_build_binary(b, TILE_OP_SUB, step, integer(b, 1));
    TileValue *of = tile_build_bitcast(b, tile_build_binary(b, TILE_OP_ADD, length, more), TILE_U64);
    return tile_build_bitcast(b, tile_build_binary(b, TILE_OP_DIV, of, tile_build_bitcast(b, step, TILE_U64)), TILE_I64);
}

static void join(TilePassContext *context, TileNest *nest) {
    TileBuilder b = tile_builder_before(context->module, nest->loops[0]);
    b.location = nest->loops[nest->count - 1]->location;
    tile_pass_remark(context, nest->loops[nest->count - 1], TILE_DECISION_LOOPS_JOINED, "the loop", "%u of them", nest->count);
    for (unsigned i = 0; i < nest->count; i++) nest->trips[i] = trip_count(&b, nest->loops[i]);
    tile_nest_join(nest, context->module, context->scratch, &b);
}

static bool visit(TilePassContext *context, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        TileNest nest;
        next = op->next;
        if (find_nest(op, &nest)) {
            join(context, &nest);
            changed = true;
            continue;
        }
        for (unsigned i = 0; i < op->region_count; i++) changed |= visit(context, &op->regions[i]);
    }
    return changed;
}

TileResult tile_pass_gpu_join_loops(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !visit(context, &func->body)) return TILE_RESULT_UNCHANGED;
    return TILE_RESULT_CHANGED;
}
