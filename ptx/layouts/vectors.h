/* How words of a product's sums are stored in vectors. Private to ptx/. */
#ifndef TILE_PTX_LAYOUTS_VECTORS_H
#define TILE_PTX_LAYOUTS_VECTORS_H

#include "lang/ir/ir.h"
#include "lang/layout/layout.h"

/* The layout in which the op moves a tile that has the layout of sums. Words of sums of warpgroups that are stored behind all products: of eight neighbours of a row four
 * lanes have two each. Neighbouring lanes exchange halves with the eight behind these, so that each has four neighbours, and a store moves 64 bytes of each of eight rows in
 * place of 32. Others: as they are. */
TileLayout gpu_widen_sums(TileFunc *func, const TileOp *op, const TileLayout *sums);

#endif
