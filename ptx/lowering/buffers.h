/* Buffers of shared memory in machine form, before they become addresses, and the ops that reach them.
 * Shared by gpu-barriers and gpu-shared; private to ptx/. */
#ifndef TILE_PTX_LOWERING_BUFFERS_H
#define TILE_PTX_LOWERING_BUFFERS_H

#include "lang/ir/ir.h"

typedef uint64_t *GpuSet; /* of buffers */

typedef struct GpuBuffers {
    TILE_LIST(TileOp *) ops; /* the `buffer`s of ptr<shared>, in order */
    TileMap numbers;         /* of the ops, from 1 on */
    TileArena *arena;
    size_t words;     /* of a set of them */
    GpuSet *in_common; /* of each, those that have bytes in common with it, itself too, by `offset`; one set for one range */
    bool carried;     /* a pointer comes from elsewhere than `buffer` and `ptr_add` */
} GpuBuffers;

GpuBuffers gpu_find_buffers(TileFunc *func, TileArena *arena);
/* The number, from 0 on, of the buffer that the value points into; -1: none. */
int64_t gpu_buffer_of(const GpuBuffers *buffers, const TileValue *pointer);

typedef enum GpuReach {
    GPU_REACH_NONE,
    GPU_REACH_READ,
    GPU_REACH_WRITE,
    GPU_REACH_COPY /* writes, at any time until the thread has waited for it */
} GpuReach;
/* What the op itself does to a buffer, regions aside. */
GpuReach gpu_reach(const GpuBuffers *buffers, const TileOp *op, size_t *buffer);

/* ---- sets ---- */

GpuSet gpu_set_create(const GpuBuffers *buffers);
static inline void gpu_set_add(GpuSet set, size_t number) { set[number / 64] |= UINT64_C(1) << number % 64; }
static inline void gpu_set_remove(GpuSet set, size_t number) { set[number / 64] &= ~(UINT64_C(1) << number % 64); }
static inline bool gpu_set_has(const uint64_t *set, size_t number) { return set[number / 64] >> number % 64 & 1; }
void gpu_set_clear(const GpuBuffers *buffers, GpuSet set);
/* True where the set has grown. */
bool gpu_set_join(const GpuBuffers *buffers, GpuSet set, const uint64_t *more);

/* ---- what is pending ---- */

/* What threads may have done, on one of the ways that lead here, since they last waited for one another. */
typedef struct GpuPending {
    GpuSet read, written, copied; /* copied: by copies that this thread has not waited for */
} GpuPending;

GpuPending gpu_pending_create(const GpuBuffers *buffers);
GpuPending gpu_pending_copy(const GpuBuffers *buffers, const GpuPending *pending);
bool gpu_pending_join(const GpuBuffers *buffers, GpuPending *pending, const GpuPending *more);
/* All have come: what any of them did is done, but for copies that are under way. */
void gpu_pending_meet(const GpuBuffers *buffers, GpuPending *pending);
/* What the op itself does, regions aside. */
void gpu_pending_add(const GpuBuffers *buffers, const TileOp *op, GpuPending *pending);
/* Does the op reach what another thread may be at: read what may have been written, or write what may still be read, or
 * written as another buffer? */
bool gpu_waits(const GpuBuffers *buffers, const TileOp *op, const GpuPending *pending);

#endif
