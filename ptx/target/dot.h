/* Products for tensor cores: the layout of their sums over the threads of a block, and the layout of an operand in
 * shared memory. Private to ptx/. */
#ifndef TILE_PTX_TARGET_DOT_H
#define TILE_PTX_TARGET_DOT_H

#include "lang/ir/ir.h"
#include "lang/layout/layout.h"
#include "ptx/target/multiply_adds.h"
#include "ptx/target/target.h"

enum { GPU_MOST_DOTS = GPU_MOST_SUMS };

/* Layouts are over a power of two of warps. Of a block of another number, three warpgroups, the last ones do not exist, and would hold
 * padding or copies: rows are shared out among all, and what is shared out otherwise, among as many as divide the number. */
static inline unsigned gpu_log_warps(uint32_t threads) {
    uint32_t warps = threads / TILE_WARP_THREADS;
    return warps > 1 ? gpu_floor_log2(warps - 1) + 1 : 0;
}
static inline unsigned gpu_log_shared_warps(uint32_t threads) {
    uint32_t warps = threads / TILE_WARP_THREADS;
    return gpu_floor_log2(warps & -warps);
}

/* The products of a function that mma computes, and how warps divide them; if it has none, those that fused multiply-adds
 * compute. */
typedef struct GpuDots {
    const TileType *types[GPU_MOST_DOTS]; /* of the results, without duplicates, the largest first */
    unsigned count;
    GpuSums multiplied; /* their count is 0: mma computes the products */
    TileFragmentPlan plan;
    bool wgmma; /* warpgroups compute the products */
    int64_t sums; /* elements of all sums; a sum that goes on from product to product is counted once */
    int64_t promoted; /* registers of a thread for sums of wgmma that are added to those */
} GpuDots;

/* Has the GPU mma instructions for these types: two axes; f16, bf16, 8-bit integers, f32 as tf32, or f8 and f64 where it has
 * them? */
bool gpu_dot_fits_mma(const TilePtxTarget *target, const TileOp *dot);
/* May wgmma compute it where a GPU has that, from operands that tensor maps copy? All of these but f64. */
bool gpu_dot_takes_maps(const TilePtxTarget *target, const TileOp *dot);
/* Is the product computed by tensor cores; by wgmma? gpu-threads and gpu-warpgroups have decided it. */
bool gpu_dot_is_mma(const TileOp *dot);
bool gpu_dot_is_wgmma(const TileOp *dot);
/* wgmma keeps 14 bits of a sum of 8-bit floats (docs/gpu.md, Sums): such a product, by wgmma, begins its own sums at 0,
 * and these are added in f32 to those that it goes on from. */
bool gpu_dot_promotes(const TileOp *dot);
/* Does a loop around a product compute with its sums, beyond adding to them? */
bool gpu_loops_use_sums(TileBlock *body);
/* Does the product go on from sums of 0? */
bool gpu_begins_at_zero(const TileOp *dot);
/* A tile as it lies in shared memory: rows of its last axis, and of all other axes one, the first one outermost. NULL: it has
 * no rows, or more than two axes and one that is no power of two, whose padding would lie between its rows. */
bool gpu_has_rows(const TileType *tile);
const TileType *gpu_rows_type(TileContext *context, const TileType *tile);
/* Elements of sums that the product keeps live, besides those that another product counts. */
int64_t gpu_dot_sums(const TileOp *dot);
enum { GPU_BESIDE_SUMS = 72 }; /* registers of a thread that multiplies, beside sums, where several blocks share a multiprocessor */
/* Of a product that promotes its sums: how many instructions that stand side by side are under way at a time. While the last ones' sums are computed, the others'
 * are added. */
int64_t gpu_promoted_together(const TileOp *dot);
/* Registers of a thread for sums that are promoted: those of the instructions that are under way at a time. */
int64_t gpu_dot_promoted(const TileOp *dot);
/* Registers of 32 bits for the tile, in all threads: layouts pad extents to powers of two, and an element narrower than a register
 * takes one. */
int64_t gpu_tile_registers(const TileType *type);
/* Registers of a thread of the warps that have tiles copied for others' products, a multiple of 8: addresses and bounds of
 * so many copies. Three warpgroups that multiply have few, and get 8 more each. */
int64_t gpu_copying_registers(int64_t copies, int64_t multiplying);
/* The registers with which each of a block's threads begins, if it has all of the multiprocessor's. */
int64_t gpu_first_registers(const TilePtxTarget *target, int64_t threads);
/* Those of a thread that multiplies, once each copying one has released all but those that it keeps. */
int64_t gpu_multiplying_registers(const TilePtxTarget *target, int64_t multiplying, int64_t copying, int64_t kept);
/* The parts of k of a product by wgmma, each of which warpgroups of its own multiply; 1: k is one. */
int64_t gpu_dot_parts(const TileOp *dot);
/* The layout of a first operand in registers. */
TileLayout gpu_first_fragments(const TileOp *dot, const TileFragmentPlan *plan);
/* Columns of one instruction of wgmma, of several that share the columns of the sums; 0: no number fits. */
int64_t gpu_wgmma_columns(const TileOp *dot);
/* Warps: those of the function's threads; before gpu-threads has decided on these, the number that the kernel's
 * author asks for or that the largest sums need. Rows or columns are paired where load_matrix then reads 8-bit
 * elements that are contiguous along them; that is known only once operands are placed in shared memory. */
GpuDots gpu_find_dots(const TileFunc *func, const TileBlock *body);
/* Writes the plan as attributes of each such product, and reads it back. gpu-anchor decides, gpu-machine carries out.
 */
void gpu_set_plan(TileModule *module, TileBlock *body, const TileFragmentPlan *plan);
bool gpu_dot_plan(const TileOp *dot, TileFragmentPlan *plan);
/* Does the product read its operands from shared memory, whoever has put them there: by mma, or by fused multiply-adds of
 * two axes? */
bool gpu_dot_reads_shared(const TileOp *dot);
/* Is the op's result in shared memory and used only by such products, which read it from there? Then no thread holds
 * it in registers. */
bool gpu_stays_shared(const TileOp *op);
/* Are an operand's elements contiguous along k in shared memory? An operand in registers is taken as it would be
 * stored there: row by row. */
bool gpu_lies_along_k(const TileOp *dot, unsigned operand);
/* The op that defines where the value is in shared memory, looking through transpositions; NULL: the value is in
 * registers. */
const TileOp *gpu_find_shared(const TileValue *value, bool *transposed);
/* The layout of sums of two axes: accumulator fragments, or that of fused multiply-adds. */
TileLayout gpu_sum_layout(const GpuDots *dots, const TileType *tile);
/* Are they the sums of a product by wgmma that has the even rows of its second operand first (gpu-pairs), so that a thread has four neighbours?
 * And the layout of these. */
bool gpu_lie_in_pairs(const TileValue *sums);
TileLayout gpu_paired_layout(const GpuDots *dots, const TileType *tile);
/* The tile's shape, rounded up to what instructions take as an operand or a sum. */
TileLayoutShape gpu_dot_shape(const TileType *tile);
/* The same, of a tile whose rows warpgroups share out: three of them have three quarters of the rows of four. */
TileLayoutShape gpu_rows_shape(const TileType *tile, const TileFragmentPlan *plan);

/* The layout of a tile of two axes in shared memory, as a pointer's type gives it: row by row, each row a number of
 * chunks of 16 bytes, which the swizzle permutes. */
typedef struct GpuSharedTile {
    TileLayoutShape shape; /* rounded up */
    TileScalar scalar;
    TileSwizzle swizzle;
    int64_t row_bytes; /* of a panel */
    int64_t panels;    /* groups of columns, which lie one after another; the last one may have room for more than there are */
    int64_t columns;   /* of a panel */
    unsigned log_chunks; /* log2 of how many chunks the swizzle permutes: 0 .. 3 */
    bool by_columns;     /* these rows are the columns of the pointer's tile */
} GpuSharedTile;

/* Alignment of such a tile: the chunks that the swizzle permutes fill an aligned row of banks. */
enum { GPU_TILE_ALIGN = 128 };

/* Decides on the layout of a tile that mma reads: extents rounded up to instructions, and the largest number of
 * permuted chunks that divides a row. For bytes, rows 0, 1, 4, 5, 8, 9, 12 and 13 are in different banks as well: one
 * access reads these where bytes are contiguous along m or n (lowering/mma.c). */
const TileType *gpu_shared_type(TileContext *context, const TileType *tile);
/* The layout of a tile that fused multiply-adds read: the same where it lies along k, rows without a swizzle otherwise. */
const TileType *gpu_multiplied_type(TileContext *context, const TileType *tile, bool along_k);
/* The same across k, of a tile that lies along k in memory: its columns are rows, and a chunk apart, so that elements that
 * are neighbours in memory come to different banks. */
const TileType *gpu_columns_type(TileContext *context, const TileType *tile);
/* That of a tile which threads store there for fused multiply-adds; `turns`: gpu_turns_rows. */
const TileType *gpu_put_type(TileContext *context, const TileType *tile, bool along_k, bool turns);
/* The layout that such a type gives. */
GpuSharedTile gpu_shared_tile(const TileType *pointer);
static inline int64_t gpu_shared_tile_bytes(const GpuSharedTile *tile) {
    return tile->row_bytes * tile->panels * tile->shape.extent[0];
}
/* The number of rows of the pointer's tile, rounded up, or of its columns. */
static inline int64_t gpu_stored_extent(const GpuSharedTile *tile, unsigned axis) {
    return tile->shape.extent[tile->by_columns ? 1 - axis : axis];
}
/* The swizzle of a row: its chunks' numbers are exclusive-ored with this. It depends on the row number's lowest four
 * bits and is linear over GF(2). */
static inline int64_t gpu_chunk_swizzle(const GpuSharedTile *tile, int64_t row) {
    if (tile->swizzle == TILE_SWIZZLE_BYTES) row ^= row >> 2 & 2;
    int64_t mask = (INT64_C(1) << tile->log_chunks) - 1, bits = row >> (TILE_MAX_LOG_CHUNKS - tile->log_chunks) & mask;
    return tile->swizzle == TILE_SWIZZLE_WORDS ? (bits << 1 | bits >> (tile->log_chunks - 1)) & mask : bits;
}

#endif
