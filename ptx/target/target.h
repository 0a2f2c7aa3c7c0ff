/* The GPU targets and their facts. */
#ifndef TILE_PTX_TARGET_TARGET_H
#define TILE_PTX_TARGET_TARGET_H

#include "lang/ir/target.h"

/* Facts of a GPU beyond those that all targets share. Sizes are those of NVIDIA's compute capabilities. */
typedef struct TilePtxTarget {
    TileTarget target;              /* first: a TileTarget of kind GPU is one of these */
    uint32_t shared_block_bytes;    /* the most shared memory of a block, with the opt-in limit */
    uint32_t shared_core_bytes;     /* of one multiprocessor */
    uint32_t shared_reserved_bytes; /* that the system reserves for each block */
    uint32_t registers;             /* 32-bit registers of one multiprocessor */
    uint32_t registers_thread;      /* at most */
    uint32_t update_bytes;          /* the widest vector of floats below f64 that one instruction adds atomically */
    uint32_t threads_core, blocks_core;
    uint32_t cores;                 /* multiprocessors of the target's usual machine, and its rates: for the model
                                     * (ptx/model), so that its choices do not depend on the machine at hand */
    uint32_t clock_mhz, memory_gbs; /* GB/s */
    uint32_t cache_bytes;           /* of the L2 cache, which all multiprocessors share */
    uint32_t mma_rate, wgmma_rate;  /* multiply-adds of 16-bit elements in one cycle of a multiprocessor; 0: none */
    uint32_t mma_f64_rate;          /* of f64 by mma; 0: fused multiply-adds are as fast */
    bool has_fp8_mma;    /* mma on f8 operands */
    bool fp8_mma_is_f16; /* ptxas expands mma on f8 into conversions, mma on f16 and additions */
    bool has_clusters;   /* thread block clusters and distributed shared memory */
    bool has_setmaxnreg; /* registers moved between warps */
} TilePtxTarget;

/* In order of capability. */
const TilePtxTarget *tile_ptx_targets(unsigned *count);
/* The GPU of this target; the one with the least capability if it is no GPU or NULL. */
const TilePtxTarget *tile_ptx_target_of(const TileTarget *target);
/* NULL when no GPU target has this name. */
const TilePtxTarget *tile_ptx_target_find(const char *name);

/* Do tensor maps copy operands? Where wgmma reads them: how slots are laid out, and what is known of copies under way, is made for
 * that. mma reads what threads copied. */
static inline bool gpu_copies_by_maps(const TileTarget *target) { return target && target->has_tma && target->has_wgmma; }

static inline unsigned gpu_floor_log2(int64_t value) {
    return 63u - (unsigned)__builtin_clzll((unsigned long long)value);
}
static inline unsigned gpu_least(unsigned a, unsigned b) { return a < b ? a : b; }

#endif
