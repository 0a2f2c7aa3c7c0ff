/* The public API from text to results. */
#include <criterion/criterion.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/compile/compile.h"

static const char add_text[] = "kernel add[T: float](x: in T[M, N], y: in T[M, N], z: out T[M, N])\n"
                               "    tune BM in {1, 4}, BN in {64}\n"
                               "{\n"
                               "    grid (m, n) in (tiles(M, BM), tiles(N, BN)) { z[m, n] = x[m, n] + y[m, n] }\n"
                               "}\n";

static const char softmax_text[] =
    "kernel softmax(x: in f32[M, N], y: out f32[M, N])\n"
    "    require N >= 1, \"a row has elements\"\n"
    "    tune BM in {4}, BN in {128}\n"
    "{\n"
    "    grid m in tiles(M, BM) {\n"
    "        var top = full[BM](-inf)\n"
    "        for n in tiles(N, BN) { top = max(top, max(x[m, n], axis = 1)) }\n"
    "        var total = zeros[BM](f32)\n"
    "        for n in tiles(N, BN) {\n"
    "            total = total + sum(exp(x[m, n] - top[:, _]), axis = 1)\n"
    "        }\n"
    "        for n in tiles(N, BN) { y[m, n] = exp(x[m, n] - top[:, _]) / total[:, _] }\n"
    "    }\n"
    "}\n";

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

static TileCompiler *make_compiler(void) {
    TileCompiler *compiler = NULL;
    cr_assert_eq(tile_compiler_create(NULL, &compiler), TILE_OK);
    return compiler;
}

static TileLibrary *compile(TileCompiler *compiler, const char *text, const char *target, uint32_t flags) {
    TileLibrary *library = NULL;
    TileReport *report = NULL;
    TileCompileOptions options = {.struct_size = sizeof options, .target = target, .flags = flags};
    tile_status status = tile_compile(compiler, text, strlen(text), &options, &library, &report);
    cr_assert_eq(status, TILE_OK, "%s", report ? tile_report_text(report, false) : tile_status_text(status));
    tile_report_destroy(report);
    return library;
}

static TileKernel *only_kernel(TileLibrary *library) {
    TileKernel *kernel = NULL;
    cr_assert_eq(tile_library_kernel(library, NULL, &kernel), TILE_OK);
    return kernel;
}

/* A view of f32 numbers with room for its shape. */
typedef struct View {
    DLTensor dl;
    int64_t shape[2], strides[2];
} View;

static void make_view(View *view, float *data, int64_t rows, int64_t columns, int64_t row_stride,
                      int64_t column_stride) {
    *view = (View){.shape = {rows, columns}, .strides = {row_stride, column_stride}};
    view->dl = (DLTensor){.data = data,
                          .device = {kDLCPU, 0},
                          .ndim = 2,
                          .dtype = {kDLFloat, 32, 1},
                          .shape = view->shape,
                          .strides = view->strides};
}

static void launch(TileKernel *kernel, const TileArg *args, size_t count) {
    TileError error = {.message = ""};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    cr_assert_eq(tile_launch(kernel, args, count, &options), TILE_OK, "%s", error.message);
}

static float number_at(int64_t i) { return (float)((i * 2654435761u) % 1000) / 250.0f - 2.0f; }

static float x_memory[40000], y_memory[40000], z_memory[40000];

static void fill(void) {
    for (int64_t i = 0; i < 40000; i++) {
        x_memory[i] = number_at(i);
        y_memory[i] = number_at(i + 77);
        z_memory[i] = -7;
    }
}

/* z = x + y through strides of any kind; the gaps stay as they were. */
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

static const char *const targets[] = {"cpu", "avx2", "interp"};

Test(tile, add_through_odd_strides) {
    TileCompiler *compiler = make_compiler();
    for (int i = 0; i < 3; i++) {
        TileLibrary *library = compile(compiler, add_text, targets[i], 0);
        check_add(only_kernel(library), 7, 65);
        check_add(only_kernel(library), 1, 1);
        check_add(only_kernel(library), 5, 129);
        tile_library_destroy(library);
    }
    TileLibrary *library = compile(compiler, add_text, "avx512", TILE_COMPILE_EMULATE);
    tile_compiler_destroy(compiler); /* the library holds on to it */
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

Test(tile, softmax) {
    TileCompiler *compiler = make_compiler();
    for (int i = 0; i < 3; i++) {
        TileLibrary *library = compile(compiler, softmax_text, targets[i], 0);
        check_softmax(only_kernel(library), 9, 300);
        check_softmax(only_kernel(library), 4, 1);
        tile_library_destroy(library);
    }
    tile_compiler_destroy(compiler);
}

Test(tile, phases_and_temporaries) {
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

Test(tile, arguments_that_do_not_fit) {
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

/* y = 2 x of so many rows and columns, each written once, and nothing else. */
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

/* Code for rows of whole vectors serves all of those, and other code all others. */
Test(tile, extents_that_are_multiples) {
    static const char text[] = "kernel twice(x: in f32[M, N], y: out f32[M, N])\n"
                               "{\n"
                               "    grid (m, n) in (tiles(M, 4), tiles(N, 256)) { y[m, n] = x[m, n] * 2 }\n"
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

/* Where arguments may share memory, those that do not get code that knows it; by turns with those that do. */
Test(tile, memory_of_their_own) {
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

/* What is written has a stride of 0 where it has no elements; where it has some, the launch says what is wrong. */
Test(tile, written_with_a_stride_of_zero) {
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

/* Bad values at changing places, and good ones in between. */
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

/* The words are the same from machine code, from the executor running machine form, and from the interpreter. */
Test(tile, assertions_fail_the_launch) {
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

Test(tile, release_builds_drop_assertions) {
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

/* ---- threads ---- */

typedef struct Racer {
    TileKernel *kernel;
    int number;
    bool good;
} Racer;

/* Shapes and strides by turns, so that all of them miss at once and again later. */
static void *race(void *state) {
    Racer *racer = state;
    float *memory = calloc(30000, sizeof *memory);
    racer->good = memory != NULL;
    for (int round = 0; round < 12 && racer->good; round++) {
        int64_t rows = 3 + racer->number % 4, columns = 60 + round, step = 1 + (round + racer->number) % 3;
        View x, y, z;
        float *a = memory, *b = memory + 10000, *c = memory + 20000;
        for (int i = 0; i < 10000; i++) a[i] = number_at(i + racer->number), b[i] = number_at(i * 3);
        make_view(&x, a, rows, columns, columns * step, step);
        make_view(&y, b, rows, columns, columns, 1);
        make_view(&z, c, rows, columns, columns * step, step);
        TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl), TILE_TENSOR(&z.dl)};
        racer->good = tile_launch(racer->kernel, args, 3, NULL) == TILE_OK;
        for (int64_t i = 0; i < rows * columns; i++) racer->good &= c[i * step] == a[i * step] + b[i];
    }
    free(memory);
    return NULL;
}

Test(tile, sixteen_threads_launch_and_miss_at_once) {
    TileCompiler *compiler = make_compiler();
    TileLibrary *library = compile(compiler, add_text, NULL, 0);
    pthread_t threads[16];
    Racer racers[16];
    for (int i = 0; i < 16; i++) {
        racers[i] = (Racer){only_kernel(library), i, false};
        pthread_create(&threads[i], NULL, race, &racers[i]);
    }
    for (int i = 0; i < 16; i++) {
        pthread_join(threads[i], NULL);
        cr_assert(racers[i].good, "thread %d", i);
    }
    TileKernelStats stats;
    tile_kernel_stats(only_kernel(library), &stats);
    cr_assert_eq(stats.launches, 16 * 12);
    cr_assert_leq(stats.variants, 9, "%llu variants", (unsigned long long)stats.variants);
    tile_library_destroy(library);
    tile_compiler_destroy(compiler);
}

static void *compile_apart(void *compiler) {
    for (int i = 0; i < 3; i++) {
        TileLibrary *library = NULL;
        if (tile_compile(compiler, softmax_text, strlen(softmax_text), NULL, &library, NULL) != TILE_OK) return NULL;
        float in[6] = {1, 2, 3, 4, 5, 6}, out[6];
        View x, y;
        make_view(&x, in, 2, 3, 3, 1);
        make_view(&y, out, 2, 3, 3, 1);
        TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
        bool good = tile_launch(tile_library_kernel_at(library, 0), args, 2, NULL) == TILE_OK;
        tile_library_destroy(library);
        if (!good || fabsf(out[0] + out[1] + out[2] - 1) > 1e-6f) return NULL;
    }
    return compiler;
}

Test(tile, threads_compile_with_one_compiler) {
    TileCompiler *compiler = make_compiler();
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, compile_apart, compiler);
    for (int i = 0; i < 8; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        cr_assert_not_null(result);
    }
    tile_compiler_destroy(compiler);
}

/* ---- what a compilation says ---- */

static tile_status try_compile(const char *text, const TileCompileOptions *options, char *words, size_t size) {
    TileCompiler *compiler = make_compiler();
    TileLibrary *library = NULL;
    TileReport *report = NULL;
    tile_status status = tile_compile(compiler, text, strlen(text), options, &library, &report);
    snprintf(words, size, "%s", report ? tile_report_text(report, false) : "");
    if (report && status != TILE_OK) {
        cr_assert_gt(tile_report_error_count(report), 0);
        cr_assert_eq(tile_report_json(report)[0], '[');
    }
    tile_report_destroy(report);
    tile_library_destroy(library);
    tile_compiler_destroy(compiler);
    return status;
}

Test(tile, errors_of_the_text) {
    char words[4096];
    TileCompileOptions options = {.struct_size = sizeof options, .file = "wrong.tile"};
    cr_assert_eq(
        try_compile("kernel k(x: in f32[N]) { grid n in tiles(N, 8) { y[n] = x[n] } }", &options, words, sizeof words),
        TILE_INVALID_SOURCE);
    cr_assert(strstr(words, "wrong.tile:1:50: error:"), "%s", words);
    cr_assert_eq(try_compile("import nothing_of_this_name\n", &options, words, sizeof words), TILE_INVALID_SOURCE);
}

Test(tile, targets_and_settings_that_do_not_exist) {
    char words[4096];
    TileCompileOptions options = {.struct_size = sizeof options, .target = "abacus"};
    cr_assert_eq(try_compile(add_text, &options, words, sizeof words), TILE_INVALID_ARGUMENT);
    cr_assert_str_eq(words, "error: there is no target 'abacus'; targets are cpu, avx2, avx512, avx512bf16, sve, cuda, "
                            "sm_80, sm_86, sm_89, sm_90a, interp\n");
    TileSetting unknown = {"XYZ", "3"}, wrong = {"T", "i32"};
    options = (TileCompileOptions){.struct_size = sizeof options, .settings = &unknown, .setting_count = 1};
    cr_assert_eq(try_compile(add_text, &options, words, sizeof words), TILE_INVALID_ARGUMENT);
    cr_assert_str_eq(words, "error: there is nothing called 'XYZ' that a setting could decide\n");
    options.settings = &wrong;
    cr_assert_eq(try_compile(add_text, &options, words, sizeof words), TILE_INVALID_ARGUMENT);
    cr_assert_str_eq(words, "error: add: T must be float, not i32\n");
}

/* ---- what a launch says ---- */

static const char narrow_text[] = "kernel narrow[T: float](x: in T[M, D], y: out T[2 * M, D])\n"
                                  "    static D\n"
                                  "    require D <= 64, \"a row fits\"\n"
                                  "{\n"
                                  "    static_assert(D % 4 == 0, \"rows of four\")\n"
                                  "    static_assert(D >= 8)\n"
                                  "    grid m in tiles(M, 4) { y[m, :] = x[m, :] / 2 }\n"
                                  "}\n";

typedef tile_status (*Ask)(TileKernel *kernel, const TileArg *args, const TileLaunchOptions *options);
static tile_status ask_launch(TileKernel *kernel, const TileArg *args, const TileLaunchOptions *options) {
    return tile_launch(kernel, args, 2, options);
}
static tile_status ask_prepare(TileKernel *kernel, const TileArg *args, const TileLaunchOptions *options) {
    return tile_prepare(kernel, args, 2, options);
}
static tile_status ask_infer(TileKernel *kernel, const TileArg *args, const TileLaunchOptions *options) {
    DLDataType type;
    int64_t shape[TILE_MAX_RANK];
    uint32_t known;
    TileArg partial[] = {args[0], {.kind = TILE_ARG_NONE}};
    return tile_kernel_infer(kernel, partial, 2, 1, &type, shape, &known, options);
}

static void check_instance_report(Ask ask, int64_t width, tile_status expected, size_t errors, const char *text,
                                  const char *json) {
    TileCompiler *compiler = make_compiler();
    TileLibrary *library = compile(compiler, narrow_text, NULL, 0);
    TileReport *report = NULL;
    TileError error = {.message = ""};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error, .report = &report};
    View x, y;
    make_view(&x, x_memory, 3, width, width, 1);
    make_view(&y, y_memory, 6, width, width, 1);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    cr_assert_eq(ask(only_kernel(library), args, &options), expected);
    cr_assert_eq(error.status, expected);
    cr_assert(strncmp(error.message, "narrow: <text>:", 15) == 0, "%s", error.message);
    cr_assert_eq(tile_report_error_count(report), errors);
    cr_assert_str_eq(tile_report_text(report, false), text);
    cr_assert_not_null(strstr(tile_report_json(report), json), "%s", tile_report_json(report));
    tile_library_destroy(library);
    tile_compiler_destroy(compiler);
    cr_assert_str_eq(tile_report_text(report, false), text, "a report outlives the library");
    tile_report_destroy(report);
}

/* Errors that are there only for these types and static values: all of them, with places and notes. */
Test(tile, errors_of_an_instance) {
    static const Ask ways[] = {ask_launch, ask_prepare, ask_infer};
    static const char two[] = "<text>:5:19: error: the assertion does not hold: rows of four [assertion-failed]\n"
                              "    5 |     static_assert(D % 4 == 0, \"rows of four\")\n"
                              "      |                   ^~~~~~~~~~\n"
                              "note: here D = 7\n"
                              "<text>:1:8: note: in the instance `narrow[T = f32, D = 7]`\n"
                              "    1 | kernel narrow[T: float](x: in T[M, D], y: out T[2 * M, D])\n"
                              "      |        ^~~~~~\n"
                              "<text>:6:19: error: the assertion does not hold: D >= 8 [assertion-failed]\n"
                              "    6 |     static_assert(D >= 8)\n"
                              "      |                   ^~~~~~\n"
                              "note: here D = 7\n"
                              "<text>:1:8: note: in the instance `narrow[T = f32, D = 7]`\n"
                              "    1 | kernel narrow[T: float](x: in T[M, D], y: out T[2 * M, D])\n"
                              "      |        ^~~~~~\n";
    static const char required[] =
        "<text>:3:13: error: this requirement does not hold: D <= 64: a row fits [require-failed]\n"
        "    3 |     require D <= 64, \"a row fits\"\n"
        "      |             ^~~~~~~\n"
        "note: here D = 72\n"
        "<text>:1:8: note: in the instance `narrow[T = f32, D = 72]`\n"
        "    1 | kernel narrow[T: float](x: in T[M, D], y: out T[2 * M, D])\n"
        "      |        ^~~~~~\n";
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        check_instance_report(ways[i], 7, TILE_INVALID_SOURCE, 2, two,
                              "\"line\":6,\"column\":19,\"end_line\":6,\"end_column\":25,\"message\":\"the assertion");
        check_instance_report(ways[i], 72, TILE_INVALID_ARGUMENT, 1, required, "\"code\":\"require-failed\"");
    }
}

Test(tile, files) {
    TileCompiler *compiler = make_compiler();
    TileLibrary *library = NULL;
    TileReport *report = NULL;
    errno = 55;
    cr_assert_eq(tile_compile_file(compiler, "/nowhere/nothing.tile", NULL, &library, &report), TILE_NOT_FOUND);
    cr_assert_str_eq(tile_report_text(report, false),
                     "error: cannot read /nowhere/nothing.tile: there is no such file\n");
    cr_assert_eq(errno, 55);
    tile_report_destroy(report);
    tile_compiler_destroy(compiler);
}

Test(tile, standard_library_is_inside) {
    TileCompiler *compiler = make_compiler();
    TileLibrary *library =
        compile(compiler,
                "import nn\n"
                "kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 8) { y[n] = relu(x[n]) } }",
                NULL, 0);
    float in[3] = {-1, 0, 2}, out[3] = {9, 9, 9};
    View x, y;
    make_view(&x, in, 3, 0, 1, 0);
    make_view(&y, out, 3, 0, 1, 0);
    x.dl.ndim = y.dl.ndim = 1;
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    launch(only_kernel(library), args, 2);
    cr_assert(out[0] == 0 && out[1] == 0 && out[2] == 2);
    tile_library_destroy(library);
    tile_compiler_destroy(compiler);
}

/* ---- stages ---- */

static char *emit(TileCompiler *compiler, const char *target, TileStage stage, const char *after,
                  tile_status expected) {
    char *output = NULL;
    TileSetting type = {"T", "f32"};
    TileCompileOptions options = {
        .struct_size = sizeof options, .target = target, .settings = &type, .setting_count = 1};
    TileEmitOptions what = {.struct_size = sizeof what, .stage = stage, .after = after};
    TileReport *report = NULL;
    tile_status status = tile_emit_stage(compiler, add_text, strlen(add_text), &options, &what, &output, &report);
    cr_assert_eq(status, expected, "%s: %s", tile_stage_name(stage), report ? tile_report_text(report, false) : "");
    tile_report_destroy(report);
    return output;
}

Test(tile, stages) {
    static const char *const marks[TILE_STAGE_COUNT] = {"1:1 keyword kernel",
                                                        "(kernel add",
                                                        "func kernel tile @add",
                                                        "func phase machine @add.0",
                                                        "llvm.func",
                                                        "define ",
                                                        "vaddps",
                                                        ".visible .entry add$0"};
    TileCompiler *compiler = make_compiler();
    for (int stage = 0; stage < TILE_STAGE_COUNT; stage++) {
        char *output = emit(compiler, stage == TILE_STAGE_PTX ? "sm_80" : "avx2", (TileStage)stage, NULL, TILE_OK);
        cr_assert(strstr(output, marks[stage]), "%s:\n%s", tile_stage_name((TileStage)stage), output);
        tile_string_destroy(output);
    }
    char *output = emit(compiler, "avx2", TILE_STAGE_MACHINE, "programs", TILE_OK);
    cr_assert(strstr(output, "func phase tile @add.0"), "%s", output);
    tile_string_destroy(output);
    cr_assert_null(emit(compiler, "avx2", TILE_STAGE_MACHINE, "cpu-magic", TILE_INVALID_ARGUMENT));
    cr_assert_null(emit(compiler, "avx2", TILE_STAGE_PTX, NULL, TILE_INVALID_ARGUMENT));
    cr_assert_null(emit(compiler, "sm_80", TILE_STAGE_ASM, NULL, TILE_INVALID_ARGUMENT));
    cr_assert_null(emit(compiler, "interp", TILE_STAGE_MACHINE, NULL, TILE_INVALID_ARGUMENT));
    tile_compiler_destroy(compiler);
}

static const char comma_text[] = "kernel quarter(x: in f32[N], y: out f32[N], a: f32)\n"
                                 "    require a < 2.5\n"
                                 "{\n"
                                 "    grid n in tiles(N, 16) { y[n] = 0.25 * x[n] + C }\n"
                                 "}\n"
                                 "const C = 1.5\n";

/* The system's locale with a decimal comma, else one that is made here. */
static bool take_comma_locale(void) {
    char folder[] = "/tmp/tile-locale-XXXXXX", command[160];
    if (setlocale(LC_ALL, "de_DE.UTF-8")) return true;
    if (!mkdtemp(folder)) return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>/dev/null", folder);
    setenv("LOCPATH", folder, 1);
    bool made = system(command) == 0 && setlocale(LC_ALL, "de_DE.UTF-8");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 && made;
}

/* Numbers of texts, of settings and in messages have a point where the host's have a comma. */
Test(tile, locale_does_not_matter) {
    if (!take_comma_locale()) {
        cr_assert_null(getenv("TILE_REQUIRE_LOCALE"), "localedef makes no locale with a decimal comma");
        cr_skip("there is no locale with a decimal comma, and localedef cannot make one");
    }
    char before[256], number[16];
    snprintf(before, sizeof before, "%s", setlocale(LC_ALL, NULL));
    snprintf(number, sizeof number, "%.1f", 0.5);
    cr_assert_str_eq(number, "0,5");
    TileCompiler *compiler = make_compiler();
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        TileLibrary *library = compile(compiler, comma_text, targets[t], 0);
        View x, y;
        fill();
        make_view(&x, x_memory, 40, 0, 1, 0);
        make_view(&y, y_memory, 40, 0, 1, 0);
        x.dl.ndim = y.dl.ndim = 1;
        TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl), TILE_NUMBER(0.5)};
        launch(only_kernel(library), args, 3);
        for (int i = 0; i < 40; i++) cr_assert_eq(y_memory[i], 0.25f * x_memory[i] + 1.5f);
        TileError error = {.message = ""};
        TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
        args[2] = TILE_NUMBER(3.5);
        cr_assert_eq(tile_launch(only_kernel(library), args, 3, &options), TILE_INVALID_ARGUMENT);
        cr_assert_str_eq(error.message, "quarter: requires a < 2.5, but a = 3.5");
        tile_library_destroy(library);
    }
    tile_compiler_destroy(compiler);
    cr_assert_str_eq(setlocale(LC_ALL, NULL), before);
}

Test(tile, targets) {
    TileTargetInfo info;
    size_t count = 0;
    bool interpreter = false;
    while (tile_target_at(count, &info)) {
        cr_assert(info.name && info.description);
        cr_assert_eq(info.usable, info.why_not == NULL);
        interpreter |= strcmp(info.name, "interp") == 0 && info.usable;
        count++;
    }
    cr_assert(interpreter && count >= 4);
}
