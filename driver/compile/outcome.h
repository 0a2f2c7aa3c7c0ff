/* What a module's phases have become, as far as the choice of a schedule asks. Private to driver/. */
#ifndef TILE_DRIVER_COMPILE_OUTCOME_H
#define TILE_DRIVER_COMPILE_OUTCOME_H

#include "lang/ir/ir.h"

unsigned tile_outcome_phases(const TileModule *module);
/* Does a block of one of the module's phases stay for several programs? */
bool tile_outcome_stays(const TileModule *module);
/* Do programs of one of its phases take turns, each with so many warps? */
bool tile_outcome_takes_turns(const TileModule *module, uint32_t warps);
/* Are blocks of one of its phases clusters? */
bool tile_outcome_has_clusters(const TileModule *module);
/* The threads of its largest clusters; 0: there are none. */
uint32_t tile_outcome_cluster_threads(const TileModule *module);
/* Are programs of the module's kernel computed together? */
bool tile_outcome_is_joined(const TileModule *module);
/* Has one of its phases that multiply nothing a loop, beside that over a block's programs? */
bool tile_outcome_has_loops(const TileModule *module);
/* Does each of its phases load two tiles at most? */
bool tile_outcome_is_light(const TileModule *module);

/* Has no phase products, and does the text not say how many warps blocks have? */
bool tile_outcome_leaves_warps(const TileModule *module);
/* Of the blocks of its phases the most; 1 at least. */
uint32_t tile_outcome_warps(const TileModule *module);
/* Have the two, which differ in how many warps they ask for, phases with blocks of other threads? */
bool tile_outcome_threads_differ(const TileModule *a, const TileModule *b);

#endif
