#include "base/cpu.h"
#include "base/cpu_probe.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* The feature groups that targets require. */
enum {
    X86_64_V3 = 1,
    X86_64_V4 = 2,
    AVX512_BF16 = 4,
    AVX512_VNNI = 8,
    ARM_SVE = 16,
    AVX512_VBMI = 32,
    AMX = 64,          /* tiles, bf16 and 8-bit integers */
    AMX_PERMITTED = 128 /* the operating system lets this process use them */
};

/* Targets of one architecture are adjacent, better ones later. */
static const struct {
    const char *name;
    unsigned needs;
} levels[] = {
    {"avx2", X86_64_V3},
    {"avx512", X86_64_V3 | X86_64_V4},
    {"avx512vnni", X86_64_V3 | X86_64_V4 | AVX512_VNNI},
    {"avx512bf16", X86_64_V3 | X86_64_V4 | AVX512_BF16 | AVX512_VNNI},
    {"amx", X86_64_V3 | X86_64_V4 | AVX512_BF16 | AVX512_VNNI | AVX512_VBMI | AMX | AMX_PERMITTED},
    {"sve", ARM_SVE},
};

enum { LEVEL_COUNT = sizeof levels / sizeof *levels };

#if defined(__x86_64__)
/* Has the CPU AMX's instructions, and does the operating system save their registers? */
static bool has_amx(void) {
    enum { OSXSAVE = 1 << 27, BF16 = 1 << 22, TILE = 1 << 24, INT8 = 1 << 25, ALL = BF16 | TILE | INT8 };
    enum { SAVED_CONFIG = 1 << 17, SAVED_DATA = 1 << 18, SAVED = SAVED_CONFIG | SAVED_DATA };
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE)) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & ALL) != ALL) return false;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & SAVED) == SAVED;
}

/* Asks Linux for AMX's registers, which a process has to before it uses them: they make its threads' signal frames
 * larger. The permission holds for all threads, and asking again changes nothing, so nothing has to be remembered. */
static bool ask_for_amx(void) {
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

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
    if (__builtin_cpu_supports("avx512vbmi")) features |= AVX512_VBMI;
    if (has_amx()) features |= AMX;
    return features;
}

/* Those that have to be asked for. */
static unsigned permitted_features(unsigned wanted) {
    return wanted & AMX_PERMITTED && ask_for_amx() ? AMX_PERMITTED : 0;
}
#elif defined(__aarch64__)
static unsigned machine_features(void) {
    enum { HWCAP_BIT_SVE = 1 << 22 };
    return getauxval(AT_HWCAP) & HWCAP_BIT_SVE ? ARM_SVE : 0;
}
#else
static unsigned machine_features(void) { return 0; }
#endif

#if !defined(__x86_64__)
static unsigned permitted_features(unsigned wanted) {
    (void)wanted;
    return 0;
}
#endif

static size_t find_level(const char *name) {
    size_t level = 0;
    while (level < LEVEL_COUNT && strcmp(levels[level].name, name) != 0) level++;
    return level;
}

const char *tile_cpu_surpassed_by(const char *target) {
    bool slow = strcmp(target, "avx512bf16") == 0 && machine_features() & AVX512_BF16 && !tile_cpu_multiplies_words();
    return slow ? "avx512vnni" : NULL;
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
    unsigned missing = level < LEVEL_COUNT ? levels[level].needs & ~machine_features() : 0;
    if (level == LEVEL_COUNT || missing & ~(unsigned)AMX_PERMITTED)
        return level < LEVEL_COUNT && levels[level].needs == ARM_SVE
                   ? "this CPU is no AArch64 with SVE"
                   : "this CPU lacks instructions that the target uses";
    if (most && *most) {
        size_t limit = find_level(most);
        if (limit == LEVEL_COUNT) return "TILE_CPU_CAPABILITY is not the name of a CPU target";
        if (level > limit) return "TILE_CPU_CAPABILITY forbids it";
    }
    if (missing & ~permitted_features(missing)) return "the operating system does not let this process use AMX";
    return NULL;
}
