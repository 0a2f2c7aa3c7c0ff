/* Products by fused multiply-adds: of which functions, and the layout of their sums. Private to ptx/. */
#ifndef TILE_PTX_TARGET_MULTIPLY_ADDS_H
#define TILE_PTX_TARGET_MULTIPLY_ADDS_H

#include "lang/ir/ir.h"
#include "lang/layout/layout.h"
#include "ptx/target/target.h"

enum { GPU_MOST_SUMS = 8 };

/* The shapes of a function's sums, if fused multiply-adds of two axes compute all of its products. */
typedef struct GpuSums {
    const TileType *types[GPU_MOST_SUMS]; /* without duplicates, the largest first */
    bool along_n[GPU_MOST_SUMS];          /* some b lies along n: threads have neighbouring columns of other tiles */
    bool along_k[GPU_MOST_SUMS];          /* some b lies along k: of what has the columns alone they have not */
    bool along_m;                         /* each a lies along m: threads load neighbouring rows */
    bool rows;                            /* a row is reduced, or goes on to another product: it belongs to one warp */
    unsigned count;                       /* 0: the function has no products, or others */
    unsigned log_warps;
} GpuSums;
GpuSums gpu_find_sums(const TileFunc *func, const TileBlock *body);
/* Registers of a thread beside its sums: elements of operands, addresses, counters. */
enum { GPU_MULTIPLYING_REGISTERS = 64 };
/* Registers of all threads that are live together: of the sums, and of what is made of them before they go on to another product, or of
 * operands on their way to shared memory. */
int64_t gpu_live_sums(const GpuSums *sums, const TileBlock *body);
/* Blocks that a multiprocessor should have together, so that each of its schedulers has four warps, or as many as their
 * registers allow, which hide from one another that operands come from shared memory; 0: no more than one, or the function
 * has no such products. */
int64_t gpu_blocks_of_sums(const TilePtxTarget *target, const TileFunc *func, const TileBlock *body);
/* The layout of a tile of two axes, whose rows are those of the sums. */
TileLayout gpu_multiplied_layout(const GpuSums *sums, const TileType *tile);
/* From which the layouts of smaller tiles follow. */
TileLayout gpu_columns_layout(const GpuSums *sums, const TileType *tile);
/* Of a product's own sums: threads load neighbouring columns, unless b lies along k. */
TileLayout gpu_product_layout(const GpuSums *sums, const TileOp *dot);

/* What an operand of such a product is before it is transposed. */
TileValue *gpu_multiplied_source(const TileValue *operand, bool *transposed);
/* Do rows along k of such a tile, an operand of a product of the op's function, lie across k in shared memory? A thread then
 * loads neighbours across k, which lie in even and odd registers in turn, as its sums do: of one step of k, elements along
 * k would all lie in one bank of the register file, or all in the other. Words are copied one by one for that, four cycles
 * of shared memory for each warp's, which only products of many sums are worth. */
bool gpu_turns_rows(const TileOp *op, const TileType *rows);
/* Are the sums of such products of matrices 128 x 128, or up to twice as many? A thread then has 128 of them, and is one of eight warps of a multiprocessor; with
 * the elements of a step and of the next one they take up to 255 registers. */
bool gpu_has_many_sums(const TileType *sums, const TileBlock *body);
/* Is it a large product of f32 in a function none of whose operands has several axes of memory as its rows? */
bool gpu_multiplies_matrices(const TileOp *dot);
/* How many operands of the product lie along k, of f32 in a function whose products are not all so large? */
unsigned gpu_small_rows_along_k(const TileOp *dot);
/* Is it such a product's sum, or what a loop of those has added up, of large products of f32? */
bool gpu_is_multiplied_sum(const TileValue *value);
/* Are neighbours along k neighbours in shared memory, as the operand's source lies there or would lie, row by row? */
bool gpu_multiplied_along_k(const TileOp *dot, unsigned operand);

#endif
