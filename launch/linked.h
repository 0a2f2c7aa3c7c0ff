/* Choosing among the variants that a linked object holds. */
#ifndef TILE_LAUNCH_LINKED_H
#define TILE_LAUNCH_LINKED_H

#include "launch/variants.h"

/* Takes the first variant of the kernel, the most specialised one, whose demands the arguments keep. request->statics
 * is given. TILE_UNSUPPORTED where there is none. */
tile_status tile_linked_choose(TileKernel *kernel, const TileView *views, const TileImageRequest *request,
                               TileVariant **variant, TileError *error);

#endif
