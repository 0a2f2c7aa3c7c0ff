/* Private to ptx/. */
#ifndef TILE_PTX_GRID_CHOICES_H
#define TILE_PTX_GRID_CHOICES_H

#include "lang/ir/build.h"

/* Lets the loop carry a key for each place that it replaces where a value is less than the least so far, or greater than the greatest: by keys
 * results of parts can be merged (merges.h). Returns the loop that takes its place, or the loop itself. */
TileOp *gpu_choices_carry_keys(TileModule *module, TileOp *loop);

#endif
