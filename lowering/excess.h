/* The bound on what a kernel becomes. */
#ifndef TILE_LOWERING_EXCESS_H
#define TILE_LOWERING_EXCESS_H

#include "lowering/pass.h"

/* Runs a pass, which fails where it makes far more ops than the limit on machine form lets any function keep: so none
 * takes more time and memory than that, whatever it is given. */
TileResult tile_excess_run(TilePassContext *context, TileFunc *func, TilePassFunction run);
/* `result`, or the failure of a module whose machine form has become larger than the limit. */
TileResult tile_excess_look(TilePassContext *context, TileResult result);
/* Ops and parameters of all functions, of either form. */
uint64_t tile_excess_count(const TileModule *module);

#endif
