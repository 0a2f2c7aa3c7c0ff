/* What a program reads again, and what nobody does. Private to ptx/. */
#ifndef TILE_PTX_GRID_REUSE_H
#define TILE_PTX_GRID_REUSE_H

#include "lang/index/index.h"
#include "lang/ir/build.h"

/* How a load_tile of a phase may treat the L2 cache, where each program and each turn of the loops around it reads
 * elements of its own: TILE_CACHE_L2 where a later load of the same program reads them again, TILE_CACHE_STREAM where
 * an earlier one has read them, or where nobody else reads them and the kernel's author wants such loads to stream; in
 * all other cases TILE_CACHE_DEFAULT. It is a hint: nothing but speed depends on it. */
TileName gpu_load_reuse(TileIndices *indices, const TileFunc *func, const TileOp *load);

/* Does the phase read anything again that stays in the L2 cache until then? */
bool gpu_reads_again(TileIndices *indices, const TileFunc *func);
/* How a store_tile treats it, in a phase of which gpu_reads_again is known: TILE_CACHE_STREAM where it must not push out
 * what the program reads again. */
TileName gpu_store_reuse(const TileOp *store, bool reads_again);

#endif
