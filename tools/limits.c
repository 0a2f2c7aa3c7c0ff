#include "tools/limits.h"

#include <stdlib.h>
#include <string.h>

#include "launch/threads.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* ---- multiplying and adding ---- */

/* Sixteen independent chains: more than latency times throughput of any machine so far. Each is a variable of its own,
 * or compilers would keep them in memory; the empty assembly keeps compilers from folding iterations. */
enum { CHAINS = 16 };
#define EACH_CHAIN(X, ...)                                                                                             \
    X(0, __VA_ARGS__)                                                                                                  \
    X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)        \
        X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__) X(11, __VA_ARGS__) X(12, __VA_ARGS__) \
            X(13, __VA_ARGS__) X(14, __VA_ARGS__) X(15, __VA_ARGS__)
#define BEGIN_CHAIN(i, Vector, fma, constraint) Vector sum##i = addend;
#define GO_ON_CHAIN(i, Vector, fma, constraint)                                                                        \
    sum##i = fma(sum##i, factor, addend);                                                                              \
    __asm__ volatile("" : constraint(sum##i));

#define FMA_LOOP(Vector, broadcast, fma, constraint)                                                                   \
    const Vector factor = broadcast(0.999f), addend = broadcast(0.001f);                                               \
    EACH_CHAIN(BEGIN_CHAIN, Vector, fma, constraint)                                                                   \
    for (long round = 0; round < rounds; round++) {                                                                    \
        EACH_CHAIN(GO_ON_CHAIN, Vector, fma, constraint)                                                               \
    }                                                                                                                  \
    return 2.0 * CHAINS * (double)(sizeof(Vector) / sizeof(float)) * (double)rounds

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static double fma_512(long rounds) {
    FMA_LOOP(__m512, _mm512_set1_ps, _mm512_fmadd_ps, "+v");
}

__attribute__((target("avx2,fma"))) static double fma_256(long rounds) {
    FMA_LOOP(__m256, _mm256_set1_ps, _mm256_fmadd_ps, "+x");
}
#elif defined(__aarch64__)
static float32x4_t fma_neon(float32x4_t x, float32x4_t y, float32x4_t z) { return vfmaq_f32(z, x, y); }
#endif

#if !defined(__aarch64__)
static float plain(float x) { return x; }
static float multiply_add(float x, float y, float z) { return x * y + z; }
#endif

double tile_fma_flops(long rounds) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return fma_512(rounds);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return fma_256(rounds);
#endif
#if defined(__aarch64__)
    FMA_LOOP(float32x4_t, vdupq_n_f32, fma_neon, "+w");
#elif defined(__x86_64__)
    FMA_LOOP(float, plain, multiply_add, "+x");
#else
    FMA_LOOP(float, plain, multiply_add, "+m");
#endif
}

TileFmaWork tile_fma_work(void) {
    TileFmaWork work = {.rounds = 100 * 1000};
    work.flops = tile_fma_flops(1) * (double)work.rounds * tile_thread_pool_size(NULL);
    return work;
}

static void fma_range(void *state, int64_t begin, int64_t end) {
    const TileFmaWork *work = state;
    for (int64_t i = begin; i < end; i++) tile_fma_flops(work->rounds);
}

bool tile_fma_run(void *state) {
    TileThreadPool *pool = tile_thread_pool_default();
    if (!pool) return false;
    tile_thread_pool_run(pool, tile_thread_pool_size(pool), fma_range, state);
    return true;
}

/* ---- copying ---- */

enum { COPY_CHUNK = 1 << 18, LEAST_COPY = 1 << 12, MOST_COPY = 1 << 29 };

bool tile_copy_create(TileCopyWork *work, double bytes) {
    double half = bytes / 2;
    work->bytes = half < LEAST_COPY ? LEAST_COPY : half > MOST_COPY ? MOST_COPY : (size_t)half;
    work->from = malloc(work->bytes);
    work->to = malloc(work->bytes);
    if (work->from && work->to) {
        memset(work->from, 1, work->bytes);
        memset(work->to, 2, work->bytes);
        return true;
    }
    tile_copy_destroy(work);
    return false;
}

void tile_copy_destroy(TileCopyWork *work) {
    free(work->from);
    free(work->to);
    work->from = work->to = NULL;
}

static void copy_range(void *state, int64_t begin, int64_t end) {
    const TileCopyWork *work = state;
    size_t first = (size_t)begin * COPY_CHUNK, last = (size_t)end * COPY_CHUNK;
    if (last > work->bytes) last = work->bytes;
    memcpy(work->to + first, work->from + first, last - first);
}

bool tile_copy_run(void *state) {
    const TileCopyWork *work = state;
    TileThreadPool *pool = tile_thread_pool_default();
    if (!pool) return false;
    tile_thread_pool_run(pool, (int64_t)((work->bytes + COPY_CHUNK - 1) / COPY_CHUNK), copy_range, state);
    return true;
}
