/* Code for the values of scalars on GPUs: a launch that a graph captures asks for none. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launch/cuda.h"
#include "launch/guard.h"
#include "tests/gpu/fake/fake_cuda.h"
#include "tests/unit/launch/parameter.h"

static const char *const extents[] = {"N"};
static const TileImageParameter parameters[] = {
    F32_TENSOR("x", INOUT, extents),
    {.name = "step", .type_text = "i64", .kind = TILE_PARAMETER_SCALAR, .type = TILE_HOST_I64, .generic = -1}};
static const TileImageSignature signature = {.name = "apart",
                                             .text = "apart(x: inout f32[N], step: i64)",
                                             .parameters = parameters,
                                             .parameter_count = 2,
                                             .gpu = true};
static const TileHostInstruction host[] = {{.op = TILE_HOST_DIM, .type = TILE_HOST_I64}};
static const TileImagePhase phases[] = {{.rank = 1, .extents = {0}}};
static const uint8_t order[] = {0, 1};

static void destroy_code(TileImageCode *code) {
    tile_cuda_module_destroy(code->gpu);
    free(code);
}

static tile_status compile(void *state, uint32_t kernel, const TileImageRequest *request, TileImageCode **code,
                           TileReport **report) {
    TileCudaPhase made = {.symbol = "apart$0", .threads = 128};
    (void)state, (void)kernel, (void)request, (void)report;
    *code = calloc(1, sizeof **code);
    **code = (TileImageCode){.host = host,
                             .phases = phases,
                             .order = order,
                             .host_count = 1,
                             .phase_count = 1,
                             .order_count = 2,
                             .asked = {[1] = TILE_GUARD_VALUE},
                             .gpu = tile_cuda_module_create("ptx", 3, &made, 1),
                             .destroy = destroy_code};
    return TILE_OK;
}

static void forget(void *state) { (void)state; }

static uint64_t variants(TileKernel *kernel) {
    TileKernelStats stats;
    tile_kernel_stats(kernel, &stats);
    return stats.variants;
}

Test(cuda_values, captured_launches_ask_for_none) {
    void *memory = NULL;
    int64_t extent = 4;
    TileLibrary *library = NULL;
    TileImageSource source = {.compile = compile, .destroy = forget};
    TileError error = {.message = ""};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    cr_assert(tile_library_create(&signature, 1, source, &library) == TILE_OK);
    cr_assert(tile_device_allocate(0, 64, &memory, NULL) == TILE_OK);
    TileKernel *kernel = tile_library_kernel_at(library, 0);
    DLTensor x = {.data = memory, .device = {kDLCUDA, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &extent};
    TileArg arguments[] = {TILE_TENSOR(&x), TILE_INTEGER(3)};
    const struct timespec pause = {0, 1000000};
    cr_assert(tile_launch(kernel, arguments, 2, &options) == TILE_OK, "%s", error.message);
    options.stream = fake_cuda_stream(fake_cuda_primary(0));
    fake_cuda_begin_capture();
    for (int i = 0; i < 3; i++) cr_assert(tile_launch(kernel, arguments, 2, &options) == TILE_OK, "%s", error.message);
    cr_expect(fake_cuda_end_capture(), "something was called that a capture forbids");
    for (int i = 0; i < 50; i++) nanosleep(&pause, NULL);
    cr_expect(variants(kernel) == 1, "nothing is compiled while a graph is captured");
    cr_assert(tile_launch(kernel, arguments, 2, &options) == TILE_OK, "%s", error.message);
    for (int i = 0; i < 5000 && variants(kernel) < 2; i++) nanosleep(&pause, NULL);
    cr_expect(variants(kernel) == 2, "the next launch asks");
    fake_cuda_drop_graph();
    tile_library_destroy(library);
    tile_device_release(0, memory);
}
