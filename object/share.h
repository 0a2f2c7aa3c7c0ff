/* A relocatable object becomes a shared object, without a linker. */
#ifndef TILE_OBJECT_SHARE_H
#define TILE_OBJECT_SHARE_H

#include "base/string.h"
#include "object/code.h"
#include "tile/status.h"

typedef struct TileShareOptions {
    const char *name;   /* DT_SONAME */
    const char *needed; /* the library that defines what the object does not, beside libc: DT_NEEDED */
} TileShareOptions;

/* `object` is a result of tile_objects_merge, for x86-64 and without debug information: TILE_UNSUPPORTED for others.
 * Symbols are bound when it is loaded, nothing is writable and executable, and the same input gives the same bytes. */
tile_status tile_object_share(const TileCode *object, const TileShareOptions *options, TileCode *shared,
                              TileText *message);

#endif
