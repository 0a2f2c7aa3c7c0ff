/* A kernel of two grids on the fake driver, and its launches: for tests of the launcher's calls of the driver. */
#ifndef TILE_TESTS_UNIT_CUDA_SCENE_H
#define TILE_TESTS_UNIT_CUDA_SCENE_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "launch/cuda.h"
#include "launch/replay.h"
#include "tests/gpu/fake/fake_cuda.h"
#include "tests/unit/launch/parameter.h"
#include "tile/launch.h"

/* twice(x: in f32[N], y: out f32[N]): two grids of N programs with a temporary of N elements between them. */
static const char *const extents[] = {"N"};
static const TileImageParameter parameters[] = {F32_TENSOR("x", IN, extents), F32_TENSOR("y", OUT, extents)};
static const TileImageSignature signature = {.name = "twice",
                                             .text = "twice(x: in f32[N], y: out f32[N])",
                                             .parameters = parameters,
                                             .parameter_count = 2,
                                             .gpu = true};
static const TileHostInstruction host[] = {{.op = TILE_HOST_DIM, .type = TILE_HOST_I64, .a = 0, .b = 0}};
static const TileImageTemp temps[] = {{.name = "t", .type = TILE_HOST_F32, .rank = 1, .extents = {0}}};
static const TileImagePhase phases[] = {{.rank = 1, .extents = {0}}, {.rank = 1, .extents = {0}}};
static const uint8_t order[] = {0, 1, 2, 3, 4, 5}; /* the tensors, and numbers of kernels that have any */

typedef struct Maker {
    const char *ptx;
    uint64_t shared_bytes;
    bool no_temp; /* launches of such code are replayed */
    bool waits;   /* the second grid, for the end of the first one */
    const TileImagePhase *phases; /* two; NULL: of N programs each */
    uint8_t numbers; /* parameters behind the tensors */
} Maker;

static inline void destroy_code(TileImageCode *code) {
    tile_cuda_module_destroy(code->gpu);
    free(code);
}

static inline tile_status compile(void *state, uint32_t kernel, const TileImageRequest *request, TileImageCode **code,
                           TileReport **report) {
    const Maker *maker = state;
    (void)kernel, (void)request, (void)report;
    TileCudaPhase made[] = {{.symbol = "twice$0", .threads = 128, .shared_bytes = maker->shared_bytes},
                            {.symbol = "twice$1", .threads = 64, .waits = maker->waits}};
    *code = calloc(1, sizeof **code);
    **code = (TileImageCode){.host = host,
                             .temps = temps,
                             .phases = maker->phases ? maker->phases : phases,
                             .order = order,
                             .host_count = 1,
                             .temp_count = maker->no_temp ? 0 : 1,
                             .phase_count = 2,
                             .order_count = 2u + maker->numbers,
                             .gpu = tile_cuda_module_create(maker->ptx, strlen(maker->ptx), made, 2),
                             .destroy = destroy_code};
    return TILE_OK;
}

static inline void forget(void *state) { (void)state; }

enum { N = 5, ROOM = 1024 };

typedef struct Scene {
    Maker maker;
    TileLibrary *library;
    TileKernel *kernel;
    int64_t extent;
    DLTensor x, y;
    TileArg arguments[2];
    TileError error;
    TileLaunchOptions options;
} Scene;

static inline DLTensor tensor(Scene *scene, int device, void *data) {
    return (DLTensor){
        .data = data, .device = {kDLCUDA, device}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &scene->extent};
}

static inline void *allocate(int device) {
    void *memory = NULL;
    cr_assert(tile_device_allocate(device, ROOM * sizeof(float), &memory, NULL) == TILE_OK);
    return memory;
}

/* A kernel, with tensors on the device. */
static inline void set_kernel(Scene *scene, int device, const TileImageSignature *kernel) {
    scene->extent = N;
    if (!scene->maker.ptx) scene->maker.ptx = "ptx";
    TileImageSource source = {.compile = compile, .destroy = forget, .state = &scene->maker};
    cr_assert(tile_library_create(kernel, 1, source, &scene->library) == TILE_OK);
    scene->kernel = tile_library_kernel_at(scene->library, 0);
    scene->x = tensor(scene, device, allocate(device));
    scene->y = tensor(scene, device, allocate(device));
    scene->arguments[0] = TILE_TENSOR(&scene->x);
    scene->arguments[1] = TILE_TENSOR(&scene->y);
    scene->options = (TileLaunchOptions){.struct_size = sizeof scene->options, .error = &scene->error};
}

static inline void set(Scene *scene, int device) { set_kernel(scene, device, &signature); }

static inline tile_status launch(Scene *scene) { return tile_launch(scene->kernel, scene->arguments, 2, &scene->options); }

/* Everything that the library allocated has been freed, except for a context of each device that was used. */
static inline void strike(Scene *scene) {
    int device = scene->x.device.device_id;
    tile_library_destroy(scene->library);
    tile_device_release(device, scene->x.data);
    tile_device_release(device, scene->y.data);
    FakeCudaState state = fake_cuda_state();
    cr_expect(state.allocations == 0, "%d allocations", state.allocations);
    cr_expect(state.libraries == 0, "%d libraries", state.libraries);
    cr_expect(state.events == 0, "%d events", state.events);
    cr_expect(state.context_depth == 0, "%d contexts on the stack", state.context_depth);
    cr_expect(state.violations == 0, "%d calls that a driver refuses", state.violations);
    for (int i = 0; i < 4; i++) cr_expect(state.primary_references[i] <= 1);
}

static inline void expect_words(const Scene *scene, const char *words) {
    cr_expect(strstr(scene->error.message, words) != NULL, "`%s` is not in `%s`", words, scene->error.message);
}

#endif
