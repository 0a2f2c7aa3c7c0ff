/* Turns a relocatable object into a shared object, without a linker. */
#ifndef TILE_OBJECT_SHARE_H
#define TILE_OBJECT_SHARE_H

#include "base/string.h"
#include "object/code.h"
#include "tile/status.h"

typedef struct TileShareOptions {
    const char *name;   /* DT_SONAME */
    const char *needed; /* DT_NEEDED: the library that defines the undefined symbols, besides libc */
} TileShareOptions;

/* `object` is a result of tile_objects_merge, for x86-64 and without debug information; for others TILE_UNSUPPORTED.
 * Symbols are bound at load time, no memory is both writable and executable, and the same input gives the same
 * bytes. */
tile_status tile_object_share(const TileCode *object, const TileShareOptions *options, TileCode *shared,
                              TileText *message);

#endif
