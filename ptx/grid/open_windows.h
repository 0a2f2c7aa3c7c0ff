/* Loops over windows that borders clip, as straight lines. Private to ptx/grid. */
#ifndef TILE_PTX_GRID_OPEN_WINDOWS_H
#define TILE_PTX_GRID_OPEN_WINDOWS_H

#include "lowering/pass.h"

enum { GPU_MOST_POSITIONS = 16 };

/* The positions of the largest window of the block, each loop of which is one over a window, or over one within another; 0: there is no loop, -1: another. */
int64_t gpu_windows_positions(TilePassContext *context, TileFunc *func, TileBlock *block);
/* As many neighbours as give each thread of a warp a vector of the block's tiles; 1: one does, or so many positions are too much for a thread's registers. */
int64_t gpu_windows_rows(TileBlock *block, int64_t positions);
/* A copy of the loop or grid, in front of it, whose windows are straight lines. */
TileOp *gpu_windows_open(TilePassContext *context, TileFunc *func, TileOp *around);

#endif
