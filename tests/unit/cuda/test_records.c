/* Prints and assertions of kernels on a GPU: the fake driver's kernels write records as compiled code does. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/records.h"
#include "launch/cuda.h"
#include "tests/gpu/fake/fake_cuda.h"
#include "tests/unit/launch/parameter.h"
#include "tile/launch.h"

/* says(x: in f32[N]): a grid of N programs that prints and asserts, followed by one that does not. */
static const char *const extents[] = {"N"};
static const TileImageParameter parameters[] = {F32_TENSOR("x", IN, extents)};
static const TileImageSignature signature = {
    .name = "says", .text = "says(x: in f32[N])", .parameters = parameters, .parameter_count = 1, .gpu = true};
static const TileHostInstruction host[] = {{.op = TILE_HOST_DIM, .type = TILE_HOST_I64, .a = 0, .b = 0}};
static const char *const assertions[] = {"k.tile:3:9: assertion failed: first", "k.tile:4:9: assertion failed: second"};
static const char *const prints[] = {"says[{i}]: {f:2?}", "{!4:9}n = {i}"};
static const TileImagePhase phases[] = {
    {.rank = 1, .extents = {0}, .assertions = assertions, .assertion_count = 2, .prints = prints, .print_count = 2},
    {.rank = 1, .extents = {0}}};
static const uint8_t order[] = {0};

static void destroy_code(TileImageCode *code) {
    tile_cuda_module_destroy(code->gpu);
    free(code);
}

static tile_status compile(void *state, uint32_t kernel, const TileImageRequest *request, TileImageCode **code,
                           TileReport **report) {
    static const TileCudaPhase made[] = {{.symbol = "says$0", .threads = 32},
                                         {.symbol = "says$1", .threads = 32, .waits = true}};
    (void)state, (void)kernel, (void)request, (void)report;
    *code = calloc(1, sizeof **code);
    **code = (TileImageCode){.host = host,
                             .phases = phases,
                             .order = order,
                             .host_count = 1,
                             .phase_count = 2,
                             .order_count = 1,
                             .gpu = tile_cuda_module_create("ptx", 3, made, 2),
                             .destroy = destroy_code};
    return TILE_OK;
}

static void forget(void *state) { (void)state; }

/* The records of the first grid's programs; its parameters are x, N, its stride, begin, end, and the records. */
enum { N = 3, PARAMETERS = 6 };
static struct { int64_t lines, missing, assertion, values; } says;

static void put(char *memory, uint64_t at, int64_t word) { memcpy(memory + at, &word, sizeof word); }

static void put_number(char *memory, uint64_t at, double number) { memcpy(memory + at, &number, sizeof number); }

static void run_kernel(const FakeCudaLaunch *launch) {
    if (strcmp(launch->kernel, "says$0") != 0) return;
    char *memory = (char *)(uintptr_t)launch->parameters[PARAMETERS - 1];
    TileRecords records = tile_records(prints, 2);
    uint64_t bytes = tile_record_bytes(prints[0]), used;
    memcpy(&used, memory + TILE_RECORDS_USED, sizeof used);
    cr_expect(used == 0 && memory[TILE_RECORDS_VALUES] == 0, "the header is cleared");
    for (int64_t i = 0; i < says.lines; i++) {
        uint64_t at = records.lines + bytes * (uint64_t)i;
        put(memory, at, 1);
        put(memory, at + 8, i);
        put_number(memory, at + 16, 0.5);
        put_number(memory, at + 24, 0);
        put(memory, at + 32, 1);
        put(memory, at + 40, 0);
    }
    if (says.missing) put(memory, records.lines + bytes * (uint64_t)says.lines, 0);
    put(memory, TILE_RECORDS_USED, (int64_t)bytes * (says.lines + says.missing));
    put(memory, TILE_RECORDS_MISSING, says.missing);
    put(memory, TILE_RECORDS_ASSERTION, says.assertion);
    put(memory, TILE_RECORDS_VALUES, says.values);
    put(memory, TILE_RECORDS_VALUES + 8, 42);
}

typedef struct Scene {
    TileLibrary *library;
    int64_t extent;
    DLTensor x;
    TileArg arguments[1];
    TileError error;
    TileLaunchOptions options;
    char heard[1000];
} Scene;

static void hear(void *scene, const char *line, size_t length) { strncat(((Scene *)scene)->heard, line, length); }

static void set(Scene *scene) {
    void *memory = NULL;
    memset(scene, 0, sizeof *scene);
    scene->extent = N;
    TileImageSource source = {.compile = compile, .destroy = forget};
    cr_assert(tile_library_create(&signature, 1, source, &scene->library) == TILE_OK);
    cr_assert(tile_device_allocate(0, N * sizeof(float), &memory, NULL) == TILE_OK);
    scene->x = (DLTensor){
        .data = memory, .device = {kDLCUDA, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &scene->extent};
    scene->arguments[0] = TILE_TENSOR(&scene->x);
    scene->options = (TileLaunchOptions){
        .struct_size = sizeof scene->options, .error = &scene->error, .print = hear, .print_host = scene};
    fake_cuda_expect(PARAMETERS);
    fake_cuda_set_kernel(run_kernel);
    memset(&says, 0, sizeof says);
}

static tile_status launch(Scene *scene) {
    scene->heard[0] = scene->error.message[0] = 0;
    return tile_launch(tile_library_kernel_at(scene->library, 0), scene->arguments, 1, &scene->options);
}

static void strike(Scene *scene) {
    fake_cuda_drop_graph();
    tile_library_destroy(scene->library);
    tile_device_release(0, scene->x.data);
    FakeCudaState state = fake_cuda_state();
    cr_expect(state.allocations == 0, "%d allocations", state.allocations);
    cr_expect(state.violations == 0, "%d calls that a driver refuses", state.violations);
}

static const char second[] = "says: k.tile:4:9: assertion failed: second, where n = 42";

Test(records, a_launch_hands_over_its_lines) {
    Scene scene;
    set(&scene);
    for (int64_t lines = 0; lines < 3; lines++) {
        says.lines = lines;
        cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
        const char *expected[] = {"", "says[0]: [0.5, _]\n", "says[0]: [0.5, _]\nsays[1]: [0.5, _]\n"};
        cr_expect_str_eq(scene.heard, expected[lines]);
    }
    cr_expect(fake_cuda_state().launches == 6);
    for (int i = 0; i < 6; i++) cr_expect(fake_cuda_launch(i)->early == i % 2, "what waits for the grid before may begin early, whatever stands between: copies it waits for anyway");
    says.missing = 7;
    cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
    cr_expect_str_eq(scene.heard, "says[0]: [0.5, _]\nsays[1]: [0.5, _]\n"
                                  "says: 7 more lines found no room in the 1024 KiB of a launch\n");
    strike(&scene);
}

Test(records, an_assertion_fails_the_launch) {
    Scene scene;
    set(&scene);
    says.assertion = 1;
    cr_expect(launch(&scene) == TILE_INVALID_ARGUMENT);
    cr_expect_str_eq(scene.error.message, "says: k.tile:3:9: assertion failed: first");
    cr_expect(fake_cuda_state().launches == 1, "no later grid begins");
    says.assertion = says.values = 2;
    says.lines = 1;
    cr_expect(launch(&scene) == TILE_INVALID_ARGUMENT);
    cr_expect_str_eq(scene.error.message, second);
    cr_expect_str_eq(scene.heard, "says[0]: [0.5, _]\n");
    memset(&says, 0, sizeof says);
    cr_expect(launch(&scene) == TILE_OK, "%s", scene.error.message);
    cr_expect(tile_device_synchronize(0, NULL, &scene.error) == TILE_OK, "it was said already");
    strike(&scene);
}

Test(records, a_graph_says_it_each_time) {
    Scene scene;
    set(&scene);
    fake_cuda_begin_capture();
    cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
    cr_expect(fake_cuda_end_capture(), "something was called that a capture forbids");
    cr_expect_str_eq(scene.heard, "");
    says.lines = 1;
    for (int i = 0; i < 2; i++) {
        scene.heard[0] = 0;
        fake_cuda_run_graph();
        cr_expect_str_eq(scene.heard, "says[0]: [0.5, _]\n");
        cr_expect(tile_device_synchronize(0, NULL, &scene.error) == TILE_OK);
    }
    says.assertion = says.values = 2;
    scene.heard[0] = 0;
    fake_cuda_run_graph();
    fake_cuda_run_graph();
    cr_expect(strstr(scene.heard, second) != NULL, "%s", scene.heard);
    cr_expect(tile_device_synchronize(1, NULL, &scene.error) == TILE_OK, "another device knows nothing of it");
    cr_expect(tile_device_synchronize(0, NULL, &scene.error) == TILE_INVALID_ARGUMENT);
    cr_expect_str_eq(scene.error.message, second);
    cr_expect(tile_device_synchronize(0, NULL, &scene.error) == TILE_OK, "said once");
    strike(&scene);
}

/* The nth call of a function fails in a launch, or in a captured one; afterwards everything works again. */
static void fail_in(const char *function, bool captured) {
    for (int nth = 1;; nth++) {
        Scene scene;
        set(&scene);
        cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
        says.lines = 1;
        if (captured) fake_cuda_begin_capture();
        fake_cuda_fail(function, nth, 2);
        tile_status status = launch(&scene);
        bool failed = fake_cuda_has_failed();
        fake_cuda_fail(NULL, 0, 0);
        if (captured) cr_expect(fake_cuda_end_capture());
        cr_expect(status == (failed ? TILE_OUT_OF_MEMORY : TILE_OK), "%s: %s", function, scene.error.message);
        cr_expect(launch(&scene) == TILE_OK, "%s: afterwards: %s", function, scene.error.message);
        strike(&scene);
        if (!failed) return;
    }
}

Test(records, failures_leave_nothing_behind) {
    static const char *const functions[] = {"cuStreamIsCapturing", "cuMemAllocFromPoolAsync", "cuMemsetD8Async",
                                            "cuLaunchKernel", "cuMemcpyDtoHAsync_v2"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int captured = 0; captured < 2; captured++) fail_in(functions[i], captured);
    fail_in("cuStreamSynchronize", false);
    fail_in("cuMemHostAlloc", true);
    fail_in("cuLaunchHostFunc", true);
}
