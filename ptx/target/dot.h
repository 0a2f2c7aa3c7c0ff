/* Products for tensor cores: how their sums lie on the threads of a block, and how an operand lies in shared
 * memory. Private to ptx/. */
#ifndef TILE_PTX_TARGET_DOT_H
#define TILE_PTX_TARGET_DOT_H

#include "lang/ir/ir.h"
#include "lang/layout/layout.h"
#include "ptx/target/target.h"

enum { GPU_MOST_DOTS = 8 };

/* The products of a function that mma computes, and how warps shall share them. */
typedef struct GpuDots {
    const TileType *types[GPU_MOST_DOTS]; /* of results, without repetition, the largest first */
    unsigned count;
    TileFragmentPlan plan;
} GpuDots;

/* Has the GPU mma instructions for these types: two axes; f16, bf16, 8-bit integers, f32 as tf32, or f8 where it has
 * them? */
bool gpu_dot_fits_mma(const TilePtxTarget *target, const TileOp *dot);
/* Does it take them? gpu-threads has decided. */
bool gpu_dot_is_mma(const TileOp *dot);
/* The warps are those of the function's threads; where these are not decided yet, as the kernel's author or the largest
 * sums want them. Rows or columns are in pairs where load_matrix then reads bytes that lie along them, once it is known
 * what lies in shared memory. */
GpuDots gpu_find_dots(const TileFunc *func, const TileBlock *body);
/* The plan as attributes of each such product, and what they say. gpu-anchor decides, gpu-machine carries out. */
void gpu_set_plan(TileModule *module, TileBlock *body, const TileFragmentPlan *plan);
bool gpu_dot_plan(const TileOp *dot, TileFragmentPlan *plan);
/* Is the op's result in shared memory, and used by such products alone, which take it from there? No thread holds it.
 */
bool gpu_stays_shared(const TileOp *op);
/* Which axis of the product an operand's chunks of shared memory lie along; one in registers would be put there as it
 * is. */
bool gpu_lies_along_k(const TileOp *dot, unsigned operand);
/* The op that says where in shared memory the value lies, through exchanges of the axes; NULL: it has registers. */
const TileOp *gpu_find_shared(const TileValue *value, bool *transposed);
/* Accumulator fragments of a tile of two axes. */
TileLayout gpu_sum_layout(const GpuDots *dots, const TileType *tile);
/* The tile's shape, rounded up to what instructions take of an operand or a sum. */
TileLayoutShape gpu_dot_shape(const TileType *tile);

/* How a tile of two axes lies in shared memory, as a pointer's type says: rows one after the other, each a number of
 * chunks of 16 bytes, which change places by the swizzle. */
typedef struct GpuSharedTile {
    TileLayoutShape shape; /* rounded up */
    TileScalar scalar;
    TileSwizzle swizzle;
    int64_t row_bytes;
    unsigned log_chunks; /* that change places: 0 .. 3 */
} GpuSharedTile;

/* Where such a tile may begin: the chunks that change places are those of an aligned row of banks. */
enum { GPU_TILE_ALIGN = 128 };

/* The decision, for a tile that mma shall read: its extents as instructions take them, and as many chunks changing
 * places as divide a row. Of bytes also rows 0, 1, 4, 5, 8, 9, 12 and 13 lie in different banks, which bytes along m or
 * n are read by (lowering/mma.c). */
const TileType *gpu_shared_type(TileContext *context, const TileType *tile);
/* What such a type says. */
GpuSharedTile gpu_shared_tile(const TileType *pointer);
static inline int64_t gpu_shared_tile_bytes(const GpuSharedTile *tile) {
    return tile->row_bytes * tile->shape.extent[0];
}
/* What the row's number does to the numbers of its chunks, by exclusive or. It depends on the number's lowest four
 * bits, and what it does for two numbers that have no bit in common is what both do. */
static inline int64_t gpu_chunk_turn(const GpuSharedTile *tile, int64_t row) {
    if (tile->swizzle == TILE_SWIZZLE_BYTES) row ^= row >> 2 & 2;
    int64_t mask = (INT64_C(1) << tile->log_chunks) - 1, turn = row >> (TILE_MAX_LOG_CHUNKS - tile->log_chunks) & mask;
    return tile->swizzle == TILE_SWIZZLE_WORDS ? (turn << 1 | turn >> (tile->log_chunks - 1)) & mask : turn;
}

#endif
