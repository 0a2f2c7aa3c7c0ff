/* Whether the programs of a phase run on the calling thread or on several, in what pieces: by what either took before.
 */
#ifndef TILE_LAUNCH_SHARE_H
#define TILE_LAUNCH_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "launch/threads.h"

/* What a piece of a phase took, when last measured: a key of the tensors' extents, and nanoseconds as a float. */
typedef struct TilePhaseCost {
    _Atomic uint64_t alone;  /* on the calling thread */
    _Atomic uint64_t shared; /* on all threads: the time of a launch over the number of its pieces */
} TilePhaseCost;

/* How many programs, or bands of programs (TileImagePhase), make a piece. Neighbouring bands are cheapest together: as
 * many as leave enough pieces for the threads. `bands` is 0 or divides the number. */
int64_t tile_share_grain(int64_t programs, uint32_t bands, int threads);

/* Notes what a piece took, in nanoseconds. Thread safe, as what follows. */
void tile_share_note(_Atomic uint64_t *cost, uint32_t key, double ns);
/* Should so many pieces run on the calling thread, by what was noted? `number` differs from launch to launch: the way
 * that was slower is tried for some of them. */
bool tile_share_is_alone(TilePhaseCost *cost, uint32_t key, int64_t count, uint64_t number);

/* Calls body for ranges that together cover the pieces 0..count once, and returns when all are done. `key`: the same
 * for the same extents, never 0. Thread safe. */
void tile_share_run(TileThreadPool *pool, TilePhaseCost *cost, uint32_t key, int64_t count, TileParallelBody body,
                    void *state);

#endif
