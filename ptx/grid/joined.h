/* Programs of a grid, or iterations of a loop, that are computed together (lowering/joined.h). Private to ptx/grid. */
#ifndef TILE_PTX_GRID_JOINED_H
#define TILE_PTX_GRID_JOINED_H

#include "lowering/joined.h"

/* Along ranges of programs, lanes that no store takes need not be left out of what is loaded: where only the tensor's own end
 * bounds them, they are what a tensor map copies. Of programs with ranges, that can be joined. */
bool gpu_keep_unread_lanes(TileJoin *join, TileIndexView *view);
/* Computes `count` neighbours together, of which each has a point, as rows of tiles that have an axis more; indices may be anything that is computed of the
 * point. `programs`: of the grid along the axis, before; NULL for a loop of step 1 that carries nothing. False: they cannot be, and nothing has changed; `why` says the
 * reason. */
bool gpu_join_as_rows(TileJoin *join, int64_t count, TileValue *programs);

/* TileFunc.joined_rows where no programs have been joined: behind gpu-precompute iterations may be; or they have been. */
enum { GPU_NOTHING_JOINED = 1, GPU_ITERATIONS_JOINED = 2 };

/* Of the block's loops whose products have short rows along k, several iterations become one. Were there such? */
bool gpu_join_iterations(TilePassContext *context, TileBlock *block);

#endif
