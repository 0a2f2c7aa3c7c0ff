#include "base/cpu.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

/* The feature groups that targets require. */
enum { X86_64_V3 = 1, X86_64_V4 = 2, AVX512_BF16 = 4, AVX512_VNNI = 8, ARM_SVE = 16 };

/* Targets of one architecture are adjacent, better ones later. */
static const struct {
    const char *name;
    unsigned needs;
} levels[] = {
    {"avx2", X86_64_V3},
    {"avx512", X86_64_V3 | X86_64_V4},
    {"avx512bf16", X86_64_V3 | X86_64_V4 | AVX512_BF16 | AVX512_VNNI},
    {"sve", ARM_SVE},
};

enum { LEVEL_COUNT = sizeof levels / sizeof *levels };

#if defined(__x86_64__)
static unsigned machine_features(void) {
    unsigned features = 0;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt"))
        features |= X86_64_V3;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        features |= X86_64_V4;
    if (__builtin_cpu_supports("avx512bf16")) features |= AVX512_BF16;
    if (__builtin_cpu_supports("avx512vnni")) features |= AVX512_VNNI;
    return features;
}
#elif defined(__aarch64__)
static unsigned machine_features(void) {
    enum { HWCAP_BIT_SVE = 1 << 22 };
    return getauxval(AT_HWCAP) & HWCAP_BIT_SVE ? ARM_SVE : 0;
}
#else
static unsigned machine_features(void) { return 0; }
#endif

static size_t find_level(const char *name) {
    size_t level = 0;
    while (level < LEVEL_COUNT && strcmp(levels[level].name, name) != 0) level++;
    return level;
}

const char *tile_cpu_name_at(size_t index) { return index < LEVEL_COUNT ? levels[index].name : NULL; }

const char *tile_cpu_limit_why_not(const char *target, const char *most) {
    size_t level = find_level(target), limit = most ? find_level(most) : LEVEL_COUNT;
    if (!most || level == LEVEL_COUNT) return NULL;
    if (limit == LEVEL_COUNT) return "the CPU capability that is set is not the name of a CPU target";
    return level > limit ? "the CPU capability that is set forbids it" : NULL;
}

const char *tile_cpu_why_not(const char *target) {
    const char *most = getenv("TILE_CPU_CAPABILITY");
    size_t level = find_level(target);
    if (level == LEVEL_COUNT || (levels[level].needs & ~machine_features()))
        return level < LEVEL_COUNT && levels[level].needs == ARM_SVE
                   ? "this CPU is no AArch64 with SVE"
                   : "this CPU lacks instructions that the target uses";
    if (!most || !*most) return NULL;
    size_t limit = find_level(most);
    if (limit == LEVEL_COUNT) return "TILE_CPU_CAPABILITY is not the name of a CPU target";
    return level > limit ? "TILE_CPU_CAPABILITY forbids it" : NULL;
}
