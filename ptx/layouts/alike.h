/* Index tiles whose neighbouring elements are the same, as quotients of places are. */
#ifndef TILE_PTX_LAYOUTS_ALIKE_H
#define TILE_PTX_LAYOUTS_ALIKE_H

#include "lang/index/index.h"

/* Is the tile's value the same for all elements of each group of so many along its last axis, from element 0 on? `size` is a power of two. */
bool gpu_is_alike(TileIndices *indices, const TileValue *value, int64_t size);

#endif
