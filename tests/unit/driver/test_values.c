/* Code for the values of scalars, compiled from texts: which scalars it is for, and that it computes the same bits. */
#include "effects.h"

#include <time.h>

#include "launch/guard.h"
#include "launch/variants.h"

/* A stride of a range, a factor of an index and a loop's bound decide; what is added to an index does not. */
static const char text[] = "kernel k(x: in f32[N], y: out f32[M], stride: i64, times: i32, rows: i64, shift: i64)\n"
                           "    require stride >= 1, \"forwards\"\n"
                           "{\n"
                           "    let twice = stride * 2\n"
                           "    grid m in tiles(M, 16) {\n"
                           "        var total = zeros[16](f32)\n"
                           "        for r in 0..rows {\n"
                           "            total = total + (x[m * stride + (r * i64(times) + shift)] else 0.5)\n"
                           "            total = total * 1.25 + sum(x[span(twice, 40)] else 0)\n"
                           "        }\n"
                           "        y[m] = total + 0.1 * f32(times)\n"
                           "    }\n"
                           "}\n";

enum { N = 100, M = 37 };

static void run(const Program *program, float *x, float *y, const int64_t *scalars) {
    Array arrays[2];
    int64_t n = N, m = M;
    array_of(&arrays[0], x, kDLFloat, 32, 1, &n);
    array_of(&arrays[1], y, kDLFloat, 32, 1, &m);
    TileArg args[6] = {TILE_TENSOR(&arrays[0].dl), TILE_TENSOR(&arrays[1].dl)};
    for (int i = 0; i < 4; i++) args[2 + i] = TILE_INTEGER(scalars[i]);
    launch_with(program, args, 6, NULL);
}

static void wait_for_variants(TileKernel *kernel, uint64_t count) {
    const struct timespec pause = {0, 1000000};
    TileKernelStats stats = {.variants = 0};
    for (int i = 0; i < 20000 && stats.variants < count; i++) {
        tile_kernel_stats(kernel, &stats);
        nanosleep(&pause, NULL);
    }
    cr_assert_eq(stats.variants, count);
}

static void check_way(const Way *way) {
    static const int64_t scalars[][4] = {{2, 3, 4, -5}, {1, -7, 1, 60}, {INT64_MAX, 1, 2, 0}};
    Program program = compile_way(text, way);
    float x[N], general[M], special[M];
    for (int i = 0; i < N; i++) x[i] = (float)((i * 37) % 101) / 7.0f;
    for (uint64_t s = 0; s < sizeof scalars / sizeof *scalars; s++) {
        memset(general, 0, sizeof general);
        memset(special, 1, sizeof special);
        run(&program, x, general, scalars[s]);
        run(&program, x, general, scalars[s]);
        wait_for_variants(program.kernel, s + 2);
        run(&program, x, special, scalars[s]);
        const TileVariant *last = atomic_load(&program.kernel->last);
        cr_assert(atomic_load(&last->special), "%s", way->target);
        for (int i = 0; i < 4; i++) {
            uint64_t relies = last->code->need[2 + i] & TILE_GUARD_VALUE;
            cr_assert_eq(relies != 0, i != 3, "%s: scalar %d", way->target, i);
        }
        cr_assert(memcmp(general, special, sizeof general) == 0, "%s%s: values %d", way->target,
                  way->flags ? ", emulated" : "", (int)s);
    }
    release_program(&program);
}

Test(values, the_same_bits) {
    for (int w = 1; w < WAYS_WITH_GPU; w++)
        if (way_usable(&all_ways[w])) check_way(&all_ways[w]);
}

/* The interpreter defines the meaning, and has no such code. */
Test(values, none_for_the_interpreter) {
    static const int64_t scalars[] = {2, 3, 4, -5};
    Program program = compile_way(text, &all_ways[0]);
    float x[N] = {1}, y[M];
    for (int i = 0; i < 4; i++) run(&program, x, y, scalars);
    TileKernelStats stats;
    tile_kernel_stats(program.kernel, &stats);
    cr_assert_eq(stats.variants, 1);
    release_program(&program);
}

/* Messages of such code show the scalars that they show in general code. */
Test(values, messages) {
    Program program = compile_way("kernel k(x: in f32[N], y: out f32[M], s: i64)\n"
                                  "    require s * M <= N, \"enough\"\n"
                                  "{\n"
                                  "    grid m in tiles(M, 8) { y[m] = x[m * s] else 0 }\n"
                                  "}\n",
                                  &all_ways[3]);
    float x[64] = {1}, y[64];
    for (int64_t i = 0, n = 64, m = 8; i < 4; i++) {
        Array arrays[2];
        TileError error = {.message = ""};
        TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
        if (i == 3) m = 40;
        array_of(&arrays[0], x, kDLFloat, 32, 1, &n);
        array_of(&arrays[1], y, kDLFloat, 32, 1, &m);
        TileArg args[] = {TILE_TENSOR(&arrays[0].dl), TILE_TENSOR(&arrays[1].dl), TILE_INTEGER(2)};
        tile_status status = tile_launch(program.kernel, args, 3, &options);
        cr_assert_eq(status, i == 3 ? TILE_INVALID_ARGUMENT : TILE_OK);
        if (i == 1) wait_for_variants(program.kernel, 2);
        if (i == 3) cr_assert(strstr(error.message, "s = 2"), "%s", error.message);
    }
    release_program(&program);
}
