/* Purpose: compute neighbouring iterations of a loop of products together, where rows along k have fewer than 128 bytes: boxes of
 * tensor maps are then narrower than a row of shared memory, and an iteration waits and counts as long as one with more of k. In
 * kernels whose programs have been joined, whose text does not decide how large products are; gpu-join-programs has done it before, but where
 * an operand was computed of what iterations do not have side by side, a group's scale or packed numbers: behind
 * gpu-precompute it is loaded as it is multiplied.
 *
 * Before:
 *     func kernel tile @k(%a: tensor<f16, 2, in>, %b: tensor<f16, 2, in>, %c: tensor<f32, 2, out> {noalias}) joined_rows
 *         = 64 joined_columns = 64 {
 *       %M = dim %a {axis = 0} : i64
 *       %H = dim %a {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %16 = const {value = 16} : i64
 *       %64 = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       grid %M (%m: i64) {
 *         %i = mul %m, %64 : i64
 *         %s = for %zero, %H, %16, %acc : f32[64, 64] (%k: i64, %t: f32[64, 64]) {
 *           %left = sub %H, %k : i64
 *           %hi = min %left, %16 : i64
 *           %x = load_tile %a, %i, %one, %zero, %64, %k, %one, %zero, %hi {access = [range, range]} : f16[64, 16]
 *           %y = load_tile %b, %k, %one, %zero, %hi, %zero, %one, %zero, %64 {access = [range, range]} : f16[16, 64]
 *           %u = dot %x, %y, %t : f32[64, 64]
 *           yield %u
 *         }
 *         store_tile %c, %s, %i, %one, %zero, %64, %zero, %one, %zero, %64 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%a: tensor<f16, 2, in>, %b: tensor<f16, 2, in>, %c: tensor<f32, 2, out> {noalias}) joined_rows
 *         = 64 joined_columns = 64 {
 *       %M = dim %a {axis = 0} : i64
 *       %H = dim %a {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %0 = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       grid %M (%m: i64) {
 *         %i = mul %m, %0 : i64
 *         %s = for %zero, %H, %0, %acc : f32[64, 64] (%k: i64, %t: f32[64, 64]) {
 *           %left = sub %H, %k : i64
 *           %hi = min %left, %0 : i64
 *           %x = load_tile %a, %i, %one, %zero, %0, %k, %one, %zero, %hi {access = [range, range]} : f16[64, 64]
 *           %y = load_tile %b, %k, %one, %zero, %hi, %zero, %one, %zero, %0 {access = [range, range]} : f16[64, 64]
 *           %u = dot %x, %y, %t : f32[64, 64]
 *           yield %u
 *         }
 *         store_tile %c, %s, %i, %one, %zero, %0, %zero, %one, %zero, %0 {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=gpu-join-iterations,cse,dce
 * Needs: inline, cse; bounds in the form that facts gives them. Keeps: tile form; each element of a result has the same
 * products in the same order. Cost: linear for each loop. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/grid/joined.h"
#include "ptx/passes.h"

enum { K_BYTES = 128 };

/* Of 8-bit floats each product has sums of its own, of fewer bits than those that it adds them to (docs/gpu.md, Sums): longer ones would be
 * less exact. */
static int64_t wanted_k(const TilePassContext *context, const TileOp *dot) {
    TileScalar scalar = tile_op_operand(dot, 0)->type->scalar;
    (void)context;
    bool narrow = tile_scalar_is_float(scalar) && tile_scalar_bits(scalar) == 8;
    return narrow ? 0 : K_BYTES / (int64_t)tile_scalar_bytes(scalar);
}

bool gpu_join_iterations(TilePassContext *context, TileBlock *block) {
    const TileJoinedDepth depth = {.wanted = wanted_k};
    return tile_join_iterations(context, block, &depth);
}

/* Where gpu-join-programs has found nothing to join, and neither is anything found here, the kernel is as it was. */
TileResult tile_pass_gpu_join_iterations(TilePassContext *context, TileFunc *func) {
    bool short_axis = func->joined_columns == 1, changed = false;
    if (func->kind != TILE_FUNC_KERNEL || !func->joined_rows) return TILE_RESULT_UNCHANGED;
    for (TileOp *op = func->body.first; op && !short_axis; op = op->next)
        if (op->id == TILE_OP_GRID) changed |= gpu_join_iterations(context, &op->regions[0]);
    if (func->joined_rows == GPU_NOTHING_JOINED) {
        func->joined_rows = changed ? GPU_ITERATIONS_JOINED : 0;
        func->joined_columns = changed ? func->joined_columns : 0;
        return TILE_RESULT_CHANGED;
    }
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
