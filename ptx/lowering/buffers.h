/* Buffers of shared memory in machine form, before they become addresses, and the ops that access them. Shared by
 * gpu-barriers and gpu-shared; private to ptx/. */
#ifndef TILE_PTX_LOWERING_BUFFERS_H
#define TILE_PTX_LOWERING_BUFFERS_H

#include "lang/ir/ir.h"

typedef uint64_t *GpuSet; /* bit set of buffers */

typedef struct GpuBuffers {
    TILE_LIST(TileOp *) ops; /* the `buffer`s of ptr<shared>, in order */
    TileMap numbers;         /* of ops to their index + 1 */
    TileArena *arena;
    size_t words; /* of a set */
    GpuSet
        *overlapping; /* of each, those that overlap with it, by `offset`, itself included; equal ranges share a set */
    bool carried;     /* a pointer is defined by neither `buffer` nor `ptr_add` */
} GpuBuffers;

GpuBuffers gpu_find_buffers(TileFunc *func, TileArena *arena);
/* The number, from 0 on, of the buffer that the value points into; -1: none. */
int64_t gpu_buffer_of(const GpuBuffers *buffers, const TileValue *pointer);

typedef enum GpuBufferAccess {
    GPU_ACCESS_NONE,
    GPU_ACCESS_READ,
    GPU_ACCESS_WRITE,
    GPU_ACCESS_COPY /* an asynchronous write, at any time until the thread has waited for it */
} GpuBufferAccess;
/* How the op itself, without its regions, accesses a buffer. */
GpuBufferAccess gpu_buffer_access(const GpuBuffers *buffers, const TileOp *op, size_t *buffer);

/* May an op's region be executed again behind itself? An `if` does not, nor partitions, nor the loop over a block's one
 * program. */
static inline bool gpu_repeats(const TileOp *op) {
    return op->id != TILE_OP_IF && op->id != TILE_OP_PARTITIONS && !tile_op_integer(op, TILE_ATTRIBUTE_ONE_PROGRAM, 0);
}

/* ---- sets ---- */

GpuSet gpu_set_create(const GpuBuffers *buffers);
static inline void gpu_set_add(GpuSet set, size_t number) { set[number / 64] |= UINT64_C(1) << number % 64; }
static inline void gpu_set_remove(GpuSet set, size_t number) { set[number / 64] &= ~(UINT64_C(1) << number % 64); }
static inline bool gpu_set_has(const uint64_t *set, size_t number) { return set[number / 64] >> number % 64 & 1; }
void gpu_set_clear(const GpuBuffers *buffers, GpuSet set);
/* Returns whether the set has grown. */
bool gpu_set_join(const GpuBuffers *buffers, GpuSet set, const uint64_t *more);

/* ---- what is pending ---- */

/* Accesses that threads may have made, on some path to this point, since the last barrier. */
typedef struct GpuPending {
    GpuSet read, written, copied; /* copied: asynchronous copies that this thread has not waited for */
} GpuPending;

GpuPending gpu_pending_create(const GpuBuffers *buffers);
GpuPending gpu_pending_copy(const GpuBuffers *buffers, const GpuPending *pending);
bool gpu_pending_join(const GpuBuffers *buffers, GpuPending *pending, const GpuPending *more);
/* At a barrier: all accesses are complete, but for outstanding copies. */
void gpu_pending_barrier(const GpuBuffers *buffers, GpuPending *pending);
/* At a barrier of each warpgroup: so are those of buffers that warpgroups access apart, and that share no bytes with others. */
void gpu_pending_apart(const GpuBuffers *buffers, GpuPending *pending);
/* Do the threads of each warpgroup wait for one another alone? */
bool gpu_is_warpgroup_barrier(const TileOp *op);
/* Adds the accesses of the op itself, without its regions. */
void gpu_pending_add(const GpuBuffers *buffers, const TileOp *op, GpuPending *pending);
/* Does the op race with a pending access: read what may have been written, or write what may still be read, or what
 * another, overlapping buffer may have written? */
bool gpu_needs_barrier(const GpuBuffers *buffers, const TileOp *op, const GpuPending *pending);

#endif
