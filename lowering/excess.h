/* The limits on a kernel's size. */
#ifndef TILE_LOWERING_EXCESS_H
#define TILE_LOWERING_EXCESS_H

#include "lowering/pass.h"

/* Runs a pass, and fails if it creates far more ops than the limit of machine form: this bounds its time and memory
 * for any input. */
TileResult tile_excess_run(TilePassContext *context, TileFunc *func, TilePassFunction run);
/* `result`, or a failure if the module's machine form exceeds the limit. */
TileResult tile_excess_check(TilePassContext *context, TileResult result);
/* Ops and parameters of all functions, of either form. */
uint64_t tile_excess_count(const TileModule *module);

#endif
