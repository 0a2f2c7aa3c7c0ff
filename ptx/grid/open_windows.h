/* Loops over windows that borders clip, as straight lines. Private to ptx/grid. */
#ifndef TILE_PTX_GRID_OPEN_WINDOWS_H
#define TILE_PTX_GRID_OPEN_WINDOWS_H

#include "lowering/pass.h"

enum { GPU_MOST_POSITIONS = 16 };

/* The positions of the largest window of the block, each loop of which is one over a window, or over one within another; 0: there is no loop, -1: another. */
int64_t gpu_windows_positions(TilePassContext *context, TileFunc *func, TileBlock *block);
/* Makes a straight line of each window. */
void gpu_windows_open(TilePassContext *context, TileFunc *func, TileBlock *block);

#endif
