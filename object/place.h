/* Tells, in a relocatable object, where its code was loaded: debuggers read such an object. */
#ifndef TILE_OBJECT_PLACE_H
#define TILE_OBJECT_PLACE_H

#include "base/string.h"
#include "tile/status.h"

/* The symbol was loaded at `address`. */
typedef struct TilePlace {
    const char *symbol;
    const void *address;
} TilePlace;

/* Writes into the object, which is aligned to 8 bytes, the addresses of the sections that the symbols stand in. Sections
 * of unknown address become ones that are not loaded, so that no address is taken for theirs. TILE_BACKEND, with a
 * message: it is damaged, or no symbol stands in it, or two of them contradict one another. */
tile_status tile_object_place(char *object, size_t size, const TilePlace *places, size_t count, TileText *message);

#endif
