/* Are most accesses of a function moved element by element? Which shape have those of a gather? */
#ifndef TILE_PTX_LAYOUTS_SINGLES_H
#define TILE_PTX_LAYOUTS_SINGLES_H

#include "lang/index/index.h"

/* Do more accesses to tiles in the block move single elements, which are neighbours in memory, than vectors? Loads of a window's row share vectors. */
bool gpu_moves_singles(TileIndices *indices, const TileBlock *body);
/* Does the op access elements that lie along their rows where data say, so that nothing is known of neighbours? */
bool gpu_gathers_by_data(const TileOp *op);
/* The shape that the elements of a gather are given, or those of a scatter have had: one index tile of one axis stands for rows and columns.
 * NULL: they have no other one. */
const TileType *gpu_gathered_shape(const TileOp *access);
/* Is a tile stored along another dimension than the last, or in steps? */
bool gpu_stores_in_steps(const TileBlock *body);

#endif
