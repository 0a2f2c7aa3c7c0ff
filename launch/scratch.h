/* Scratch memory that launches take and give back. It is kept, so that a launch allocates nothing once its sizes have
 * occurred. */
#ifndef TILE_LAUNCH_SCRATCH_H
#define TILE_LAUNCH_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

/* A block of memory, aligned to 64 bytes; from 2 MiB on, to huge pages, which are requested from the system. */
typedef struct TileScratch {
    void *memory;
    size_t bytes;
} TileScratch;

/* Unused blocks, one for each core number (modulo the count), so that a thread usually gets the block that its core
 * used last. Zero-initialised; thread safe. */
enum { TILE_SCRATCH_SLOTS = 64 };
typedef struct TileScratchCache {
    _Atomic(TileScratch *) slots[TILE_SCRATCH_SLOTS];
} TileScratchCache;

/* A block of at least `bytes` with undefined contents; NULL if out of memory. */
TileScratch *tile_scratch_take(TileScratchCache *cache, size_t bytes);
void tile_scratch_give(TileScratchCache *cache, TileScratch *scratch);
/* Frees the blocks at rest. */
void tile_scratch_clear(TileScratchCache *cache);

#endif
