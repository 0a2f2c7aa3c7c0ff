/* Compiled code on disk: one file for each key, shared by threads, processes and hosts.
 *
 * A file is written under a temporary name, synchronised and renamed, so readers see either the whole file or none. It
 * holds its key and a checksum: a file that is damaged, truncated or named wrongly is removed and made again. If the
 * files exceed the limit, the least recently used are removed. Nothing here fails: without a cache, code is
 * compiled. */
#ifndef TILE_DRIVER_CACHE_CACHE_H
#define TILE_DRIVER_CACHE_CACHE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/sha256.h"
#include "tile/launch.h"

typedef struct TileCodeCache TileCodeCache;

typedef struct TileCodeKey {
    uint8_t digest[TILE_SHA256_BYTES];
} TileCodeKey;

enum { TILE_CODE_LABEL_BYTES = 128 };

/* `folder` NULL: $TILE_CACHE_DIR, $XDG_CACHE_HOME/tile or ~/.cache/tile; an empty one: no cache. limit 0:
 * $TILE_CACHE_BYTES, else 1 GiB. NULL where there is no cache: the folder cannot be made, belongs to another user, or
 * others may write to it. Values of the environment that are not valid are warned of as the settings, which may be
 * NULL, say. */
TileCodeCache *tile_code_cache_open(const TileSettings *settings, const char *folder, uint64_t limit);
/* `hold` is called with true before a file is written and with false afterwards, for programs that signals may end. */
void tile_code_cache_hold(TileCodeCache *cache, void (*hold)(bool held));
void tile_code_cache_close(TileCodeCache *cache);
const char *tile_code_cache_folder(const TileCodeCache *cache);

/* The bytes stored under the key, allocated; NULL where there are none. */
void *tile_code_cache_get(TileCodeCache *cache, const TileCodeKey *key, size_t *size);
/* `label`: a description for people. */
void tile_code_cache_put(TileCodeCache *cache, const TileCodeKey *key, const char *label, const void *data,
                         size_t size);

typedef struct TileCodeEntry {
    char name[2 * TILE_SHA256_BYTES + 1]; /* the key */
    char label[TILE_CODE_LABEL_BYTES];
    uint64_t bytes; /* of the file */
    int64_t used;   /* when it was used last, seconds since 1970 */
    bool good;
} TileCodeEntry;

/* Calls `visit` for each file. With `verify` whole files are checked; without, `good` concerns their headers only. */
void tile_code_cache_list(TileCodeCache *cache, bool verify, void (*visit)(void *state, const TileCodeEntry *entry),
                          void *state);
/* Removes damaged files, or all; returns how many. */
unsigned tile_code_cache_remove(TileCodeCache *cache, bool all);

#endif
