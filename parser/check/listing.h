/* Lists of names with their values, "D = 7, G = 4", for messages. */
#ifndef TILE_PARSER_CHECK_LISTING_H
#define TILE_PARSER_CHECK_LISTING_H

#include "parser/check/check.h"

typedef struct TileListing {
    TileText text;
    TILE_LIST(const char *) seen;
} TileListing;
/* Adds a name, unless it is in the list or has no known value. */
void tile_listing_add(TileChecker *c, TileListing *listing, const char *name, const TileMeaning *m);
/* A note with the bindings of this instance of the kernel, if there are several. */
void tile_note_instance(TileChecker *c, TileDiagnostic *d, const TileItem *kernel);

#endif
