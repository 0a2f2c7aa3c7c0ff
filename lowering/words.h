/* Tiles of indices in 32 bits: index_words.c says when. */
#ifndef TILE_LOWERING_WORDS_H
#define TILE_LOWERING_WORDS_H

#include "lowering/pass.h"

/* `data`: only tiles that come from what was loaded or converted. */
TileResult tile_compute_in_words(TilePassContext *context, TileFunc *func, bool data);

#endif
