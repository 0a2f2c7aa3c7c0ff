/* Which tile decides the layout of a function, and how many neighbours a thread has of it. Private to ptx/layouts. */
#ifndef TILE_PTX_LAYOUTS_WIDEST_H
#define TILE_PTX_LAYOUTS_WIDEST_H

#include "ptx/layouts/blocked.h"

/* Of which element a thread has as many neighbours as make a vector, in bytes. */
unsigned gpu_widest_bytes(TileFunc *func, const GpuSurvey *survey);
/* Neighbours that a thread has at most where the largest tile is computed, of smaller ones. */
unsigned gpu_log_vector_of_computed(TileFunc *func, const TileType *largest);
/* The logarithm of how many elements of the tile's last axis each thread has together, since others are joined along it, or it is cut into them. */
unsigned gpu_log_together(TileFunc *func, const TileType *tile);
/* The tile in whose rows the elements of what bytes are loaded to, or what is computed of them, are every second one, or n-th, as numbers of few bits are.
 * `pairs`: its shape with an axis for those between them. NULL: there is none. */
const TileType *gpu_joined_shape(const TileValue *value, const TileType **pairs);
/* The largest tile; where bytes are joined to what is stored in rows, and no order of sums follows, that. */
const TileType *gpu_moved_shape(TileFunc *func, const GpuSurvey *survey);

#endif
