/* Results and errors of launches of compiled texts: strides, phases, facts, assertions. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "launches.h"

static const char parts_text[] =
    "kernel column_sums(x: in f32[M, N], y: out f32[N], rows: i64)\n"
    "    require rows > 0\n"
    "{\n"
    "    let parts = cdiv(M, rows)\n"
    "    temp part: f32[parts, N]\n"
    "    grid (p, n) in (parts, tiles(N, 32)) {\n"
    "        var total = zeros[32](f32)\n"
    "        for i in p * rows..min(M, (p + 1) * rows) { total = total + (x[i, n] else 0) }\n"
    "        part[p, n] = total\n"
    "    }\n"
    "    grid n in tiles(N, 32) {\n"
    "        var total = zeros[32](f32)\n"
    "        for p in 0..parts { total = total + part[p, n] }\n"
    "        y[n] = total\n"
    "    }\n"
    "}\n";

/* z = x + y with strides of any kind; the gaps must not change. */
static void check_add(TileKernel *kernel, int64_t rows, int64_t columns) {
    View x, y, z;
    fill();
    make_view(&x, x_memory + (rows - 1) * columns, rows, columns, -columns, 1);
    make_view(&y, y_memory, rows, columns, 1, rows);
    make_view(&z, z_memory + 5, rows, columns, 3 * columns, 2);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl), TILE_TENSOR(&z.dl)};
    launch(kernel, args, 3);
    int64_t written = 0, changed = 0;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < columns; k++, written++) {
            float expected = x_memory[(rows - 1 - i) * columns + k] + y_memory[i + k * rows];
            cr_assert_eq(z_memory[5 + i * 3 * columns + k * 2], expected, "%lld, %lld", (long long)i, (long long)k);
        }
    }
    for (int64_t i = 0; i < 40000; i++) changed += z_memory[i] != -7;
    cr_assert_eq(changed, written);
}

Test(launch, add_through_odd_strides) {
    TileCompiler *compiler = make_compiler();
    for (int i = 0; i < 3; i++) {
        TileLibrary *library = compile(compiler, add_text, targets[i], 0);
        check_add(only_kernel(library), 7, 65);
        check_add(only_kernel(library), 1, 1);
        check_add(only_kernel(library), 5, 129);
        tile_library_destroy(library);
    }
    TileLibrary *library = compile(compiler, add_text, "avx512", TILE_COMPILE_EMULATE);
    tile_compiler_destroy(compiler); /* the library keeps a reference */
    check_add(only_kernel(library), 7, 65);
    tile_library_destroy(library);
}

static void check_softmax(TileKernel *kernel, int64_t rows, int64_t columns) {
    View x, y;
    fill();
    make_view(&x, x_memory, rows, columns, columns + 3, 1);
    make_view(&y, y_memory, rows, columns, columns, 1);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    launch(kernel, args, 2);
    for (int64_t i = 0; i < rows; i++) {
        double top = -INFINITY, total = 0;
        const float *row = x_memory + i * (columns + 3);
        for (int64_t k = 0; k < columns; k++) top = fmax(top, row[k]);
        for (int64_t k = 0; k < columns; k++) total += exp(row[k] - top);
        for (int64_t k = 0; k < columns; k++) {
            double expected = exp(row[k] - top) / total;
            cr_assert(fabs(y_memory[i * columns + k] - expected) <= 2e-6 * expected);
        }
    }
}

Test(launch, softmax) {
    TileCompiler *compiler = make_compiler();
    for (int i = 0; i < 3; i++) {
        TileLibrary *library = compile(compiler, softmax_text, targets[i], 0);
        check_softmax(only_kernel(library), 9, 300);
        check_softmax(only_kernel(library), 4, 1);
        tile_library_destroy(library);
    }
    tile_compiler_destroy(compiler);
}

Test(launch, phases_and_temporaries) {
    TileCompiler *compiler = make_compiler();
    for (int i = 0; i < 3; i++) {
        TileLibrary *library = compile(compiler, parts_text, targets[i], 0);
        View x, y;
        fill();
        make_view(&x, x_memory, 100, 70, 70, 1);
        make_view(&y, y_memory, 70, 0, 1, 0);
        y.dl.ndim = 1;
        TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl), TILE_INTEGER(30)};
        launch(only_kernel(library), args, 3);
        for (int k = 0; k < 70; k++) {
            double expected = 0;
            for (int r = 0; r < 100; r++) expected += x_memory[r * 70 + k];
            cr_assert(fabs(y_memory[k] - expected) < 1e-3, "column %d on %s", k, targets[i]);
        }
        tile_library_destroy(library);
    }
    tile_compiler_destroy(compiler);
}

static void check_refused(const char *text, const TileArg *args, size_t count, const char *message) {
    TileCompiler *compiler = make_compiler();
    TileLibrary *library = compile(compiler, text, NULL, 0);
    TileError error = {.message = ""};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    fill();
    cr_assert_eq(tile_launch(only_kernel(library), args, count, &options), TILE_INVALID_ARGUMENT);
    cr_assert_str_eq(error.message, message);
    for (int i = 0; i < 40000; i++) cr_assert_eq(z_memory[i], -7);
    tile_library_destroy(library);
    tile_compiler_destroy(compiler);
}

Test(launch, arguments_that_do_not_fit) {
    View x, y, z;
    make_view(&x, x_memory, 4, 1024, 1024, 1);
    make_view(&y, y_memory, 4, 512, 512, 1);
    make_view(&z, z_memory, 4, 1024, 1024, 1);
    TileArg unequal[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    check_refused(softmax_text, unequal, 2, "softmax: y: dimension 1 (N) is 512, but x has N = 1024");
    make_view(&x, x_memory, 4, 0, 1, 1);
    make_view(&z, z_memory, 4, 0, 1, 1);
    TileArg none[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&z.dl)};
    check_refused(softmax_text, none, 2, "softmax: requires N >= 1: a row has elements, but N = 0");
    make_view(&x, x_memory, 4, 8, 8, 1);
    make_view(&y, y_memory, 8, 0, 1, 0);
    y.dl.ndim = 1;
    TileArg rows[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl), TILE_INTEGER(-2)};
    check_refused(parts_text, rows, 3, "column_sums: requires rows > 0, but rows = -2");
}

/* ---- facts ---- */

/* y = 2 x with so many rows and columns: each element of y is written, and nothing else. */
static void check_twice(TileKernel *kernel, int64_t rows, int64_t columns) {
    View x, y;
    fill();
    make_view(&x, x_memory, rows, columns, columns, 1);
    make_view(&y, y_memory, rows, columns, columns, 1);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    launch(kernel, args, 2);
    for (int64_t i = 0; i < 40000; i++)
        cr_assert_eq(y_memory[i], i < rows * columns ? 2 * x_memory[i] : number_at(i + 77));
}

/* One variant for rows that are whole vectors is used for all of those, another one for the others. Sums along rows keep these apart. */
Test(launch, extents_that_are_multiples) {
    static const char text[] = "kernel twice(x: in f32[M, N], y: out f32[M, N])\n"
                               "{\n"
                               "    grid (m, n) in (tiles(M, 4), tiles(N, 256)) { y[m, n] = x[m, n] * 2 + sum(x[m, n] * 0, axis = 1)[:, _] }\n"
                               "}\n";
    TileCompiler *compiler = make_compiler();
    TileLibrary *library = compile(compiler, text, "avx2", 0);
    static const int64_t columns[] = {8, 256, 264, 504, 7, 9, 255, 257, 24, 300};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) check_twice(only_kernel(library), 9, columns[i]);
    TileKernelStats stats;
    tile_kernel_stats(only_kernel(library), &stats);
    cr_assert_eq(stats.variants, 2, "%d", (int)stats.variants);
    tile_library_destroy(library);
    tile_compiler_destroy(compiler);
}

static const char shift_text[] = "kernel shift(x: in f32[N], y: inout f32[N]) allow overlap(x, y)\n"
                                 "{\n"
                                 "    grid one in 1 {\n"
                                 "        for i in 0..N { y[i] = (x[i] else 0) + 1 }\n"
                                 "        for i in 0..N { y[i] = y[i] + (x[i] else 0) }\n"
                                 "    }\n"
                                 "}\n";

static void check_shift(TileKernel *kernel, int64_t count, int64_t from, int64_t to) {
    static float wanted[256];
    View x, y;
    fill();
    memcpy(wanted, x_memory, sizeof wanted);
    for (int64_t i = 0; i < count; i++) wanted[to + i] = wanted[from + i] + 1;
    for (int64_t i = 0; i < count; i++) wanted[to + i] = wanted[to + i] + wanted[from + i];
    make_view(&x, x_memory + from, count, 0, 1, 0);
    make_view(&y, x_memory + to, count, 0, 1, 0);
    x.dl.ndim = y.dl.ndim = 1;
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    launch(kernel, args, 2);
    cr_assert(memcmp(wanted, x_memory, sizeof wanted) == 0, "from %d to %d", (int)from, (int)to);
}

/* If arguments may overlap, those that do not get a variant that relies on it; alternately with overlapping ones. */
Test(launch, memory_of_their_own) {
    TileCompiler *compiler = make_compiler();
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        TileLibrary *library = compile(compiler, shift_text, targets[t], 0);
        TileKernel *kernel = only_kernel(library);
        for (int round = 0; round < 3; round++) {
            check_shift(kernel, 50, 0, 100);
            check_shift(kernel, 50, 0, 1);
            check_shift(kernel, 50, 100, 50);
            check_shift(kernel, 50, 7, 0);
            check_shift(kernel, 50, 3, 3);
        }
        TileKernelStats stats;
        tile_kernel_stats(kernel, &stats);
        cr_assert_eq(stats.variants, 2, "%s: %d", targets[t], (int)stats.variants);
        tile_library_destroy(library);
    }
    tile_compiler_destroy(compiler);
}

/* An output may have a stride of 0 if it has no elements; otherwise the launch reports an error. */
Test(launch, written_with_a_stride_of_zero) {
    static const char text[] = "kernel sums(x: in f32[M, N], y: out f32[M, N], s: out f32[M])\n"
                               "{\n"
                               "    grid m in tiles(M, 2) {\n"
                               "        var total = zeros[2](f32)\n"
                               "        for n in tiles(N, 16) {\n"
                               "            let v = x[m, n]\n"
                               "            y[m, n] = v\n"
                               "            total = total + sum(v, axis = 1)\n"
                               "        }\n"
                               "        s[m] = total\n"
                               "    }\n"
                               "}\n";
    TileCompiler *compiler = make_compiler();
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        TileLibrary *library = compile(compiler, text, targets[t], 0);
        for (int64_t rows = 0; rows < 5; rows += 4) {
            View x, y, s;
            make_view(&x, x_memory, rows, 23, 23, 1);
            make_view(&y, y_memory, rows, 23, 1, 0);
            make_view(&s, z_memory, rows, 0, 1, 0);
            s.dl.ndim = 1;
            TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl), TILE_TENSOR(&s.dl)};
            TileError error = {.message = ""};
            TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
            tile_status status = tile_launch(only_kernel(library), args, 3, &options);
            cr_assert_str_eq(error.message,
                             rows ? "sums: y: some elements share memory, but the kernel writes them" : "");
            cr_assert_eq(status, rows ? TILE_INVALID_ARGUMENT : TILE_OK);
        }
        tile_library_destroy(library);
    }
    tile_compiler_destroy(compiler);
}

/* ---- assertions ---- */

static const char guarded_text[] = "kernel guarded(x: in f32[N], y: inout f32[N])\n"
                                   "{\n"
                                   "    grid n in tiles(N, 16) {\n"
                                   "        let v = x[n] else 0\n"
                                   "        assert(all(v < 500), \"small\")\n"
                                   "        assert(all(exp(v) > 0))\n"
                                   "        y[n] = 2 * v\n"
                                   "    }\n"
                                   "    grid n in tiles(N, 16) { y[n] = y[n] + 1 }\n"
                                   "}\n";

enum { GUARDED = 5000 };

typedef struct Guarded {
    TileKernel *kernel;
    TileThreadPool *pool;
    float x[GUARDED], y[GUARDED];
    bool good;
} Guarded;

static tile_status launch_guarded(Guarded *guarded, TileError *error) {
    View x, y;
    make_view(&x, guarded->x, GUARDED, 1, 1, 1);
    make_view(&y, guarded->y, GUARDED, 1, 1, 1);
    x.dl.ndim = y.dl.ndim = 1;
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = error, .threads = guarded->pool};
    return tile_launch(guarded->kernel, args, 2, &options);
}

/* Bad values at different positions, and good ones in between. */
static void *guard(void *state) {
    static const struct {
        float bad;
        const char *message;
    } cases[] = {{1000, "guarded: <text>:5:9: assertion failed: small, where v = 1000 at [%d]"},
                 {-1000, "guarded: <text>:6:9: assertion failed: all(exp(v) > 0), where exp(v) = 0 at [%d]"}};
    Guarded *guarded = state;
    guarded->good = true;
    for (int i = 0; i < GUARDED; i++) guarded->x[i] = number_at(i);
    for (int round = 0; round < 8; round++) {
        TileError error = {.message = ""};
        char message[128];
        float *place = &guarded->x[round * 701], kept = *place;
        snprintf(message, sizeof message, cases[round % 2].message, round * 701 % 16);
        *place = cases[round % 2].bad;
        guarded->good &= launch_guarded(guarded, &error) == TILE_INVALID_ARGUMENT;
        guarded->good &= strcmp(error.message, message) == 0;
        if (!guarded->good) fprintf(stderr, "%s\n", error.message);
        *place = kept;
        guarded->good &= launch_guarded(guarded, &error) == TILE_OK;
        for (int i = 0; i < GUARDED; i++) guarded->good &= guarded->y[i] == 2 * guarded->x[i] + 1;
    }
    return NULL;
}

/* The same text from machine code, from the executor running machine form, and from the interpreter. */
Test(launch, assertions_fail_the_launch) {
    static const struct {
        const char *target;
        uint32_t flags;
    } builds[] = {{NULL, 0}, {"avx2", 0}, {"avx2", TILE_COMPILE_EMULATE}, {"interp", 0}};
    TileCompiler *compiler = make_compiler();
    TileThreadPoolOptions options = {.struct_size = sizeof options, .threads = 4};
    TileThreadPool *pool = NULL;
    cr_assert_eq(tile_thread_pool_create(&options, &pool), TILE_OK);
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        TileLibrary *library = compile(compiler, guarded_text, builds[i].target, builds[i].flags | TILE_COMPILE_DEBUG);
        Guarded *guarded = calloc(4, sizeof *guarded);
        pthread_t threads[4];
        for (int t = 0; t < 4; t++) {
            guarded[t].kernel = only_kernel(library);
            guarded[t].pool = pool;
            pthread_create(&threads[t], NULL, guard, &guarded[t]);
        }
        for (int t = 0; t < 4; t++) {
            pthread_join(threads[t], NULL);
            cr_expect(guarded[t].good, "build %zu, thread %d", i, t);
        }
        free(guarded);
        tile_library_destroy(library);
    }
    tile_thread_pool_destroy(pool);
    tile_compiler_destroy(compiler);
}

Test(launch, release_builds_drop_assertions) {
    TileCompiler *compiler = make_compiler();
    TileLibrary *library = compile(compiler, guarded_text, "avx2", 0);
    Guarded *guarded = calloc(1, sizeof *guarded);
    guarded->kernel = only_kernel(library);
    guarded->x[7] = 1000;
    cr_assert_eq(launch_guarded(guarded, NULL), TILE_OK);
    cr_assert_eq(guarded->y[7], 2001);
    free(guarded);
    tile_library_destroy(library);
    tile_compiler_destroy(compiler);
}
