/* How many iterations a loop over a window has at most, as its bounds show. */
#ifndef TILE_LOWERING_ITERATIONS_H
#define TILE_LOWERING_ITERATIONS_H

#include "lang/index/index.h"
#include "lang/ir/ir.h"

/* The number of iterations that a loop of step 1 cannot exceed: max(0, a)..min(n, a + 3) has at most three. 0: it may have more than `limit`. */
int64_t tile_most_iterations(TileIndices *indices, const TileOp *loop, int64_t limit);

#endif
