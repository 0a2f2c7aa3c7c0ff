/* Folds of single ops, for canonicalise and other passes. Each returns a value equal to the op's first result, which
 * may be a new op at the builder's insertion point, or NULL. */
#ifndef TILE_LOWERING_FOLD_H
#define TILE_LOWERING_FOLD_H

#include "lang/ir/build.h"
#include "lowering/pass.h"

/* Elementwise ops on constants. */
TileValue *tile_fold_constant(TileBuilder *builder, const TileOp *op);
/* Splats, broadcasts, reshapes, permutations, fills, reductions of a single element. */
TileValue *tile_fold_shape(TileBuilder *builder, const TileOp *op);
/* Control and host ops, and masked accesses, with known conditions: erases or replaces the op. Returns whether it did. */
bool tile_fold_control(TilePassContext *context, TileOp *op);

#endif
