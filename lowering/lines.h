/* Tiles of indices and masks that follow from scalars: lanes at equal distances, and lanes between bounds. */
#ifndef TILE_LOWERING_LINES_H
#define TILE_LOWERING_LINES_H

#include "lowering/joined.h"

/* Replaces gathers along lines by ranges, and masks by bounds or by one condition, in what the join has found to grow along one
 * axis. Returns whether it changed anything. */
bool tile_use_lines(TileJoin *join);

#endif
