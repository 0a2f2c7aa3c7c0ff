/* Loads relocatable objects into this process: x86-64 ELF as the bridge emits it. Needs no LLVM. */
#ifndef TILE_MLIR_BRIDGE_LOAD_H
#define TILE_MLIR_BRIDGE_LOAD_H

#include "base/string.h"

typedef struct TileLoaded TileLoaded;

/* Maps, links and protects the object; its bytes are not needed afterwards. Objects may be untrusted as to their
 * shape (a damaged cache file), not as to what their code does. On failure `message` says why. */
tile_status tile_object_load(const void *object, size_t size, TileLoaded **loaded, TileText *message);
/* The address of a global symbol, NULL when there is none. Safe from any thread. */
void *tile_loaded_find(const TileLoaded *loaded, const char *name);
/* No code of the object may be running or run later. */
void tile_loaded_release(TileLoaded *loaded);

#endif
