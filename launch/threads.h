/* Sharing the programs of a launch among threads. */
#ifndef TILE_LAUNCH_THREADS_H
#define TILE_LAUNCH_THREADS_H

#include "launch/scratch.h"
#include "tile/launch.h"

/* The process's own pool, made at the first call; NULL if out of memory. */
TileThreadPool *tile_thread_pool_default(void);

/* How many threads a pool has that nobody said a number for. A TILE_NUM_THREADS that is none is warned of as the
 * settings, which may be NULL, want it. */
int tile_default_threads(const TileSettings *settings);

/* Calls body over ranges that cover 0..count, each once, and returns when all are done. Each thread begins with a
 * contiguous part of its own, takes half of what is left of it at a time, and then half of what another thread has
 * left. A caller that finds the pool at work does everything itself. */
void tile_thread_pool_run(TileThreadPool *pool, int64_t count, TileParallelBody body, void *state);

TileScratchCache *tile_thread_pool_scratch(TileThreadPool *pool);

#endif
