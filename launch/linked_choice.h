/* Choosing among the variants of a linked object. */
#ifndef TILE_LAUNCH_LINKED_CHOICE_H
#define TILE_LAUNCH_LINKED_CHOICE_H

#include "launch/variants.h"

/* Takes the first, most specialised variant of the kernel whose demands the arguments satisfy. request->statics is
 * given. TILE_UNSUPPORTED if there is none. */
tile_status tile_linked_choose(TileKernel *kernel, const TileView *views, const TileImageRequest *request,
                               TileVariant **variant, TileError *error);

#endif
