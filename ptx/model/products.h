/* What products cost, by what they are alone. Private to ptx/model. */
#ifndef TILE_PTX_MODEL_PRODUCTS_H
#define TILE_PTX_MODEL_PRODUCTS_H

#include "lang/ir/ir.h"
#include "ptx/target/target.h"

/* Multiply-adds in a cycle of a multiprocessor, by the instruction that computes the product. */
double gpu_product_rate(const TilePtxTarget *target, const TileOp *dot);
/* Cycles in which operands are read from shared memory by tensor cores. */
double gpu_product_shared_cycles(const TileOp *dot);
/* Instructions of a thread for one step of k, by fused multiply-adds, of so many sums. */
double gpu_product_instructions(double sums);
/* The time of those of a warp that has its scheduler for itself, over that of issuing them. */
double gpu_product_wait(bool large, double sums);

#endif
