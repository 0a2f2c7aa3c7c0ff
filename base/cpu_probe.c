#include "base/cpu_probe.h"

/* Widened to f32 and multiplied by two multiply-adds, a word takes the time of these: their operands are widened once for many
 * products. Between one multiply-add and two there is no CPU, so half way is far from either. */
bool tile_cpu_is_word_fast(uint64_t word, uint64_t multiply_add) { return 2 * word < 3 * multiply_add; }

#if defined(__x86_64__)
#include <x86intrin.h>

enum {
    ROUNDS = 16, /* the least of them counts: others may have been interrupted, or have run while the clock rose */
    CALLS = 64
};

/* Twelve sums that do not wait for one another: more than are in flight on any CPU. */
#define TWELVE(instruction)                                                                                            \
    instruction " %%zmm12, %%zmm12, %%zmm0\n\t" instruction " %%zmm12, %%zmm12, %%zmm1\n\t"                            \
    instruction " %%zmm12, %%zmm12, %%zmm2\n\t" instruction " %%zmm12, %%zmm12, %%zmm3\n\t"                            \
    instruction " %%zmm12, %%zmm12, %%zmm4\n\t" instruction " %%zmm12, %%zmm12, %%zmm5\n\t"                            \
    instruction " %%zmm12, %%zmm12, %%zmm6\n\t" instruction " %%zmm12, %%zmm12, %%zmm7\n\t"                            \
    instruction " %%zmm12, %%zmm12, %%zmm8\n\t" instruction " %%zmm12, %%zmm12, %%zmm9\n\t"                            \
    instruction " %%zmm12, %%zmm12, %%zmm10\n\t" instruction " %%zmm12, %%zmm12, %%zmm11\n\t"
#define CLOBBERED                                                                                                      \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12"
#define ZERO_ALL                                                                                                       \
    "vpxor %%xmm0, %%xmm0, %%xmm0\n\tvpxor %%xmm1, %%xmm1, %%xmm1\n\tvpxor %%xmm2, %%xmm2, %%xmm2\n\t"                 \
    "vpxor %%xmm3, %%xmm3, %%xmm3\n\tvpxor %%xmm4, %%xmm4, %%xmm4\n\tvpxor %%xmm5, %%xmm5, %%xmm5\n\t"                 \
    "vpxor %%xmm6, %%xmm6, %%xmm6\n\tvpxor %%xmm7, %%xmm7, %%xmm7\n\tvpxor %%xmm8, %%xmm8, %%xmm8\n\t"                 \
    "vpxor %%xmm9, %%xmm9, %%xmm9\n\tvpxor %%xmm10, %%xmm10, %%xmm10\n\tvpxor %%xmm11, %%xmm11, %%xmm11\n\t"           \
    "vpxor %%xmm12, %%xmm12, %%xmm12\n\t"
#define TIMED(name, instruction)                                                                                       \
    __attribute__((target("avx512f,avx512bf16"), noinline)) static uint64_t name(void) {                               \
        uint64_t calls = CALLS;                                                                                        \
        _mm_lfence();                                                                                                  \
        uint64_t begin = __rdtsc();                                                                                    \
        __asm__ volatile(ZERO_ALL "1:\n\t" TWELVE(instruction) "dec %0\n\tjnz 1b\n\tvzeroupper"                         \
                         : "+r"(calls)                                                                                 \
                         :                                                                                             \
                         : CLOBBERED, "cc");                                                                           \
        _mm_lfence();                                                                                                  \
        return __rdtsc() - begin;                                                                                      \
    }

TIMED(time_multiply_adds, "vfmadd231ps")
TIMED(time_words, "vdpbf16ps")

bool tile_cpu_multiplies_words(void) {
    uint64_t adds = UINT64_MAX, words = UINT64_MAX;
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bf16")) return false;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t add = time_multiply_adds(), word = time_words();
        if (add < adds) adds = add;
        if (word < words) words = word;
    }
    return tile_cpu_is_word_fast(words, adds);
}
#else
bool tile_cpu_multiplies_words(void) { return false; }
#endif
