/* Products whose left operand is zero under a condition. */
#ifndef TILE_LOWERING_LEFT_OUT_H
#define TILE_LOWERING_LEFT_OUT_H

#include "lowering/pass.h"

/* Lets the loops over k of products in the grids of a kernel run only where their left operand is not zero. What products of zeros add to a
 * column, 0, -0 or no number, does not depend on the program: a grid of its own computes it, and it is added behind the loops. `exact`: also the
 * sign of a zero that an underflow has left is what it was. A product that stays as it is has a remark that says why. */
TileResult tile_leave_zeros_out(TilePassContext *context, TileFunc *func, bool exact);

#endif
