/* rand: the same numbers on every target, equal to the definition (tests/unit/lang/test_random.c compares the executor
 * with it). */
#include "effects.h"

#include "lang/scalar/math.h"

static const char noise_text[] =
    "kernel noise(y: out f32[M, N], z: out f32[M], seed: i64, first: i64) tune B in {24} {\n"
    "    grid (m, n) in (M, tiles(N, B)) { y[m, n] = rand(seed, first + m * N + n.idx) }\n"
    "    grid m in M { z[m] = rand(u32(seed), i32(m)) }\n"
    "}\n";

enum { ROWS = 3, MOST = 130 };

static void check_noise(const Way *way, int64_t columns, int64_t seed, int64_t first) {
    float y[ROWS * MOST], z[ROWS];
    Array arrays[2];
    array_of(&arrays[0], y, kDLFloat, 32, 2, (int64_t[]){ROWS, columns});
    array_of(&arrays[1], z, kDLFloat, 32, 1, (int64_t[]){ROWS});
    TileArg args[] = {TILE_TENSOR(&arrays[0].dl), TILE_TENSOR(&arrays[1].dl), TILE_INTEGER(seed), TILE_INTEGER(first)};
    run_way(noise_text, way, args, 4);
    for (int64_t i = 0; i < ROWS * columns; i++)
        cr_assert_eq(y[i], tile_math_rand((uint64_t)seed, (uint64_t)first + (uint64_t)i), "%s: %lld", way->target,
                     (long long)i);
    for (int64_t i = 0; i < ROWS; i++) cr_assert_eq(z[i], tile_math_rand((uint32_t)seed, (uint64_t)i));
}

Test(rand, same_bits_on_every_target) {
    for (int w = 0; w < WAY_COUNT; w++) {
        if (!way_usable(&all_ways[w])) continue;
        check_noise(&all_ways[w], MOST, 12345, 0);
        check_noise(&all_ways[w], 1, -1, INT64_MIN);
        check_noise(&all_ways[w], 23, INT64_MIN, UINT32_MAX - 5ll);
        check_noise(&all_ways[w], 24, 1ll << 40, -7);
        check_noise(&all_ways[w], 25, 0, INT64_MAX - 30);
    }
}
