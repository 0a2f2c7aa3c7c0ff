/* The cost of a launch for the caller: tile_launch of a kernel with three tensors that has been launched before,
 * compared with a plain cuLaunchKernel of the same code with the same parameters. Measured alternately, medians; the
 * GPU has almost nothing to do, and is waited for outside of the measured time.
 *
 * usage: tile_launch_bench [ROUNDS]
 * Prints nanoseconds per launch and the ratio. Exit status 2 if there is no GPU. Needs no CUDA toolkit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/clock.h"
#include "launch/cuda.h"
#include "tile/tile.h"
#include "tools/measure.h"

enum { BATCH = 64, COLUMNS = 1024, TENSORS = 3, SLOTS = 5 * TENSORS, THREADS_OF_A_WARP = 32 };

static const char text[] = "kernel add(x: in f32[M, N], y: in f32[M, N], z: out f32[M, N])\n"
                           "{\n"
                           "    grid (m, n) in (tiles(M, 1), tiles(N, 1024)) { z[m, n] = x[m, n] + y[m, n] }\n"
                           "}\n";

typedef struct Bench {
    TileCompiler *compiler;
    TileLibrary *library;
    TileKernel *kernel;
    int64_t shape[2];
    DLTensor tensors[TENSORS];
    TileArg arguments[TENSORS];
    void *bare; /* the same kernel, as the driver's handle */
    unsigned threads;
} Bench;

static bool fail(const char *what, const char *why) {
    fprintf(stderr, "tile_launch_bench: %s: %s\n", what, why);
    return false;
}

static bool make_tensors(Bench *bench) {
    TileError error;
    bench->shape[0] = 1;
    bench->shape[1] = COLUMNS;
    for (int i = 0; i < TENSORS; i++) {
        void *memory;
        if (tile_device_allocate(0, COLUMNS * sizeof(float), &memory, &error) != TILE_OK)
            return fail("memory", error.message);
        bench->tensors[i] = (DLTensor){
            .data = memory, .device = {kDLCUDA, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = bench->shape};
        bench->arguments[i] = TILE_TENSOR(&bench->tensors[i]);
    }
    return true;
}

static bool make_kernel(Bench *bench, const TileCompileOptions *options) {
    if (tile_compiler_create(NULL, &bench->compiler) != TILE_OK ||
        tile_compile(bench->compiler, text, strlen(text), options, &bench->library, NULL) != TILE_OK)
        return fail("add", "does not compile");
    bench->kernel = tile_library_kernel_at(bench->library, 0);
    return true;
}

/* The launcher's code, loaded a second time. */
static bool make_bare(Bench *bench, const TileCompileOptions *options) {
    TileEmitOptions emit = {.struct_size = sizeof emit, .stage = TILE_STAGE_PTX};
    const TileCudaDriver *driver = tile_cuda_driver();
    char *ptx = NULL;
    void *library;
    if (tile_emit_stage(bench->compiler, text, strlen(text), options, &emit, &ptx, NULL) != TILE_OK)
        return fail("add", "has no PTX");
    const char *threads = strstr(ptx, ".reqntid ");
    bench->threads = threads ? (unsigned)atoi(threads + strlen(".reqntid ")) : THREADS_OF_A_WARP;
    int result = driver->library_load(&library, ptx, NULL, NULL, 0, NULL, NULL, 0);
    if (result == TILE_CUDA_SUCCESS) result = driver->library_kernel(&bench->bare, library, "add$0");
    tile_string_destroy(ptx);
    return result == TILE_CUDA_SUCCESS || fail("add", "the driver does not load its PTX");
}

static bool launch_bare(const Bench *bench) {
    uint64_t slots[SLOTS + 2] = {0};
    void *parameters[SLOTS + 2];
    for (int i = 0; i < TENSORS; i++) {
        uint64_t tensor[] = {(uintptr_t)bench->tensors[i].data, 1, COLUMNS, COLUMNS * sizeof(float), sizeof(float)};
        memcpy(&slots[5 * i], tensor, sizeof tensor);
    }
    slots[SLOTS + 1] = 1;
    for (int i = 0; i < SLOTS + 2; i++) parameters[i] = &slots[i];
    return tile_cuda_driver()->launch(bench->bare, 1, 1, 1, bench->threads, 1, 1, 0, NULL, parameters, NULL) ==
           TILE_CUDA_SUCCESS;
}

static bool launch_tile(const Bench *bench) {
    return tile_launch(bench->kernel, bench->arguments, TENSORS, NULL) == TILE_OK;
}

/* Nanoseconds per launch in a batch of BATCH; negative if one fails. */
static double sample(const Bench *bench, bool (*launch)(const Bench *bench)) {
    bool good = true;
    uint64_t start = tile_clock_ns();
    for (int i = 0; i < BATCH; i++) good &= launch(bench);
    uint64_t end = tile_clock_ns();
    if (tile_device_synchronize(0, NULL, NULL) != TILE_OK) good = false;
    return good ? (double)(end - start) / BATCH : -1;
}

static bool measure(const Bench *bench, int rounds) {
    double *bare = calloc((size_t)rounds, 3 * sizeof *bare), *tile = bare + rounds, *ratio = tile + rounds;
    bool good = bare && sample(bench, launch_bare) >= 0 && sample(bench, launch_tile) >= 0;
    for (int i = 0; i < rounds && good; i++) {
        bare[i] = sample(bench, launch_bare);
        tile[i] = sample(bench, launch_tile);
        ratio[i] = tile[i] / bare[i];
        good = bare[i] >= 0 && tile[i] >= 0;
    }
    if (good)
        printf("launch of add with 3 tensors: bare cuLaunchKernel %.0f ns, tile_launch %.0f ns, ratio %.2f\n",
               tile_median(bare, rounds), tile_median(tile, rounds), tile_median(ratio, rounds));
    free(bare);
    return good || fail("add", "a launch failed");
}

int main(int count, char **arguments) {
    Bench bench = {0};
    TileCudaScope scope;
    TileError error;
    TileCompileOptions options = {.struct_size = sizeof options, .file = "add.tile", .target = "cuda"};
    int rounds = count > 1 ? atoi(arguments[1]) : 2000;
    if (tile_cuda_enter(0, NULL, &scope, &error) != TILE_OK) {
        fail("no GPU", error.message);
        return 2;
    }
    bool good = rounds > 0 && make_tensors(&bench) && make_kernel(&bench, &options) && make_bare(&bench, &options) &&
                measure(&bench, rounds);
    tile_library_destroy(bench.library);
    tile_compiler_destroy(bench.compiler);
    for (int i = 0; i < TENSORS; i++) tile_device_release(0, bench.tensors[i].data);
    tile_cuda_leave(&scope);
    return good ? 0 : 1;
}
