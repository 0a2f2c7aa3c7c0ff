/* Loads relocatable objects into this process through LLVM's ORC. */
#ifndef TILE_MLIR_BRIDGE_LOAD_H
#define TILE_MLIR_BRIDGE_LOAD_H

#include "base/string.h"

typedef struct TileLoaded TileLoaded;

/* Takes the object; it is linked, and mapped so that nothing is writable and executable at once. Its bytes are copied.
 * It may refer to memcpy, memmove and memset, and to nothing else of the process. The object must be whole, as the
 * bridge emitted it: who keeps objects elsewhere checks a sum before. On failure `message` says why. */
tile_status tile_object_load(const void *object, size_t size, TileLoaded **loaded, TileText *message);
/* The address of a global symbol. The first question links the object: TILE_BACKEND, and `message` says why, where
 * that fails or there is no such symbol. Safe from any thread. */
tile_status tile_loaded_find(const TileLoaded *loaded, const char *name, void **address, TileText *message);
/* No code of the object may be running or run later. */
void tile_loaded_release(TileLoaded *loaded);

#endif
