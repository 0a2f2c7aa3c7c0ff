/* Are most accesses of a function moved element by element? */
#ifndef TILE_PTX_LAYOUTS_SINGLES_H
#define TILE_PTX_LAYOUTS_SINGLES_H

#include "lang/ir/ir.h"

/* Do more accesses to tiles in the block move single elements, which are neighbours in memory, than vectors? */
bool gpu_moves_singles(const TileBlock *body);

#endif
