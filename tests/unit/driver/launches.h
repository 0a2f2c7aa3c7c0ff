/* Kernels compiled from texts, and launched on f32 tensors of one or two dimensions. */
#ifndef TESTS_UNIT_DRIVER_LAUNCHES_H
#define TESTS_UNIT_DRIVER_LAUNCHES_H

#include <criterion/criterion.h>
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

static inline TileCompiler *make_compiler(void) {
    TileCompiler *compiler = NULL;
    cr_assert_eq(tile_compiler_create(NULL, &compiler), TILE_OK);
    return compiler;
}

static inline TileLibrary *compile(TileCompiler *compiler, const char *text, const char *target, uint32_t flags) {
    TileLibrary *library = NULL;
    TileReport *report = NULL;
    TileCompileOptions options = {.struct_size = sizeof options, .target = target, .flags = flags};
    tile_status status = tile_compile(compiler, text, strlen(text), &options, &library, &report);
    cr_assert_eq(status, TILE_OK, "%s", report ? tile_report_text(report, false) : tile_status_text(status));
    tile_report_destroy(report);
    return library;
}

static inline TileKernel *only_kernel(TileLibrary *library) {
    TileKernel *kernel = NULL;
    cr_assert_eq(tile_library_kernel(library, NULL, &kernel), TILE_OK);
    return kernel;
}

/* A view of f32 numbers, with storage for its shape. */
typedef struct View {
    DLTensor dl;
    int64_t shape[2], strides[2];
} View;

static inline void make_view(View *view, float *data, int64_t rows, int64_t columns, int64_t row_stride,
                             int64_t column_stride) {
    *view = (View){.shape = {rows, columns}, .strides = {row_stride, column_stride}};
    view->dl = (DLTensor){.data = data,
                          .device = {kDLCPU, 0},
                          .ndim = 2,
                          .dtype = {kDLFloat, 32, 1},
                          .shape = view->shape,
                          .strides = view->strides};
}

static inline void launch(TileKernel *kernel, const TileArg *args, size_t count) {
    TileError error = {.message = ""};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    cr_assert_eq(tile_launch(kernel, args, count, &options), TILE_OK, "%s", error.message);
}

static inline float number_at(int64_t i) { return (float)((i * 2654435761u) % 1000) / 250.0f - 2.0f; }

static float x_memory[40000], y_memory[40000], z_memory[40000];

static inline void fill(void) {
    for (int64_t i = 0; i < 40000; i++) {
        x_memory[i] = number_at(i);
        y_memory[i] = number_at(i + 77);
        z_memory[i] = -7;
    }
}

static const char *const targets[] = {"cpu", "avx2", "interp"};

#endif
