/* What the files of lang/affine/ share. */
#ifndef TILE_LANG_AFFINE_INTERNAL_H
#define TILE_LANG_AFFINE_INTERNAL_H

#include "lang/affine/sum.h"

enum { TILE_SUM_NO_FACT = 1 }; /* the stamp of a proof that used no fact */

/* The unique sum of these products, in this order, and a constant. */
const TileSum *tile_sum_intern(TileSumTable *table, int64_t constant, const TileProduct *products, uint32_t count);
/* Division by zero gives 0. */
int64_t tile_sum_floor_divide(int64_t a, int64_t b);

#endif
