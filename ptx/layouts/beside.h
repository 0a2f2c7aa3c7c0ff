/* Loads of a row that begin a few elements apart, as the positions of a window do. */
#ifndef TILE_PTX_LAYOUTS_BESIDE_H
#define TILE_PTX_LAYOUTS_BESIDE_H

#include "lang/index/index.h"

/* Do two loads of tiles of one type, from one tensor, differ in where their rows begin alone? `other` begins so many elements behind `load`. Which lanes exist is not asked. */
bool gpu_lies_beside(TileIndices *indices, const TileOp *load, const TileOp *other, int64_t *distance);
/* Is there such another load in the block, less than so many elements apart? */
bool gpu_has_beside(TileIndices *indices, const TileOp *load, int64_t within);
/* Is the number a sum of multiples of `width`, a power of two, and of constants? These, modulo `width`. */
bool gpu_begins_behind(TileIndices *indices, const TileValue *number, int64_t width, int64_t *distance);

#endif
