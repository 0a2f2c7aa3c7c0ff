/* Tiles of indices and masks that follow from scalars: lanes at equal distances, and lanes between bounds. Private to ptx/grid. */
#ifndef TILE_PTX_GRID_LINES_H
#define TILE_PTX_GRID_LINES_H

#include "ptx/grid/joined.h"

/* Replaces gathers along lines by ranges, and masks by bounds or by one condition, in what the join has found to grow along one
 * axis. Returns whether it changed anything. */
bool gpu_use_lines(GpuJoin *join);

#endif
