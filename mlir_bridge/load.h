/* Loads relocatable objects into this process through LLVM's ORC. */
#ifndef TILE_MLIR_BRIDGE_LOAD_H
#define TILE_MLIR_BRIDGE_LOAD_H

#include "base/string.h"
#include "object/place.h"

typedef struct TileLoaded TileLoaded;

/* Links and maps the object; no page is both writable and executable. Its bytes are copied. It may refer to memcpy,
 * memmove and memset, and to no other symbol of the process. The object must be as the bridge emitted it: callers
 * that store objects verify a checksum. On failure `message` has the reason. */
tile_status tile_object_load(const void *object, size_t size, TileLoaded **loaded, TileText *message);
/* The address of a global symbol. The first call links the object: TILE_BACKEND, with `message`, if that fails or if
 * there is no such symbol. Thread-safe. */
tile_status tile_loaded_find(const TileLoaded *loaded, const char *name, void **address, TileText *message);
/* Tells debuggers of the code, until it is released. `object` is the one that was loaded, once: `places` are symbols that
 * tile_loaded_find has found. */
tile_status tile_loaded_show(TileLoaded *loaded, const void *object, size_t size, const TilePlace *places, size_t count,
                             TileText *message);
/* No code of the object may be running or run later. */
void tile_loaded_release(TileLoaded *loaded);

#endif
