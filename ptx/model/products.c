#include "ptx/model/products.h"

#include <math.h>

#include "ptx/target/dot.h"

enum { MANY_SUMS = 128, GROUP_ROWS = 64, SHARED_BYTES_CYCLE = 128, SCHEDULERS = 4, OPERATIONS_CYCLE = 128 /* lanes, of f32 */ };

double gpu_product_rate(const TilePtxTarget *target, const TileOp *dot) {
    double bytes = (double)tile_scalar_bytes(tile_op_operand(dot, 0)->type->scalar);
    if (gpu_dot_is_mma(dot) && tile_op_operand(dot, 0)->type->scalar == TILE_F64) return target->mma_f64_rate;
    double rate = gpu_dot_is_wgmma(dot) ? target->wgmma_rate : gpu_dot_is_mma(dot) ? target->mma_rate : 0;
    return rate ? rate * 2 / bytes : OPERATIONS_CYCLE * 0.6 * 4 / fmax(4, bytes * bytes / 2);
}

/* wgmma reads b once for each 64 rows, mma each operand for as many warps as share it. */
double gpu_product_shared_cycles(const TileOp *dot) {
    double bytes[2], blocks = (double)tile_op_operand(dot, 0)->type->extent[0] / GROUP_ROWS;
    for (unsigned i = 0; i < 2; i++) {
        const TileType *type = tile_op_operand(dot, i)->type;
        bytes[i] = (double)tile_type_lanes(type) * (double)tile_scalar_bytes(type->scalar);
    }
    double all = gpu_dot_is_wgmma(dot) ? bytes[0] + fmax(1, blocks) * bytes[1] : 2 * (bytes[0] + bytes[1]);
    return all / SHARED_BYTES_CYCLE;
}

/* Of fused multiply-adds, one for each of a thread's sums, which are nearly a square: elements of its rows and columns come
 * from shared memory, 16 bytes at a time, in two cycles of the multiprocessor for a warp; and the loop has a few more for
 * some steps together. */
double gpu_product_instructions(double sums) {
    const double FEWER = 1.07; /* slower than they are issued at best: the warps of several blocks want elements at the same time */
    double loads = 2 * sqrt(sums) / 4;
    return fmax((sums + loads + 2.5) * (sums < MANY_SUMS ? FEWER : 1), SCHEDULERS * 2 * loads);
}

/* How much longer than its instructions a warp takes for them by itself: it waits for elements of shared memory and for banks of the
 * register file, but little for what is loaded a step ahead. Other warps of its scheduler issue theirs meanwhile. */
double gpu_product_wait(bool large, double sums) {
    const double AHEAD = 1.12, OTHERS = 1.9;
    return !large ? 1 : sums >= MANY_SUMS ? AHEAD : OTHERS;
}
