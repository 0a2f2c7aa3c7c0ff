/* What canonicalise and other passes ask about single ops. Each returns what the op's first result equals, built at
 * the builder's place where it is not there yet, or NULL. */
#ifndef TILE_LOWERING_FOLD_H
#define TILE_LOWERING_FOLD_H

#include "lang/ir/build.h"
#include "lowering/pass.h"

/* Elementwise ops on constants. */
TileValue *tile_fold_constant(TileBuilder *builder, const TileOp *op);
/* Splats, broadcasts, reshapes, permutations, fills, reductions of a single element. */
TileValue *tile_fold_shape(TileBuilder *builder, const TileOp *op);

/* Control and host ops that are decided: erases or replaces the op. True if it did something. */
bool tile_fold_control(TilePassContext *context, TileOp *op);

#endif
