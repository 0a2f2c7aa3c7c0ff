/* The targets that can be asked for, and whether they can run here. */
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "cpu/target.h"
#include "driver/compiler.h"
#include "launch/cuda.h"
#include "ptx/target.h"

static const struct {
    const char *name, *description;
} known[] = {
    {"cpu", "the best of the CPU targets that this machine can run"},
    {"avx2", "x86-64 with AVX2 and FMA (x86-64-v3)"},
    {"avx512", "x86-64 with AVX-512 (x86-64-v4)"},
    {"avx512bf16", "x86-64 with AVX-512, bf16 and VNNI"},
    {"sve", "AArch64 with SVE, vectors of any length"},
    {"cuda", "the best GPU target for the NVIDIA GPU of this machine"},
    {"sm_80", "NVIDIA Ampere (A100): compute capability 8.0"},
    {"sm_86", "NVIDIA Ampere (RTX 30): compute capability 8.6"},
    {"sm_89", "NVIDIA Ada: compute capability 8.9"},
    {"sm_90a", "NVIDIA Hopper (H100, H200): compute capability 9.0"},
    {"interp", "the reference interpreter"},
};

enum { KNOWN_COUNT = sizeof known / sizeof *known };

static const TileTarget *find(const char *name) {
    const TilePtxTarget *gpu = tile_ptx_target_find(name);
    return gpu ? &gpu->target : tile_cpu_target_find(name);
}

/* Code for plain capabilities runs on later GPUs too; `a` means that one alone. */
static const char *gpu_obstacle(const TileTarget *target) {
    const char *why_not = tile_cuda_why_not();
    if (why_not) return why_not;
    int wanted = (int)target->compute_capability, there = tile_cuda_capability(0);
    if (target->exact_capability ? there == wanted : there >= wanted) return NULL;
    return "the GPU has another compute capability";
}

/* The best for the GPU that is there; NULL where there is none. */
static const TileTarget *gpu_that_is_there(void) {
    const TileTarget *best = NULL;
    unsigned count;
    const TilePtxTarget *targets = tile_ptx_targets(&count);
    for (unsigned i = 0; i < count; i++)
        if (!gpu_obstacle(&targets[i].target)) best = &targets[i].target;
    return best;
}

const char *tile_target_obstacle(const TileTarget *target) {
    return target->kind == TILE_TARGET_GPU ? gpu_obstacle(target) : tile_cpu_why_not(target->name);
}

static const char *obstacle(const char *name) {
    if (strcmp(name, "interp") == 0) return NULL;
    if (strcmp(name, "cuda") == 0) return tile_cuda_why_not();
    const TileTarget *target = strcmp(name, "cpu") == 0 ? tile_cpu_target_native() : find(name);
    return target ? tile_target_obstacle(target) : tile_cpu_why_not("avx2");
}

bool tile_target_at(size_t index, TileTargetInfo *info) {
    if (index >= KNOWN_COUNT || !info) return false;
    const char *why_not = obstacle(known[index].name);
    *info = (TileTargetInfo){known[index].name, known[index].description, !why_not, why_not};
    return true;
}

static tile_status choose_gpu(const TileTarget **target, TileText *why) {
    *target = gpu_that_is_there();
    if (*target) return TILE_OK;
    const char *why_not = tile_cuda_why_not();
    tile_text_add(why, why_not ? why_not : "the GPU is older than compute capability 8.0");
    return TILE_UNAVAILABLE;
}

static const TileTarget *best_cpu(const char *capability) {
    const TileTarget *best = NULL;
    unsigned count;
    const TileTarget *targets = tile_cpu_targets(&count);
    for (unsigned i = 0; i < count; i++)
        if (tile_cpu_target_usable(&targets[i]) && !tile_cpu_limit_why_not(targets[i].name, capability))
            best = &targets[i];
    return best;
}

tile_status tile_target_choose(const char *name, const char *capability, const TileTarget **target, TileText *why) {
    *target = NULL;
    if (!name) name = "cpu";
    if (strcmp(name, "interp") == 0) return TILE_OK;
    if (strcmp(name, "cuda") == 0) return choose_gpu(target, why);
    *target = strcmp(name, "cpu") == 0 ? best_cpu(capability) : find(name);
    if (*target) return TILE_OK;
    if (strcmp(name, "cpu") == 0) {
        const char *limit = tile_cpu_limit_why_not("avx2", capability);
        tile_text_add(why, limit ? limit : "no CPU target runs on this machine: all need at least AVX2 and FMA");
        return TILE_UNAVAILABLE;
    }
    tile_text_format(why, "there is no target '%s'; targets are", name);
    for (size_t i = 0; i < KNOWN_COUNT; i++) tile_text_format(why, "%s %s", i ? "," : "", known[i].name);
    return TILE_INVALID_ARGUMENT;
}
