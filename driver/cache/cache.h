/* Compiled code on disk: one file for each key, shared by threads, processes and hosts.
 *
 * A file is written under another name, synchronised and renamed, so that it is there whole or not at all. It has its
 * key and a checksum in it: what is damaged, cut off or under another's name is removed and made anew. When the files
 * are more than the limit, those that were used longest ago go. Nothing here fails: without a cache code is compiled.
 */
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

/* `folder` NULL: $TILE_CACHE_DIR, $XDG_CACHE_HOME/tile or ~/.cache/tile; an empty one is no cache. limit 0:
 * $TILE_CACHE_BYTES, else 1 GiB. NULL where there is none: the folder cannot be made, belongs to another user, or
 * others may write to it. What the environment says in vain is warned of as the settings, which may be NULL, want it.
 */
TileCodeCache *tile_code_cache_open(const TileSettings *settings, const char *folder, uint64_t limit);
/* Called with true before a file is written and with false when it is there, for programs that have signals end them.
 */
void tile_code_cache_hold(TileCodeCache *cache, void (*hold)(bool held));
void tile_code_cache_close(TileCodeCache *cache);
const char *tile_code_cache_folder(const TileCodeCache *cache);

/* The bytes that were put under the key, in memory to be freed; NULL where there are none. */
void *tile_code_cache_get(TileCodeCache *cache, const TileCodeKey *key, size_t *size);
/* `label` says what it is to people. */
void tile_code_cache_put(TileCodeCache *cache, const TileCodeKey *key, const char *label, const void *data,
                         size_t size);

typedef struct TileCodeEntry {
    char name[2 * TILE_SHA256_BYTES + 1]; /* the key */
    char label[TILE_CODE_LABEL_BYTES];
    uint64_t bytes; /* of the file */
    int64_t used;   /* when it was used last, seconds since 1970 */
    bool good;
} TileCodeEntry;

/* Calls `visit` for each file; `verify` reads them whole, else `good` says only that they begin well. */
void tile_code_cache_list(TileCodeCache *cache, bool verify, void (*visit)(void *state, const TileCodeEntry *entry),
                          void *state);
/* Removes those that are damaged, or all. How many. */
unsigned tile_code_cache_remove(TileCodeCache *cache, bool all);

#endif
