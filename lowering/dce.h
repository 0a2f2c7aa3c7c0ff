/* Program slices by liveness. */
#ifndef TILE_LOWERING_DCE_H
#define TILE_LOWERING_DCE_H

#include "lowering/pass.h"

/* Is the op, without those of its regions, one that the slice is made for? */
typedef bool (*TileKeep)(const TileOp *op);
/* Removes all ops of the block, whatever effects they have, but those that `keeps` names and what they need: control
 * around them, and the values that they and it are computed from. No op outside of the block uses what goes. Returns
 * whether anything was removed. */
bool tile_dce_slice(TilePassContext *context, TileBlock *block, TileKeep keeps);

#endif
