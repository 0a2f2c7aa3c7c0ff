/* The thread pool, which shares the programs of a launch. */
#ifndef TILE_LAUNCH_THREADS_H
#define TILE_LAUNCH_THREADS_H

#include "launch/scratch.h"
#include "tile/launch.h"

/* The process's default pool, created at the first call; NULL if memory runs out. */
TileThreadPool *tile_thread_pool_default(void);

/* The default number of threads of a pool. An invalid TILE_NUM_THREADS is warned of as the settings, which may be NULL,
 * say. */
int tile_default_threads(const TileSettings *settings);

/* Calls body for ranges that together cover 0..count once, and returns when all are done. Work stealing: each thread
 * begins with a contiguous part, takes half of what is left of it at a time, and then steals half of what another
 * thread has left. A caller that finds the pool busy does everything itself. */
void tile_thread_pool_run(TileThreadPool *pool, int64_t count, TileParallelBody body, void *state);

TileScratchCache *tile_thread_pool_scratch(TileThreadPool *pool);

#endif
