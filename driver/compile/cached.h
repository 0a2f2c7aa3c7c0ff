/* Code in the disk cache: the object, and what makes a kernel's variant of it. */
#ifndef TILE_DRIVER_COMPILE_CACHED_H
#define TILE_DRIVER_COMPILE_CACHED_H

#include "driver/cache/cache.h"
#include "driver/compile/unit.h"
#include "launch/cuda.h"

/* The key of an instance, which covers the kernel's tile form, the target and this compiler, but not the facts about
 * arguments. False where the compiler has no build id. */
bool tile_cached_key(TileUnit *unit, const TileFunc *kernel, const TileImageSignature *signature,
                     const TileImageRequest *request, TileCodeKey *key);

typedef struct TileCached {
    const TileCudaPhase *phases; /* names; the rest for GPUs */
    uint32_t phase_count;
    const void *asked, *image; /* for tile_cached_read */
    const void *code;          /* object, or PTX */
    size_t image_bytes, code_bytes;
} TileCached;

/* Code for the request, of the instance with this key, in the unit's memory. False where the cache has none. */
bool tile_cached_get(TileUnit *unit, const TileCodeKey *instance, const TileImageSignature *signature,
                     const TileImageRequest *request, TileCached *cached);
/* Of `cached`, the phases and the code are read. */
void tile_cached_put(TileUnit *unit, const TileCodeKey *instance, const TileImageSignature *signature,
                     const TileImageRequest *request, const TileImageCode *code, const TileCached *cached);
/* Decodes what tile_cached_get gave, with the phases' entries. TILE_INTERNAL where it is malformed. */
tile_status tile_cached_read(const TileCached *cached, TileArena *arena, const TilePhaseEntry *entries,
                             const TileImageSignature *signature, TileImageCode *code);

#endif
