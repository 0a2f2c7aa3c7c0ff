/* Reuse: which elements a program reads again, and which are read only once. Private to ptx/. */
#ifndef TILE_PTX_GRID_REUSE_H
#define TILE_PTX_GRID_REUSE_H

#include "lang/index/index.h"
#include "lang/ir/build.h"

/* The L2 cache policy of a load_tile of a phase. Where each program, and each iteration of the loops around the load,
 * reads elements of its own, it is TILE_CACHE_L2 if a later load of the same program reads them again;
 * TILE_CACHE_STREAM if an earlier load has read them, or if no other load reads them and the kernel's author asks for
 * streaming loads. Otherwise it is TILE_CACHE_DEFAULT. A policy is a hint: only speed depends on it. */
TileName gpu_load_reuse(TileIndices *indices, const TileFunc *func, const TileOp *load);

/* Has the phase a load with the policy TILE_CACHE_L2? */
bool gpu_reads_again(TileIndices *indices, const TileFunc *func);
/* The L2 cache policy of a store_tile; `reads_again` is the answer of gpu_reads_again. TILE_CACHE_STREAM if stored
 * elements would evict elements that the program reads again. */
TileName gpu_store_reuse(const TileOp *store, bool reads_again);

#endif
