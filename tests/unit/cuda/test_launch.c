/* The launcher's calls of the CUDA driver, which is replaced by tests/gpu/fake. */
#include <pthread.h>

#include "tests/unit/cuda/scene.h"

Test(cuda, queues_grids_in_order_with_their_parameters) {
    Scene scene = {.maker = {.shared_bytes = 100, .waits = true}};
    set(&scene, 0);
    fake_cuda_expect(11);
    cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
    const FakeCudaLaunch *first = fake_cuda_launch(0), *second = fake_cuda_launch(1);
    cr_assert(second != NULL && fake_cuda_launch(2) == NULL);
    cr_expect_str_eq(first->kernel, "twice$0");
    cr_expect_str_eq(second->kernel, "twice$1");
    cr_expect(first->grid == N && first->block == 128 && first->shared_bytes == 100);
    cr_expect(second->grid == N && second->block == 64 && second->shared_bytes == 0);
    cr_expect(!first->early && second->early, "only code that waits for the grid before it begins early");
    uint64_t temp = first->parameters[6];
    uint64_t expected[] = {(uintptr_t)scene.x.data, N, 4, (uintptr_t)scene.y.data, N, 4, temp, N, 4, 0, N};
    cr_expect_arr_eq(first->parameters, expected, sizeof expected);
    cr_expect_arr_eq(second->parameters, expected, sizeof expected);
    cr_expect(temp != 0 && fake_cuda_state().allocations == 2, "the temporary is freed");
    strike(&scene);
}

Test(cuda, launches_nothing_for_an_empty_grid) {
    Scene scene = {0};
    set(&scene, 0);
    scene.extent = 0;
    cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
    cr_expect(fake_cuda_state().launches == 0);
    strike(&scene);
}

/* Only the launches and the temporary, if the caller's context is current. */
Test(cuda, asks_little_of_the_driver_when_all_is_known) {
    Scene scene = {0};
    TileCudaScope scope;
    set(&scene, 0);
    cr_assert(tile_cuda_enter(0, NULL, &scope, NULL) == TILE_OK);
    cr_assert(launch(&scene) == TILE_OK);
    int before = fake_cuda_state().calls;
    cr_assert(launch(&scene) == TILE_OK);
    cr_expect(fake_cuda_state().calls - before == 1 + 2 + 2, "%d calls", fake_cuda_state().calls - before);
    tile_cuda_leave(&scope);
    strike(&scene);
}

/* ---- replayed launches ---- */

static bool is_remembered(const Scene *scene) {
    TileReplayed replayed;
    bool found = tile_replay_find(scene->kernel, scene->arguments, 2, NULL, &replayed);
    if (found) tile_variant_give(replayed.variant, false);
    return found;
}

Test(cuda, remembers_launches_and_puts_in_the_new_addresses) {
    Scene scene = {.maker = {.no_temp = true}};
    TileCudaScope scope;
    set(&scene, 0);
    fake_cuda_expect(8);
    cr_expect(!is_remembered(&scene));
    cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
    cr_assert(is_remembered(&scene));
    void *x = scene.x.data;
    scene.x.data = allocate(0);
    cr_assert(is_remembered(&scene), "another address is no other launch");
    cr_assert(tile_cuda_enter(0, NULL, &scope, NULL) == TILE_OK);
    cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
    uint64_t expected[] = {(uintptr_t)scene.x.data, N, 4, (uintptr_t)scene.y.data, N, 4, 0, N};
    cr_expect_arr_eq(fake_cuda_launch(2)->parameters, expected, sizeof expected);
    cr_expect_arr_eq(fake_cuda_launch(3)->parameters, expected, sizeof expected);
    int before = fake_cuda_state().calls;
    cr_assert(launch(&scene) == TILE_OK);
    cr_expect(fake_cuda_state().calls - before == 1 + 2, "the context, the launches: %d calls",
              fake_cuda_state().calls - before);
    tile_cuda_leave(&scope);
    scene.extent = N - 1;
    cr_expect(!is_remembered(&scene));
    scene.extent = N;
    tile_device_release(0, x);
    strike(&scene);
}

Test(cuda, a_launch_on_another_device_is_another_launch) {
    Scene scene = {.maker = {.no_temp = true}};
    set(&scene, 0);
    cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
    DLTensor x = scene.x, y = scene.y;
    scene.x = tensor(&scene, 1, allocate(1));
    scene.y = tensor(&scene, 1, allocate(1));
    cr_expect(!is_remembered(&scene));
    for (int i = 0; i < 2; i++) cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
    cr_expect(is_remembered(&scene));
    for (int i = 2; i < 6; i++) cr_expect(fake_cuda_launch(i)->context == fake_cuda_primary(1));
    tile_device_release(0, x.data);
    tile_device_release(0, y.data);
    strike(&scene);
}

/* Facts that depend on addresses are checked each time. */
Test(cuda, a_remembered_launch_refuses_what_a_new_one_would) {
    Scene scene = {.maker = {.no_temp = true}};
    float data[N] __attribute__((aligned(128))) = {0};
    set(&scene, 0);
    cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
    int launches = fake_cuda_state().launches;
    void *memory = scene.x.data;
    scene.x.data = data;
    cr_assert(launch(&scene) == TILE_INVALID_ARGUMENT);
    expect_words(&scene, "twice: x: data is an address of host memory");
    scene.x.data = scene.y.data;
    cr_assert(launch(&scene) == TILE_INVALID_ARGUMENT);
    expect_words(&scene, "memory");
    scene.x.data = memory;
    scene.options.stream = fake_cuda_stream(fake_cuda_context(1));
    cr_expect(launch(&scene) == TILE_INVALID_ARGUMENT);
    cr_expect(fake_cuda_state().launches == launches);
    scene.options.stream = NULL;
    cr_expect(launch(&scene) == TILE_OK);
    cr_expect(tile_prepare(scene.kernel, scene.arguments, 2, &scene.options) == TILE_OK);
    cr_expect(fake_cuda_state().launches == launches + 2);
    TileKernelStats stats;
    tile_kernel_stats(scene.kernel, &stats);
    cr_expect(stats.launches == 2, "%d launches", (int)stats.launches);
    strike(&scene);
}

/* ---- the device's clock ---- */

Test(cuda, a_timer_measures_by_the_devices_clock) {
    Scene scene = {0};
    TileCudaScope scope;
    TileCudaTimer timer;
    double seconds = 0;
    set(&scene, 0);
    cr_assert(tile_cuda_enter(0, NULL, &scope, NULL) == TILE_OK);
    cr_assert(tile_cuda_timer_create(&timer, &scene.error) == TILE_OK);
    cr_assert(tile_cuda_timer_start(&timer, NULL, &scene.error) == TILE_OK);
    cr_assert(launch(&scene) == TILE_OK);
    cr_assert(tile_cuda_timer_stop(&timer, NULL, &seconds, &scene.error) == TILE_OK);
    cr_expect(seconds > 0.99e-9 * N * (128 + 64) && seconds < 1.01e-9 * N * (128 + 64), "%g s", seconds);
    fake_cuda_fail("cuEventSynchronize", 1, 719);
    cr_expect(tile_cuda_timer_stop(&timer, NULL, &seconds, &scene.error) == TILE_DRIVER);
    tile_cuda_timer_destroy(&timer);
    fake_cuda_fail("cuEventCreate", 2, 2);
    cr_expect(tile_cuda_timer_create(&timer, &scene.error) == TILE_OUT_OF_MEMORY);
    tile_cuda_leave(&scope);
    strike(&scene);
}

/* ---- preparing ---- */

Test(cuda, prepare_brings_the_code_to_the_device) {
    Scene scene = {0};
    set(&scene, 0);
    cr_assert(tile_prepare(scene.kernel, scene.arguments, 2, &scene.options) == TILE_OK, "%s", scene.error.message);
    cr_expect(fake_cuda_calls("cuKernelGetFunction") == 2, "each grid's code is loaded");
    cr_expect(fake_cuda_state().launches == 0);
    cr_assert(launch(&scene) == TILE_OK);
    cr_expect(fake_cuda_calls("cuKernelGetFunction") == 2 && fake_cuda_calls("cuLibraryLoadData") == 1);
    strike(&scene);
}

static void *launch_in_thread(void *scene) { return launch(scene) == TILE_OK ? NULL : scene; }

Test(cuda, threads_load_the_code_once) {
    enum { THREADS = 8 };
    Scene scene = {0};
    pthread_t threads[THREADS];
    set(&scene, 0);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, launch_in_thread, &scene);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        cr_expect(failed == NULL);
    }
    cr_expect(fake_cuda_calls("cuLibraryLoadData") == 1 && fake_cuda_state().launches == 2 * THREADS);
    cr_expect(fake_cuda_calls("cuDevicePrimaryCtxRetain") == 1);
    strike(&scene);
}

/* ---- contexts, devices and streams ---- */

Test(cuda, uses_the_callers_context_where_it_is_of_the_device) {
    Scene scene = {0};
    void *own = fake_cuda_context(1), *popped;
    set(&scene, 1);
    tile_cuda_driver()->context_push(own);
    cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
    cr_expect(fake_cuda_launch(0)->context == own);
    cr_expect(fake_cuda_current() == own && fake_cuda_state().context_depth == 1);
    tile_cuda_driver()->context_pop(&popped);
    strike(&scene);
}

Test(cuda, leaves_a_context_of_another_device_current) {
    Scene scene = {0};
    void *other = fake_cuda_context(0), *popped;
    set(&scene, 1);
    tile_cuda_driver()->context_push(other);
    cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
    cr_expect(fake_cuda_launch(0)->context == fake_cuda_primary(1));
    cr_expect(fake_cuda_current() == other);
    tile_cuda_driver()->context_pop(&popped);
    strike(&scene);
}

Test(cuda, uses_the_streams_context_where_none_is_current) {
    Scene scene = {0};
    void *own = fake_cuda_context(1);
    set(&scene, 1);
    scene.options.stream = fake_cuda_stream(own);
    cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
    cr_expect(fake_cuda_launch(0)->context == own && fake_cuda_launch(1)->stream == scene.options.stream);
    strike(&scene);
}

Test(cuda, refuses_a_stream_of_another_device) {
    Scene scene = {0};
    set(&scene, 0);
    scene.options.stream = fake_cuda_stream(fake_cuda_context(1));
    cr_assert(launch(&scene) == TILE_INVALID_ARGUMENT);
    expect_words(&scene, "the stream belongs to another GPU than the tensors, which lie on cuda:0");
    strike(&scene);
}

Test(cuda, one_library_serves_all_devices) {
    Scene scene = {.maker = {.shared_bytes = 100 * 1024}};
    set(&scene, 0);
    cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
    DLTensor x = scene.x, y = scene.y;
    scene.x = tensor(&scene, 1, allocate(1));
    scene.y = tensor(&scene, 1, allocate(1));
    cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
    cr_expect(fake_cuda_launch(2)->context == fake_cuda_primary(1) && fake_cuda_launch(2)->shared_bytes == 100 * 1024);
    cr_expect(fake_cuda_calls("cuLibraryLoadData") == 1);
    tile_device_release(0, x.data);
    tile_device_release(0, y.data);
    strike(&scene);
}

Test(cuda, the_first_launch_may_be_captured) {
    Scene scene = {.maker = {.shared_bytes = 100 * 1024}};
    set(&scene, 0);
    fake_cuda_begin_capture();
    cr_assert(launch(&scene) == TILE_OK, "%s", scene.error.message);
    cr_expect(fake_cuda_end_capture(), "something was called that a capture forbids");
    fake_cuda_begin_capture();
    cr_expect(tile_device_synchronize(0, NULL, &scene.error) == TILE_DRIVER, "the capture's rules are as before");
    cr_expect(!fake_cuda_end_capture());
    tile_library_destroy(scene.library);
}

/* ---- code that is evicted ---- */

/* `twice` with code for each N, and a stream. */
static void set_static(Scene *scene) {
    static const TileImageStatic extent = {"N", 0, 0};
    static TileImageSignature with_static;
    with_static = signature;
    with_static.statics = &extent;
    with_static.static_count = 1;
    set_kernel(scene, 0, &with_static);
    scene->options.stream = fake_cuda_stream(fake_cuda_primary(0));
}

static void launch_extents(Scene *scene, int64_t first, int64_t last) {
    for (scene->extent = first; scene->extent <= last; scene->extent++)
        cr_assert(launch(scene) == TILE_OK, "%s", scene->error.message);
}

static TileKernelStats stats_of(const Scene *scene) {
    TileKernelStats stats;
    tile_kernel_stats(scene->kernel, &stats);
    return stats;
}

Test(cuda, evicted_code_is_unloaded) {
    enum { MORE = 20 };
    Scene scene = {0};
    set_static(&scene);
    launch_extents(&scene, 1, TILE_KEPT_GPU_VARIANTS + MORE);
    cr_expect(fake_cuda_state().libraries == TILE_KEPT_GPU_VARIANTS, "%d libraries", fake_cuda_state().libraries);
    cr_expect(stats_of(&scene).evictions == MORE);
    launch_extents(&scene, MORE + 1, MORE + 1);
    cr_expect(stats_of(&scene).evictions == MORE, "the oldest that is kept");
    launch_extents(&scene, 1, 1);
    cr_expect(stats_of(&scene).evictions == MORE + 1, "1 had gone");
    strike(&scene);
}

Test(cuda, code_that_a_graph_holds_stays) {
    Scene scene = {.maker = {.no_temp = true}};
    set_static(&scene);
    fake_cuda_begin_capture();
    launch_extents(&scene, 1, 3);
    cr_expect(fake_cuda_end_capture(), "something was called that a capture forbids");
    launch_extents(&scene, 4, TILE_KEPT_GPU_VARIANTS + 13);
    cr_expect(fake_cuda_state().libraries == TILE_KEPT_GPU_VARIANTS + 3, "%d libraries", fake_cuda_state().libraries);
    fake_cuda_run_graph();
    cr_expect(fake_cuda_state().violations == 0, "the graph runs code that is unloaded");
    uint64_t variants = stats_of(&scene).variants;
    launch_extents(&scene, 1, 3);
    cr_expect(stats_of(&scene).variants == variants, "launches find it, too");
    cr_expect(fake_cuda_calls("cuStreamIsCapturing") == TILE_KEPT_GPU_VARIANTS + 13, "it is asked about no more");
    fake_cuda_drop_graph();
    strike(&scene);
}

/* The launch is in progress when its code is evicted. */
Test(cuda, code_that_is_evicted_while_it_is_captured_stays) {
    Scene scene = {.maker = {.no_temp = true}};
    set_static(&scene);
    launch_extents(&scene, 1, 1);
    TileVariant *variant = atomic_load(&scene.kernel->last);
    cr_assert(tile_variant_take(variant));
    tile_variant_evict(variant);
    cr_expect(!tile_variant_take(variant), "no launch finds it");
    atomic_store(&variant->captured, true);
    tile_variant_give(variant, true);
    cr_expect(fake_cuda_state().libraries == 1);
    launch_extents(&scene, 1, 1);
    cr_expect(stats_of(&scene).variants == 1, "it is found again");
    strike(&scene);
}

/* A miss may happen while another stream of the thread captures. */
Test(cuda, eviction_disturbs_no_capture) {
    Scene scene = {0};
    set_static(&scene);
    launch_extents(&scene, 1, TILE_KEPT_GPU_VARIANTS);
    fake_cuda_begin_capture();
    scene.extent++;
    cr_expect(launch(&scene) == TILE_OK, "%s", scene.error.message);
    cr_expect(stats_of(&scene).evictions == 1);
    cr_expect(fake_cuda_end_capture(), "something was called that a capture forbids");
    fake_cuda_drop_graph();
    strike(&scene);
}

/* ---- mistakes ---- */

Test(cuda, refuses_addresses_of_the_host) {
    Scene scene = {0};
    float data[N] = {0};
    set(&scene, 0);
    void *memory = scene.x.data;
    scene.x.data = data;
    cr_assert(launch(&scene) == TILE_INVALID_ARGUMENT);
    expect_words(&scene, "twice: x: data is an address of host memory, though the tensor's device is cuda:0");
    cr_expect(fake_cuda_state().launches == 0);
    scene.x.data = memory;
    cr_expect(launch(&scene) == TILE_OK, "the context is as good as before");
    strike(&scene);
}

Test(cuda, refuses_addresses_of_another_device) {
    Scene scene = {0};
    set(&scene, 0);
    void *memory = scene.y.data, *other = allocate(1);
    scene.y.data = other;
    cr_assert(launch(&scene) == TILE_INVALID_ARGUMENT);
    expect_words(&scene, "twice: y: data is memory of cuda:1, though the tensor's device is cuda:0");
    scene.y.data = memory;
    tile_device_release(1, other);
    strike(&scene);
}

Test(cuda, takes_memory_that_all_devices_reach) {
    Scene scene = {0};
    set(&scene, 1);
    void *memory = scene.x.data;
    scene.x.data = fake_cuda_register(N * sizeof(float), FAKE_CUDA_MANAGED);
    cr_expect(launch(&scene) == TILE_OK, "managed: %s", scene.error.message);
    scene.x.data = fake_cuda_register(N * sizeof(float), FAKE_CUDA_HOST);
    cr_expect(launch(&scene) == TILE_OK, "pinned: %s", scene.error.message);
    scene.x.data = memory;
    strike(&scene);
}

Test(cuda, refuses_devices_that_are_not_there) {
    Scene scene = {0};
    set(&scene, 0);
    scene.x.device.device_id = scene.y.device.device_id = 7;
    cr_assert(launch(&scene) == TILE_INVALID_ARGUMENT);
    expect_words(&scene, "there is no device cuda:7; there are 2");
    scene.x.device.device_id = scene.y.device.device_id = 0;
    strike(&scene);
}

Test(cuda, refuses_blocks_that_need_too_much_shared_memory) {
    Scene scene = {.maker = {.shared_bytes = 100 * 1024}};
    fake_cuda_set_shared_limit(99 * 1024);
    set(&scene, 0);
    cr_assert(launch(&scene) == TILE_UNAVAILABLE);
    expect_words(&scene, "twice: a block needs 102400 bytes of shared memory, and cuda:0 has 101376");
    cr_expect(tile_prepare(scene.kernel, scene.arguments, 2, &scene.options) == TILE_UNAVAILABLE);
    strike(&scene);
}

Test(cuda, shows_what_the_assembler_says) {
    Scene scene = {.maker = {.ptx = "not ptx"}};
    set(&scene, 0);
    cr_assert(launch(&scene) == TILE_UNAVAILABLE);
    expect_words(&scene, "CUDA_ERROR_INVALID_PTX");
    expect_words(&scene, "line 1: fatal: not PTX");
    strike(&scene);
}

/* ---- failures of the driver ---- */

static const struct {
    const char *name;
    tile_status status;
    int result;
} failures[] = {
    {"CUDA_ERROR_OUT_OF_MEMORY", TILE_OUT_OF_MEMORY, 2},
    {"CUDA_ERROR_NO_BINARY_FOR_GPU", TILE_UNAVAILABLE, 209},
    {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", TILE_UNAVAILABLE, 222},
    {"CUDA_ERROR_ILLEGAL_ADDRESS", TILE_DRIVER, 700},
    {"CUDA_ERROR_UNKNOWN", TILE_DRIVER, 999},
    {"an unknown error", TILE_DRIVER, 12345},
};

/* The launch may succeed without this call. */
static bool may_fail(const char *function) {
    static const char *const names[] = {"cuCtxGetCurrent", "cuCtxGetDevice", "cuThreadExchangeStreamCaptureMode"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(function, names[i]) == 0) return true;
    return false;
}

static void expect_failure(Scene *scene, const char *function, size_t failure, tile_status status) {
    cr_expect(status == failures[failure].status, "%s fails, and the status is %d", function, (int)status);
    expect_words(scene, failures[failure].name);
    cr_expect(fake_cuda_state().allocations == 2, "%s fails, and a temporary is left", function);
    cr_expect(fake_cuda_state().context_depth == 0, "%s fails, and a context is left", function);
}

/* In two consecutive launches each call fails once, with each result; then everything works again. */
static void fail_in(const char *function, size_t failure) {
    for (int nth = 1;; nth++) {
        Scene scene = {.maker = {.shared_bytes = 100 * 1024}};
        set(&scene, 0);
        fake_cuda_fail(function, nth, failures[failure].result);
        tile_status status = launch(&scene);
        if (!fake_cuda_has_failed()) status = launch(&scene);
        bool failed = fake_cuda_has_failed();
        fake_cuda_fail(NULL, 0, 0);
        if (failed && !may_fail(function)) expect_failure(&scene, function, failure, status);
        if (failed) cr_expect(launch(&scene) == TILE_OK, "%s: afterwards: %s", function, scene.error.message);
        strike(&scene);
        if (!failed) return;
    }
}

static void fail_everywhere(const char *function) {
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) fail_in(function, i);
}

Test(cuda, failures_while_loading_leave_nothing_behind) {
    fail_everywhere("cuLibraryLoadData");
    fail_everywhere("cuLibraryGetKernel");
    fail_everywhere("cuDeviceGetAttribute");
    fail_everywhere("cuKernelSetAttribute");
    fail_everywhere("cuKernelGetFunction");
    fail_everywhere("cuPointerGetAttributes");
}

Test(cuda, failures_while_launching_leave_nothing_behind) {
    fail_everywhere("cuMemAllocFromPoolAsync");
    fail_everywhere("cuLaunchKernel");
    fail_everywhere("cuCtxPushCurrent_v2");
    fail_everywhere("cuCtxGetCurrent");
    fail_everywhere("cuCtxGetDevice");
    fail_everywhere("cuThreadExchangeStreamCaptureMode");
}

/* Once per device. */
Test(cuda, a_pool_of_a_device_of_unknown_memory_is_asked_for_again) { fail_in("cuDeviceTotalMem_v2", 0); }
Test(cuda, a_pool_that_cannot_be_made_is_asked_for_again) { fail_in("cuMemPoolCreate", 0); }
Test(cuda, a_pool_that_cannot_be_set_is_asked_for_again) { fail_in("cuMemPoolSetAttribute", 0); }

/* What a launch allocates, the next one finds mapped, also behind a synchronisation. */
static uint64_t kept_of(size_t memory) {
    Scene scene = {0};
    fake_cuda_set_memory(memory);
    set(&scene, 0);
    cr_assert(launch(&scene) == TILE_OK);
    strike(&scene);
    return fake_cuda_state().kept;
}

Test(cuda, a_pool_keeps_its_part_of_a_large_device) { cr_expect(kept_of((size_t)128 << 30) == UINT64_C(4) << 30); }
Test(cuda, a_pool_keeps_enough_of_a_small_device) { cr_expect(kept_of((size_t)1 << 30) == UINT64_C(64) << 20); }

/* A context is required before there are tensors. */
Test(cuda, a_context_that_cannot_be_had_is_asked_for_again) {
    TileError error;
    void *memory = NULL;
    fake_cuda_fail("cuDevicePrimaryCtxRetain", 1, 2);
    cr_expect(tile_device_allocate(0, 4, &memory, &error) == TILE_OUT_OF_MEMORY);
    cr_expect(strstr(error.message, "context: the CUDA driver (12.8) says CUDA_ERROR_OUT_OF_MEMORY: out of memory"));
    cr_assert(tile_device_allocate(0, 4, &memory, &error) == TILE_OK);
    tile_device_release(0, memory);
    cr_expect(fake_cuda_state().primary_references[0] == 1);
}

Test(cuda, memory_is_written_and_read) {
    TileError error;
    float data[N] = {1, 2, 3, 4, 5}, back[N] = {0};
    void *memory = allocate(1);
    cr_assert(tile_device_write(1, memory, data, sizeof data, &error) == TILE_OK);
    cr_expect(fake_cuda_calls("cuStreamSynchronize") == 1, "other streams find what was written");
    cr_assert(tile_device_read(1, back, memory, sizeof back, &error) == TILE_OK);
    cr_expect_arr_eq(back, data, sizeof data);
    fake_cuda_fail("cuMemcpyDtoH_v2", 1, 700);
    cr_expect(tile_device_read(1, back, memory, sizeof back, &error) == TILE_DRIVER);
    cr_expect(strstr(error.message, "its context can no longer be used") != NULL);
    fake_cuda_fail("cuMemAlloc_v2", 1, 2);
    void *more = NULL;
    cr_expect(tile_device_allocate(1, 4, &more, &error) == TILE_OUT_OF_MEMORY && more == NULL);
    tile_device_release(1, memory);
    tile_device_release(1, NULL);
    cr_expect(fake_cuda_state().allocations == 0 && fake_cuda_state().context_depth == 0);
}
