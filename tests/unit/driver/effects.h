/* Texts compiled for every target that this machine can run, as machine code and on the executor. */
#ifndef TESTS_UNIT_DRIVER_EFFECTS_H
#define TESTS_UNIT_DRIVER_EFFECTS_H

#include <criterion/criterion.h>
#include <string.h>

#include "driver/compile/compile.h"

typedef struct Way {
    const char *target;
    uint32_t flags;
} Way;

/* Tile form on the executor, final machine form on the executor, machine code; then those of GPUs. */
static const Way all_ways[] = {
    {"interp", 0}, {"avx2", TILE_COMPILE_EMULATE}, {"avx512", TILE_COMPILE_EMULATE}, {"avx2", 0},
    {"avx512", 0}, {"sm_80", TILE_COMPILE_EMULATE}};
enum { WAYS_WITH_GPU = sizeof all_ways / sizeof *all_ways, WAY_COUNT = WAYS_WITH_GPU - 1 };

static inline bool way_usable(const Way *way) {
    TileTargetInfo info;
    for (size_t i = 0; tile_target_at(i, &info); i++)
        if (strcmp(info.name, way->target) == 0) return info.usable || (way->flags & TILE_COMPILE_EMULATE);
    return false;
}

/* A contiguous array, or a view of one with `strides`, in elements. */
typedef struct Array {
    DLTensor dl;
    int64_t shape[4], strides[4];
} Array;

static inline void array_of(Array *array, void *data, uint8_t code, uint8_t bits, int rank, const int64_t *shape) {
    *array = (Array){.dl = {.data = data,
                            .device = {kDLCPU, 0},
                            .ndim = rank,
                            .dtype = {code, bits, 1},
                            .shape = array->shape,
                            .strides = array->strides}};
    int64_t stride = 1;
    for (int i = rank; i-- > 0;) {
        array->shape[i] = shape[i];
        array->strides[i] = stride;
        stride *= shape[i];
    }
}

typedef struct Program {
    TileCompiler *compiler;
    TileLibrary *library;
    TileKernel *kernel;
} Program;

static inline Program compile_way(const char *text, const Way *way) {
    Program program = {0};
    TileReport *report = NULL;
    TileCompileOptions options = {.struct_size = sizeof options, .target = way->target, .flags = way->flags};
    cr_assert_eq(tile_compiler_create(NULL, &program.compiler), TILE_OK);
    tile_status status = tile_compile(program.compiler, text, strlen(text), &options, &program.library, &report);
    cr_assert_eq(status, TILE_OK, "%s: %s", way->target, report ? tile_report_text(report, false) : "");
    tile_report_destroy(report);
    cr_assert_eq(tile_library_kernel(program.library, NULL, &program.kernel), TILE_OK);
    return program;
}

static inline void release_program(Program *program) {
    tile_library_destroy(program->library);
    tile_compiler_destroy(program->compiler);
}

static inline void launch_with(const Program *program, const TileArg *args, size_t count, TileLaunchOptions *options) {
    TileError error = {.message = ""};
    TileLaunchOptions none = {0};
    if (!options) options = &none;
    options->struct_size = sizeof *options;
    options->error = &error;
    cr_assert_eq(tile_launch(program->kernel, args, count, options), TILE_OK, "%s", error.message);
}

/* Compiles, launches once, and frees. */
static inline void run_way(const char *text, const Way *way, const TileArg *args, size_t count) {
    Program program = compile_way(text, way);
    launch_with(&program, args, count, NULL);
    release_program(&program);
}

#endif
