/* The GPUs that code is made for. */
#ifndef TILE_PTX_TARGET_TARGET_H
#define TILE_PTX_TARGET_TARGET_H

#include "lang/ir/target.h"

/* What a GPU has beyond the facts that all targets share. Sizes are those of NVIDIA's compute capabilities. */
typedef struct TilePtxTarget {
    TileTarget target;              /* first: a TileTarget of kind GPU is one of these */
    uint32_t shared_block_bytes;    /* shared memory of one block at most, by opting in */
    uint32_t shared_core_bytes;     /* of one multiprocessor */
    uint32_t shared_reserved_bytes; /* that the system takes of each block's */
    uint32_t registers;             /* 32-bit, of one multiprocessor */
    uint32_t registers_thread;      /* at most */
    uint32_t threads_core, blocks_core;
    bool has_fp8_mma;    /* mma on f8 operands */
    bool fp8_mma_is_f16; /* ptxas makes conversions, mma of f16 and additions of it */
    bool has_clusters;   /* thread block clusters and distributed shared memory */
    bool has_wgmma;      /* warpgroup matrix multiplication */
    bool has_setmaxnreg; /* registers moved between warps */
} TilePtxTarget;

/* In order of capability. */
const TilePtxTarget *tile_ptx_targets(unsigned *count);
/* The GPU that the target is; the least one where it is none, or NULL. */
const TilePtxTarget *tile_ptx_target_of(const TileTarget *target);
/* NULL when no GPU target has this name. */
const TilePtxTarget *tile_ptx_target_find(const char *name);

static inline unsigned gpu_floor_log2(int64_t value) {
    return 63u - (unsigned)__builtin_clzll((unsigned long long)value);
}
static inline unsigned gpu_least(unsigned a, unsigned b) { return a < b ? a : b; }

#endif
