/* Which elements accesses of tile form meet. */
#ifndef TILE_LANG_IR_ACCESS_H
#define TILE_LANG_IR_ACCESS_H

#include "lang/ir/ir.h"

/* Have the op's accesses in different iterations of the loop no element in common: is an index of theirs the induction variable,
 * or a range from there on that is no longer than a step? */
bool tile_access_is_apart(const TileOp *op, const TileOp *loop);

#endif
