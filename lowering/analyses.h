/* Which analyses hold between passes. Private to lowering/. */
#ifndef TILE_LOWERING_ANALYSES_H
#define TILE_LOWERING_ANALYSES_H

#include "lowering/pass.h"

/* Drops what the pass may have changed, of all functions: it may have changed others than its own. */
void tile_analyses_expire(TilePassContext *context, const TilePassInfo *info, TileResult result);
/* Is all that is kept what a new analysis finds, and did the pass ask for no more than its row says? */
tile_status tile_analyses_check(TilePassContext *context, const TilePassInfo *info);

#endif
