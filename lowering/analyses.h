/* The validity of analyses between passes. Private to lowering/. */
#ifndef TILE_LOWERING_ANALYSES_H
#define TILE_LOWERING_ANALYSES_H

#include "lowering/pass.h"

/* Drops the analyses that the pass invalidates, of all functions: it may have changed others than its own. */
void tile_analyses_expire(TilePassContext *context, const TilePassInfo *info, TileResult result);
/* Does each analysis that was kept equal a new one, and did the pass use only analyses that its row needs? */
tile_status tile_analyses_check(TilePassContext *context, const TilePassInfo *info);

#endif
