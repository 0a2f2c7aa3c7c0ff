/* The cost of one call of a small kernel: N elementwise statements and a sum, on an input of (8, 16) and on inputs of
 * ((i % 10) + 4, 16), from C. scripts/latency.sh makes the table and the plot, with PyTorch for comparison if it is
 * installed.
 *
 * usage: tile_bench_latency TARGET [CALLS] (cpu, cuda, ..; 300)
 * prints lines: N, "fixed" or "varying", microseconds per call (median over batches of 100, each with one
 * synchronisation), number of compilations, relative error, milliseconds of compilation */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/clock.h"
#include "tile/tile.h"
#include "tools/measure.h"

enum { BATCH = 100, MOST_BATCHES = 100, WARM = 30, SHAPES = 10, COLUMNS = 16, MOST_ROWS = SHAPES + 3 };

/* The statements of the experiment, repeated. */
static const char *const statements[] = {"v + 0.1",     "sin(v)",  "v * 1.1",      "cos(v)",  "v + 0.2",
                                         "max(v, 0.0)", "v - 0.1", "exp(v * 0.5)", "v + 0.3", "1.0 / (1.0 + exp(-v))",
                                         "v * 1.2",     "sin(v)",  "v + 0.4",      "cos(v)",  "v - 0.2",
                                         "max(v, 0.0)", "v + 0.5", "exp(v * 0.4)", "v * 1.3", "1.0 / (1.0 + exp(-v))"};
enum { STATEMENTS = sizeof statements / sizeof *statements };

static double apply(int statement, double v) {
    switch (statement) {
    case 0: return v + 0.1;
    case 1:
    case 11: return sin(v);
    case 2: return v * 1.1;
    case 3:
    case 13: return cos(v);
    case 4: return v + 0.2;
    case 5:
    case 15: return v > 0 ? v : 0;
    case 6: return v - 0.1;
    case 7: return exp(v * 0.5);
    case 8: return v + 0.3;
    case 10: return v * 1.2;
    case 12: return v + 0.4;
    case 14: return v - 0.2;
    case 16: return v + 0.5;
    case 17: return exp(v * 0.4);
    case 18: return v * 1.3;
    default: return 1 / (1 + exp(-v));
    }
}

static void write_kernel(int count, char *text, size_t size) {
    size_t length =
        (size_t)snprintf(text, size,
                         "kernel tiny(x: in f32[M, N], y: out f32[]) {\n    grid one in 1 {\n"
                         "        var total = f32(0)\n"
                         "        for m in tiles(M, 16) { for n in tiles(N, 16) {\n            var v = x[m, n]\n");
    for (int i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, size - length, "            v = %s\n", statements[i % STATEMENTS]);
    snprintf(text + length, size - length,
             "            total = total + sum(v)\n        } }\n        y[] = total\n    }\n}\n");
}

/* Arrays in host memory, or in a GPU's. */
typedef struct Memory {
    bool gpu;
    float *input;
    void *x[SHAPES], *y;
    float host_y;
} Memory;

static tile_status make_memory(Memory *memory, bool gpu) {
    size_t bytes = sizeof(float) * MOST_ROWS * COLUMNS;
    uint32_t seed = 1;
    *memory = (Memory){.gpu = gpu, .y = &memory->host_y};
    memory->input = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory->input) return TILE_OUT_OF_MEMORY;
    for (int i = 0; i < MOST_ROWS * COLUMNS; i++) {
        seed = seed * 1664525 + 1013904223;
        memory->input[i] = (float)(seed >> 8) * 0x1p-22f - 2;
    }
    for (int i = 0; i < SHAPES; i++) {
        memory->x[i] = memory->input;
        if (!gpu) continue;
        TILE_TRY(tile_device_allocate(0, bytes, &memory->x[i], NULL));
        TILE_TRY(tile_device_write(0, memory->x[i], memory->input, bytes, NULL));
    }
    return gpu ? tile_device_allocate(0, sizeof(float), &memory->y, NULL) : TILE_OK;
}

static void release_memory(Memory *memory) {
    for (int i = 0; i < SHAPES && memory->gpu; i++) tile_device_release(0, memory->x[i]);
    if (memory->gpu) tile_device_release(0, memory->y);
    free(memory->input);
}

typedef struct Case {
    TileKernel *kernel;
    Memory *memory;
    TileLaunchOptions options;
    int64_t shapes[SHAPES][2];
    DLTensor x[SHAPES], y;
    TileArg arguments[SHAPES][2];
} Case;

static void make_case(Case *test, TileKernel *kernel, Memory *memory, TileThreadPool *pool, TileError *error,
                      bool vary) {
    DLDevice device = {memory->gpu ? kDLCUDA : kDLCPU, 0};
    DLDataType type = {kDLFloat, 32, 1};
    *test = (Case){.kernel = kernel, .memory = memory};
    test->options = (TileLaunchOptions){.struct_size = sizeof test->options, .threads = pool, .error = error};
    test->y = (DLTensor){.data = memory->y, .device = device, .dtype = type};
    for (int i = 0; i < SHAPES; i++) {
        test->shapes[i][0] = vary ? i + 4 : 8;
        test->shapes[i][1] = COLUMNS;
        test->x[i] =
            (DLTensor){.data = memory->x[i], .device = device, .ndim = 2, .dtype = type, .shape = test->shapes[i]};
        test->arguments[i][0] = TILE_TENSOR(&test->x[i]);
        test->arguments[i][1] = TILE_TENSOR(&test->y);
    }
}

static tile_status call(Case *test, int first, int count) {
    for (int i = first; i < first + count; i++)
        TILE_TRY(tile_launch(test->kernel, test->arguments[i % SHAPES], 2, &test->options));
    return test->memory->gpu ? tile_device_synchronize(0, NULL, test->options.error) : TILE_OK;
}

/* The greatest relative difference from double precision. */
static tile_status check(Case *test, int statement_count, double *worst) {
    *worst = 0;
    for (int s = 0; s < SHAPES; s++) {
        double sum = 0;
        TILE_TRY(call(test, s, 1));
        if (test->memory->gpu)
            TILE_TRY(tile_device_read(0, &test->memory->host_y, test->memory->y, sizeof(float), test->options.error));
        for (int i = 0; i < test->shapes[s][0] * COLUMNS; i++) {
            double v = (double)test->memory->input[i];
            for (int k = 0; k < statement_count; k++) v = apply(k % STATEMENTS, v);
            sum += v;
        }
        double error = fabs((double)test->memory->host_y - sum) / fabs(sum);
        *worst = error > *worst || isnan(error) ? error : *worst;
    }
    return TILE_OK;
}

static tile_status measure(TileLibrary *library, Memory *memory, TileThreadPool *pool, TileError *error, int count,
                           bool vary, int calls) {
    TileKernel *kernel;
    TileKernelStats stats;
    Case test;
    double worst = 0;
    TILE_TRY(tile_library_kernel(library, NULL, &kernel));
    make_case(&test, kernel, memory, pool, error, vary);
    TILE_TRY(call(&test, 0, WARM));
    double batches[MOST_BATCHES];
    for (int b = 0; b < calls / BATCH; b++) {
        uint64_t begin = tile_clock_ns();
        TILE_TRY(call(&test, b * BATCH, BATCH));
        batches[b] = (double)(tile_clock_ns() - begin) * 1e-3 / BATCH;
    }
    double each = tile_median(batches, calls / BATCH);
    TILE_TRY(check(&test, count, &worst));
    tile_kernel_stats(kernel, &stats);
    printf("%d %s %.3f %d %.1e %.1f\n", count, vary ? "varying" : "fixed", each, (int)stats.variants, worst,
           (double)stats.compile_ns * 1e-6);
    fflush(stdout);
    return worst < 1e-4 ? TILE_OK : TILE_INTERNAL;
}

static tile_status run(const char *target, int calls, TileError *error) {
    static const int counts[] = {1, 5, 10, 15, 20, 25, 30};
    TileCompiler *compiler;
    TileThreadPool *pool;
    TileThreadPoolOptions one = {.struct_size = sizeof one, .threads = 1};
    TileCompileOptions options = {.struct_size = sizeof options, .target = target};
    Memory memory;
    char text[4096];
    bool gpu = strcmp(target, "cuda") == 0 || strncmp(target, "sm_", 3) == 0;
    TILE_TRY(tile_compiler_create(NULL, &compiler));
    TILE_TRY(tile_thread_pool_create(&one, &pool));
    tile_status status = make_memory(&memory, gpu);
    for (size_t i = 0; i < 2 * sizeof counts / sizeof *counts && status == TILE_OK; i++) {
        TileLibrary *library = NULL;
        TileReport *report = NULL;
        write_kernel(counts[i / 2], text, sizeof text);
        status = tile_compile(compiler, text, strlen(text), &options, &library, &report);
        if (report) fputs(tile_report_text(report, false), stderr);
        tile_report_destroy(report);
        if (status == TILE_OK) status = measure(library, &memory, pool, error, counts[i / 2], i % 2, calls);
        tile_library_destroy(library);
    }
    release_memory(&memory);
    tile_thread_pool_destroy(pool);
    tile_compiler_destroy(compiler);
    return status;
}

int main(int count, char **words) {
    TileError error = {.message = ""};
    if (count < 2) return fprintf(stderr, "usage: tile_bench_latency TARGET [CALLS]\n"), 2;
    int calls = count > 2 ? atoi(words[2]) : 300;
    if (calls < BATCH || calls > BATCH * MOST_BATCHES) return fprintf(stderr, "CALLS is from 100 to 10000\n"), 2;
    tile_status status = run(words[1], calls / BATCH * BATCH, &error);
    if (status != TILE_OK) fprintf(stderr, "%s\n", error.message[0] ? error.message : tile_status_text(status));
    return status == TILE_OK ? 0 : 1;
}
