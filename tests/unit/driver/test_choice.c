/* Constants of tune clauses that the model of a GPU chooses: by sizes alone, whatever was launched before. */
#include <pthread.h>
#include <stdlib.h>

#include "effects.h"

/* Few columns of many rows have few programs: they are split, and blocks are tall; many columns of few rows are not. */
static const char columns[] = "kernel columns(x: in f32[M, N], y: out f32[N])\n"
                              "    tune BM in {4, 64}, BN in {64, 16}\n{\n"
                              "    grid n in tiles(N, BN) {\n"
                              "        var total = zeros[BN](f32)\n"
                              "        for m in tiles(M, BM) { total += sum(x[m, n] else 0, axis = 0) }\n"
                              "        y[n] = total\n    }\n}\n";

static const Way emulated = {"sm_90a", TILE_COMPILE_EMULATE};

enum { MOST = 1 << 16 };

/* Sums the columns of a matrix of so many rows into y. */
static void launch_columns(const Program *program, int64_t rows, int64_t n, float *y) {
    float *x = malloc(MOST * sizeof *x);
    Array arrays[2];
    cr_assert(x && rows * n <= MOST);
    for (int64_t i = 0; i < rows * n; i++) x[i] = (float)(i * 7919 % 1000) / 999;
    array_of(&arrays[0], x, kDLFloat, 32, 2, (int64_t[]){rows, n});
    array_of(&arrays[1], y, kDLFloat, 32, 1, (int64_t[]){n});
    launch_with(program, (TileArg[]){TILE_TENSOR(&arrays[0].dl), TILE_TENSOR(&arrays[1].dl)}, 2, NULL);
    for (int64_t k = 0; k < n; k++) {
        double sum = 0;
        for (int64_t m = 0; m < rows; m++) sum += x[m * n + k];
        cr_expect_float_eq(y[k], (float)sum, 1e-5 * (double)rows, "%lld rows, column %lld", (long long)rows, (long long)k);
    }
    free(x);
}

static uint64_t compiled(const Program *program) {
    TileKernelStats stats;
    tile_kernel_stats(program->kernel, &stats);
    return stats.variants;
}

/* The bits are those of a library that has seen other sizes before. */
Test(choice, depends_on_no_launch_before) {
    static const int64_t sizes[][2] = {{4000, 16}, {16, 2000}, {1000, 60}, {3, 3}, {777, 77}};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    static float first[SIZES][2048], again[2048];
    Program forth = compile_way(columns, &emulated), back = compile_way(columns, &emulated);
    for (size_t i = 0; i < SIZES; i++) launch_columns(&forth, sizes[i][0], sizes[i][1], first[i]);
    for (size_t i = SIZES; i-- > 0;) {
        launch_columns(&back, sizes[i][0], sizes[i][1], again);
        cr_expect(memcmp(again, first[i], (size_t)sizes[i][1] * sizeof *again) == 0, "%zu", i);
    }
    cr_expect(compiled(&forth) > 1, "all sizes have the same constants");
    release_program(&forth);
    release_program(&back);
}

/* A hundred numbers of rows need no hundred variants. */
Test(choice, sizes_near_one_another_share_code) {
    static float y[64];
    Program program = compile_way(columns, &emulated);
    for (int64_t rows = 400; rows < 500; rows++) launch_columns(&program, rows, 24, y);
    cr_expect_leq(compiled(&program), 3, "%llu variants", (unsigned long long)compiled(&program));
    release_program(&program);
}

static Program compile_with(const char *tuning, bool deterministic) {
    Program program = {0};
    TileSettings settings = {.struct_size = sizeof settings, .tuning = tuning, .deterministic = deterministic};
    TileCompilerOptions options = {.struct_size = sizeof options, .settings = &settings};
    TileCompileOptions compile = {.struct_size = sizeof compile, .target = "sm_90a", .flags = TILE_COMPILE_EMULATE};
    cr_assert_eq(tile_compiler_create(&options, &program.compiler), TILE_OK);
    cr_assert_eq(tile_compile(program.compiler, columns, strlen(columns), &compile, &program.library, NULL), TILE_OK);
    cr_assert_eq(tile_library_kernel(program.library, NULL, &program.kernel), TILE_OK);
    return program;
}

/* `tuning = off` takes the text's own constants, and so one order of sums; choices are no reason to refuse determinism. */
Test(choice, settings) {
    static float y[2][2048];
    Program off = compile_with("off", false), strict = compile_with(NULL, true), free_one = compile_with(NULL, false);
    launch_columns(&off, 4000, 16, y[0]);
    launch_columns(&off, 16, 2000, y[0]);
    cr_expect_eq(compiled(&off), 1);
    launch_columns(&strict, 4000, 16, y[0]);
    launch_columns(&free_one, 4000, 16, y[1]);
    cr_expect(memcmp(y[0], y[1], 16 * sizeof **y) == 0);
    release_program(&off);
    release_program(&strict);
    release_program(&free_one);
}

static void *launch_many(void *state) {
    float *y = malloc(2048 * sizeof *y);
    for (int64_t i = 0; i < 12; i++) launch_columns(state, 100 + 300 * (i % 4), 10 + i, y);
    free(y);
    return NULL;
}

Test(choice, threads) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    Program program = compile_way(columns, &emulated);
    for (int i = 0; i < THREADS; i++) cr_assert_eq(pthread_create(&threads[i], NULL, launch_many, &program), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    release_program(&program);
}
