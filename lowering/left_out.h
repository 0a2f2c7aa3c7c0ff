/* Products whose left operand is zero under a condition. */
#ifndef TILE_LOWERING_LEFT_OUT_H
#define TILE_LOWERING_LEFT_OUT_H

#include "lowering/pass.h"

/* Lets the loop over k of the product, in a grid of the kernel, run only where its left operand is not zero. What products of zeros add to a
 * column, 0, -0 or no number, does not depend on the program: a grid of its own computes it, and it is added behind the loops. `exact`: also the
 * sign of a zero that an underflow has left is what it was. False: the product stays as it is; a remark says why. */
bool tile_leave_zeros_out(TilePassContext *context, TileFunc *kernel, TileOp *grid, TileOp *dot, bool exact);

#endif
