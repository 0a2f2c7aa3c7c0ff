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
/* Are programs of the module's kernel computed together? */
bool tile_outcome_is_joined(const TileModule *module);
/* Has one of its phases that multiply nothing a loop, beside that over a block's programs? */
bool tile_outcome_has_loops(const TileModule *module);

#endif
