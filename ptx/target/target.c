/* The table of GPU targets. */
#include "ptx/target/target.h"

#include "lang/ir/types.h"

#include <stddef.h>
#include <string.h>

enum {
    HALVES = 1 << TILE_F16 | 1 << TILE_F32 | 1 << TILE_F64, /* from 7.0 on */
    BRAIN_HALVES = HALVES | 1 << TILE_BF16                  /* from 9.0 on */
};
enum { KIB = 1024, WARP_BYTES = 16 /* the widest access of one thread */, PAIR_BYTES = 4 };

#define GPU(name_, words, capability, features)                                                                        \
    .target = {.name = name_,                                                                                          \
               .description = words,                                                                                   \
               .kind = TILE_TARGET_GPU,                                                                                \
               .architecture = TILE_ARCHITECTURE_NVPTX,                                                                \
               .triple = "nvptx64-nvidia-cuda",                                                                        \
               .llvm_cpu = name_,                                                                                      \
               .llvm_features = features,                                                                              \
               .compute_capability = capability,                                                                       \
               .vector_bytes = WARP_BYTES,                                                                             \
               .vector_registers = 255,                                                                                \
               .atomic_adds = (capability) >= 90 ? BRAIN_HALVES : HALVES,                                              \
               .atomic_adds_flush = true,                                                                              \
               .divides_words = true,                                                                                  \
               .exchanges_lanes = true,                                                                                \
               .word_registers = true,                                                                                 \
               .has_maximum = true,                                                                                    \
               .has_rcp_approx = true,                                                                                 \
               .has_bf16_rounding = true,                                                                              \
               .has_masks = true,                                                                                      \
               .own_order = true},                                                                                     \
    .registers = 64 * KIB, .registers_thread = 255, .shared_reserved_bytes = KIB,         \
    .update_bytes = (capability) >= 90 ? WARP_BYTES : PAIR_BYTES

static const TilePtxTarget targets[] = {
    {GPU("sm_80", "NVIDIA Ampere (A100): compute capability 8.0", 80, "+ptx80"), .shared_block_bytes = 163 * KIB,
     .shared_core_bytes = 164 * KIB, .threads_core = 2048, .blocks_core = 32, .cores = 108,
     .clock_mhz = 1410, .cache_bytes = 40 * KIB * KIB, .memory_gbs = 1555, .mma_rate = 1024, .mma_f64_rate = 64},
    {GPU("sm_86", "NVIDIA Ampere (RTX 30): compute capability 8.6", 86, "+ptx80"), .shared_block_bytes = 99 * KIB,
     .shared_core_bytes = 100 * KIB, .threads_core = 1536, .blocks_core = 16, .cores = 82,
     .clock_mhz = 1695, .cache_bytes = 6 * KIB * KIB, .memory_gbs = 936, .mma_rate = 256},
    {GPU("sm_89", "NVIDIA Ada: compute capability 8.9", 89, "+ptx84"), .shared_block_bytes = 99 * KIB,
     .shared_core_bytes = 100 * KIB, .threads_core = 1536, .blocks_core = 24, .cores = 128,
     .clock_mhz = 2520, .cache_bytes = 72 * KIB * KIB, .memory_gbs = 1008, .mma_rate = 512, .target.has_f8 = true,
     .has_fp8_mma = true},
    {GPU("sm_90a", "NVIDIA Hopper (H100, H200): compute capability 9.0", 90, "+ptx87"), .shared_block_bytes = 227 * KIB,
     .shared_core_bytes = 228 * KIB, .threads_core = 2048, .blocks_core = 32, .cores = 132,
     .clock_mhz = 1700, .cache_bytes = 50 * KIB * KIB, .memory_gbs = 3350, .mma_rate = 1270, .mma_f64_rate = 128, .wgmma_rate = 2048, .target.exact_capability = true,
     .target.has_dependent_grids = true, .target.has_tma = true, .target.has_f8 = true, .has_fp8_mma = true,
     .fp8_mma_is_f16 = true,
     .target.has_stmatrix = true, .target.has_tf32_even = true, .target.has_tall_doubles = true, .target.has_wgmma = true,
     .has_clusters = true, .has_setmaxnreg = true},
    {GPU("sm_100a", "NVIDIA Blackwell (B200): compute capability 10.0", 100, "+ptx87"), .shared_block_bytes = 227 * KIB,
     .shared_core_bytes = 228 * KIB, .threads_core = 2048, .blocks_core = 32, .cores = 148,
     .clock_mhz = 1850, .cache_bytes = 126 * KIB * KIB, .memory_gbs = 8000, .mma_rate = 1024, .target.exact_capability = true,
     .target.has_dependent_grids = true, .target.has_tma = true, .target.has_f8 = true, .has_fp8_mma = true,
     .fp8_mma_is_f16 = true,
     .target.has_stmatrix = true, .target.has_tf32_even = true, .has_clusters = true},
    {GPU("sm_120a", "NVIDIA Blackwell (RTX 50): compute capability 12.0", 120, "+ptx87"), .shared_block_bytes = 99 * KIB,
     .shared_core_bytes = 100 * KIB, .threads_core = 1536, .blocks_core = 24, .cores = 170,
     .clock_mhz = 2400, .cache_bytes = 96 * KIB * KIB, .memory_gbs = 1792, .mma_rate = 512, .target.exact_capability = true,
     .target.has_dependent_grids = true, .target.has_tma = true, .target.has_f8 = true, .has_fp8_mma = true,
     .target.has_stmatrix = true, .target.has_tf32_even = true, .has_clusters = true},
};

const TilePtxTarget *tile_ptx_targets(unsigned *count) {
    *count = sizeof targets / sizeof *targets;
    return targets;
}

const TilePtxTarget *tile_ptx_target_of(const TileTarget *target) {
    return target && target->kind == TILE_TARGET_GPU ? (const TilePtxTarget *)target : &targets[0];
}

const TilePtxTarget *tile_ptx_target_find(const char *name) {
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (strcmp(targets[i].target.name, name) == 0) return &targets[i];
    return NULL;
}
