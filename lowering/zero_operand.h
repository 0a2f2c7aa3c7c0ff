/* Operands of products that are all zero under a condition. */
#ifndef TILE_LOWERING_ZERO_OPERAND_H
#define TILE_LOWERING_ZERO_OPERAND_H

#include "lang/ir/ir.h"

/* A bool from outside of the loop without which the operand is 0: a part of what a `select` with 0 chooses by that is
 * the same for all lanes. NULL: there is none. A fill along the contracted axis is one of the other operand, too. */
TileValue *tile_zero_unless(TileValue *operand, const TileOp *loop);
/* The loops around a product that only pass on what its sum makes of what they carry, at most so many, the innermost first.
 * Returns how many there are. */
unsigned tile_adding_loops(const TileOp *dot, TileOp **loops, unsigned most);

#endif
