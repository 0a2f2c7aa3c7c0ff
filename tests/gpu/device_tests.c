/* The launcher's guarantees on a real GPU: contexts, streams, graphs, devices; and that each misuse is reported as an
 * error, after which the context still works. tests/unit/cuda has the same with a fake driver that can be made to fail.
 *
 * usage: tile_device_tests
 * Prints a line for each test. Exit status 77 if there is no GPU. Needs no CUDA toolkit. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/cuda.h"
#include "launch/variants.h"
#include "tile/tile.h"

enum { SKIPPED = 77, N = 100000 };

/* Functions of the driver that only a test needs. */
static struct {
    int (*cuDeviceGetCount)(int *count);
    int (*cuCtxCreate_v2)(void **context, unsigned flags, int device);
    int (*cuCtxDestroy_v2)(void *context);
    int (*cuCtxGetCurrent)(void **context);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuCtxSynchronize)(void);
    int (*cuStreamCreate)(void **stream, unsigned flags);
    int (*cuStreamDestroy_v2)(void *stream);
    int (*cuStreamSynchronize)(void *stream);
    int (*cuStreamBeginCapture_v2)(void *stream, int mode);
    int (*cuStreamEndCapture)(void *stream, void **graph);
    int (*cuGraphInstantiateWithFlags)(void **executable, void *graph, unsigned long long flags);
    int (*cuGraphLaunch)(void *executable, void *stream);
    int (*cuGraphExecDestroy)(void *executable);
    int (*cuGraphDestroy)(void *graph);
    int (*cuMemAllocManaged)(uint64_t *memory, size_t bytes, unsigned flags);
    int (*cuMemHostAlloc)(void **memory, size_t bytes, unsigned flags);
    int (*cuMemFreeHost)(void *memory);
    int (*cuMemFree_v2)(uint64_t memory);
    int (*cuMemGetInfo_v2)(size_t *free, size_t *total);
} cuda;

static const char *find_functions(void) {
    static const char *const names[] = {
        "cuDeviceGetCount",    "cuCtxCreate_v2",          "cuCtxDestroy_v2",    "cuCtxGetCurrent",
        "cuCtxSetCurrent",     "cuCtxSynchronize",        "cuStreamCreate",     "cuStreamDestroy_v2",
        "cuStreamSynchronize", "cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags",
        "cuGraphLaunch",       "cuGraphExecDestroy",      "cuGraphDestroy",     "cuMemAllocManaged",
        "cuMemHostAlloc",      "cuMemFreeHost",           "cuMemFree_v2",       "cuMemGetInfo_v2"};
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *address = library ? dlsym(library, names[i]) : NULL;
        if (!address) return names[i];
        memcpy((char *)&cuda + i * sizeof address, &address, sizeof address);
    }
    return NULL;
}

static int failures;
static const char *test_name;

static void complain(const char *what, const char *why) {
    printf("FAIL %s: %s%s%s\n", test_name, what, *why ? ": " : "", why);
    failures++;
}

#define EXPECT(condition) ((condition) ? (void)0 : complain(#condition, ""))
#define DRIVER(call) (cuda.call == 0 ? (void)0 : complain(#call, "the driver refuses"))

/* ---- a kernel and its data ---- */

/* `chain` has two grids and a temporary; the shared memory of `wide` depends on K; `watch` prints and asserts, and
 * `chatter` prints more than a launch keeps. */
static const char text[] =
    "kernel triple(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 256) { y[n] = x[n] * 3.0 } }\n"
    "kernel chain(x: in f32[N], y: out f32[N])\n"
    "{\n"
    "    temp t: f32[N]\n"
    "    grid n in tiles(N, 256) { t[n] = x[n] + 1.0 }\n"
    "    grid n in tiles(N, 512) { y[n] = t[n] * 2.0 }\n"
    "}\n"
    "kernel wide(a: in f32[M, K], b: in f32[K, N], c: out f32[M, N])\n"
    "    tune B in {128, 256}, D in {64, 256}\n"
    "{\n"
    "    grid (m, n) in (tiles(M, B), tiles(N, B)) {\n"
    "        var sum = zeros[B, B](f32)\n"
    "        for k in tiles(K, D) { sum = dot(a[m, k], b[k, n], sum) }\n"
    "        c[m, n] = sum\n"
    "    }\n"
    "}\n"
    "kernel watch(x: in f32[N], y: out f32[N]) {\n"
    "    grid n in tiles(N, 256) {\n"
    "        let v = x[n]\n"
    "        y[n] = v * 3.0\n"
    "        if n.start == 256 { print(\"sum\", sum(v), v) }\n"
    "        assert(all(v < 200000), \"small\")\n"
    "    }\n"
    "    grid n in tiles(N, 512) { y[n] = x[n] * 3.0 }\n"
    "}\n"
    "kernel chatter(x: in f32[N], y: out f32[N]) {\n"
    "    grid n in tiles(N, 256) { for k in 0..2 { print(x[n] else 0, k) }\n"
    "                              y[n] = x[n] * 3.0 }\n"
    "}\n";

typedef struct Scene {
    TileCompiler *compiler;
    TileLibrary *library;
    int device;
    int64_t extent;
    DLTensor x, y;
    TileArg arguments[2];
    TileError error;
    TileLaunchOptions options;
    float *data;
} Scene;

static DLTensor vector(Scene *scene, void *data) {
    return (DLTensor){.data = data,
                      .device = {kDLCUDA, scene->device},
                      .ndim = 1,
                      .dtype = {kDLFloat, 32, 1},
                      .shape = &scene->extent};
}

static TileLibrary *compile(TileCompiler *compiler, const TileSetting *settings, size_t count) {
    TileLibrary *library = NULL;
    TileReport *report = NULL;
    TileCompileOptions options = {.struct_size = sizeof options,
                                  .file = "device.tile",
                                  .target = "cuda",
                                  .flags = TILE_COMPILE_DEBUG,
                                  .settings = settings,
                                  .setting_count = count};
    if (tile_compile(compiler, text, strlen(text), &options, &library, &report) != TILE_OK)
        complain("compile", report ? tile_report_text(report, false) : "");
    tile_report_destroy(report);
    return library;
}

static bool set(Scene *scene, int device) {
    size_t bytes = N * sizeof(float);
    void *x = NULL, *y = NULL;
    *scene = (Scene){.device = device, .extent = N, .data = malloc(bytes)};
    scene->options = (TileLaunchOptions){.struct_size = sizeof scene->options, .error = &scene->error};
    if (!scene->data || tile_compiler_create(NULL, &scene->compiler) != TILE_OK) return false;
    scene->library = compile(scene->compiler, NULL, 0);
    for (int i = 0; i < N; i++) scene->data[i] = (float)i;
    if (tile_device_allocate(device, bytes, &x, &scene->error) != TILE_OK ||
        tile_device_allocate(device, bytes, &y, &scene->error) != TILE_OK ||
        tile_device_write(device, x, scene->data, bytes, &scene->error) != TILE_OK)
        complain("memory", scene->error.message);
    scene->x = vector(scene, x);
    scene->y = vector(scene, y);
    scene->arguments[0] = TILE_TENSOR(&scene->x);
    scene->arguments[1] = TILE_TENSOR(&scene->y);
    return scene->library != NULL;
}

static void strike(Scene *scene) {
    EXPECT(tile_device_synchronize(scene->device, NULL, &scene->error) == TILE_OK);
    tile_library_destroy(scene->library);
    tile_compiler_destroy(scene->compiler);
    tile_device_release(scene->device, scene->x.data);
    tile_device_release(scene->device, scene->y.data);
    free(scene->data);
}

static tile_status launch(Scene *scene, const char *name) {
    TileKernel *kernel;
    tile_status status = tile_library_kernel(scene->library, name, &kernel);
    return status == TILE_OK ? tile_launch(kernel, scene->arguments, 2, &scene->options) : status;
}

/* Compares y with the expected values, and then clears it. */
static void expect_result(Scene *scene, float factor, float addend) {
    size_t bytes = N * sizeof(float);
    int wrong = 0;
    if (tile_device_read(scene->device, scene->data, scene->y.data, bytes, &scene->error) != TILE_OK)
        complain("result", scene->error.message);
    for (int i = 0; i < N; i++) wrong += scene->data[i] != ((float)i + addend) * factor;
    if (wrong) complain("the result is wrong", "");
    memset(scene->data, 0, bytes);
    EXPECT(tile_device_write(scene->device, scene->y.data, scene->data, bytes, &scene->error) == TILE_OK);
}

static void expect_good(Scene *scene, const char *name) {
    if (launch(scene, name) != TILE_OK) complain(name, scene->error.message);
    EXPECT(tile_device_synchronize(scene->device, scene->options.stream, &scene->error) == TILE_OK);
    expect_result(scene, *name == 't' ? 3 : 2, *name == 't' ? 0 : 1);
}

static void expect_refused(Scene *scene, const char *name, tile_status status, const char *words) {
    EXPECT(launch(scene, name) == status);
    if (!strstr(scene->error.message, words)) complain(words, scene->error.message);
}

/* ---- contexts and streams ---- */

static void no_context_stays_none(Scene *scene) {
    void *context = scene;
    expect_good(scene, "triple");
    expect_good(scene, "chain");
    DRIVER(cuCtxGetCurrent(&context));
    EXPECT(context == NULL);
}

static void the_callers_context_is_used(Scene *scene) {
    void *own, *context = NULL, *stream;
    DRIVER(cuCtxCreate_v2(&own, 0, scene->device));
    DRIVER(cuStreamCreate(&stream, 1));
    expect_good(scene, "triple");
    scene->options.stream = stream;
    expect_good(scene, "chain");
    DRIVER(cuCtxGetCurrent(&context));
    EXPECT(context == own);
    DRIVER(cuCtxSetCurrent(NULL));
    expect_good(scene, "chain"); /* the stream's context is used */
    DRIVER(cuCtxGetCurrent(&context));
    EXPECT(context == NULL);
    DRIVER(cuCtxSetCurrent(own));
    DRIVER(cuStreamDestroy_v2(stream));
    DRIVER(cuCtxDestroy_v2(own));
    scene->options.stream = NULL;
}

/* The first launch at all, during a capture in the strictest mode. */
static void a_graph_captures_and_repeats(Scene *scene) {
    void *stream, *graph = NULL, *executable = NULL;
    TileCudaScope scope;
    EXPECT(tile_cuda_enter(scene->device, NULL, &scope, &scene->error) == TILE_OK);
    DRIVER(cuStreamCreate(&stream, 1));
    scene->options.stream = stream;
    DRIVER(cuStreamBeginCapture_v2(stream, 0));
    if (launch(scene, "chain") != TILE_OK) complain("capture", scene->error.message);
    DRIVER(cuStreamEndCapture(stream, &graph));
    EXPECT(graph != NULL);
    DRIVER(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (int i = 0; i < 3 && executable; i++) {
        DRIVER(cuGraphLaunch(executable, stream));
        DRIVER(cuStreamSynchronize(stream));
        expect_result(scene, 2, 1);
    }
    DRIVER(cuGraphExecDestroy(executable));
    DRIVER(cuGraphDestroy(graph));
    expect_good(scene, "chain");
    DRIVER(cuStreamDestroy_v2(stream));
    scene->options.stream = NULL;
    tile_cuda_leave(&scope);
}

/* Evicts code as a kernel with too many variants does: here, that of the last launch. */
static void evict(Scene *scene, const char *name) {
    TileKernel *kernel;
    EXPECT(tile_library_kernel(scene->library, name, &kernel) == TILE_OK);
    pthread_mutex_lock(&kernel->mutex);
    tile_variant_evict(atomic_load(&kernel->last));
    pthread_mutex_unlock(&kernel->mutex);
}

static uint64_t variants_of(Scene *scene, const char *name) {
    TileKernel *kernel;
    TileKernelStats stats = {0};
    if (tile_library_kernel(scene->library, name, &kernel) == TILE_OK) tile_kernel_stats(kernel, &stats);
    return stats.variants;
}

/* Grids finish before their code is unloaded; graphs keep their code; and neither disturbs a capture. */
static void code_goes_when_nothing_holds_it(Scene *scene) {
    void *stream, *graph = NULL, *executable = NULL;
    TileCudaScope scope;
    EXPECT(tile_cuda_enter(scene->device, NULL, &scope, &scene->error) == TILE_OK);
    DRIVER(cuStreamCreate(&stream, 1));
    scene->options.stream = stream;
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 100; k++) EXPECT(launch(scene, "chain") == TILE_OK);
        evict(scene, "chain");
        EXPECT(tile_device_synchronize(scene->device, stream, &scene->error) == TILE_OK);
        expect_result(scene, 2, 1);
    }
    EXPECT(variants_of(scene, "chain") == 3);
    expect_good(scene, "chain");
    DRIVER(cuStreamBeginCapture_v2(stream, 0));
    EXPECT(launch(scene, "triple") == TILE_OK);
    evict(scene, "chain");
    evict(scene, "triple");
    DRIVER(cuStreamEndCapture(stream, &graph));
    DRIVER(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (int i = 0; i < 3 && executable; i++) {
        DRIVER(cuGraphLaunch(executable, stream));
        DRIVER(cuStreamSynchronize(stream));
        expect_result(scene, 3, 0);
    }
    expect_good(scene, "triple");
    EXPECT(variants_of(scene, "triple") == 1);
    DRIVER(cuGraphExecDestroy(executable));
    DRIVER(cuGraphDestroy(graph));
    DRIVER(cuStreamDestroy_v2(stream));
    scene->options.stream = NULL;
    tile_cuda_leave(&scope);
}

static void *launch_often(void *state) {
    Scene *scene = state;
    for (int i = 0; i < 50; i++) expect_good(scene, i % 2 ? "chain" : "triple");
    return NULL;
}

/* ---- prints and assertions ---- */

typedef struct Heard {
    char text[4096];
    int lines;
} Heard;

static void hear(void *state, const char *line, size_t length) {
    Heard *heard = state;
    size_t before = strlen(heard->text);
    snprintf(heard->text + before, sizeof heard->text - before, "%.*s", (int)length, line);
    heard->lines++;
}

static void hear_last(void *state, const char *text, size_t length) {
    ((Heard *)state)->text[0] = 0;
    hear(state, text, length);
}

static void listen(Scene *scene, Heard *heard) {
    memset(heard, 0, sizeof *heard);
    scene->options.print = hear;
    scene->options.print_host = heard;
}

/* One element of x. */
static void set_element(Scene *scene, int index, float value) {
    EXPECT(tile_device_write(scene->device, (float *)scene->x.data + index, &value, sizeof value, &scene->error) ==
           TILE_OK);
}

static const char first_line[] = "watch[1]: sum 98176 [256, 257, 258, ";
static const char failure[] =
    "watch: device.tile:22:9: assertion failed: small, where v = 300000 at [209]"; /* 77777 = 303 * 256 + 209 */

static void lines_and_failures_come_back(Scene *scene) {
    Heard heard;
    for (int i = 0; i < 3; i++) {
        listen(scene, &heard);
        if (launch(scene, "watch") != TILE_OK) complain("watch", scene->error.message);
        expect_result(scene, 3, 0);
        EXPECT(heard.lines == 1 && strncmp(heard.text, first_line, strlen(first_line)) == 0);
        set_element(scene, 77777, 300000);
        expect_refused(scene, "watch", TILE_INVALID_ARGUMENT, failure);
        EXPECT(heard.lines == 2);
        set_element(scene, 77777, 77777);
    }
    EXPECT(tile_device_synchronize(scene->device, NULL, &scene->error) == TILE_OK);
    expect_good(scene, "triple");
}

/* The last line tells how many lines are missing. */
static void lines_without_room_are_counted(Scene *scene) {
    int missing = 0, programs = (N + 255) / 256;
    Heard heard;
    listen(scene, &heard);
    scene->options.print = hear_last;
    if (launch(scene, "chatter") != TILE_OK) complain("chatter", scene->error.message);
    expect_result(scene, 3, 0);
    EXPECT(sscanf(heard.text, "chatter: %d more lines found no room in the 1024 KiB of a launch", &missing) == 1);
    EXPECT(missing > 0 && heard.lines > programs && heard.lines - 1 + missing == 2 * programs);
}

static void a_graph_says_it_each_time(Scene *scene) {
    void *stream, *graph = NULL, *executable = NULL;
    TileCudaScope scope;
    Heard heard;
    listen(scene, &heard);
    EXPECT(tile_cuda_enter(scene->device, NULL, &scope, &scene->error) == TILE_OK);
    DRIVER(cuStreamCreate(&stream, 1));
    scene->options.stream = stream;
    DRIVER(cuStreamBeginCapture_v2(stream, 0));
    if (launch(scene, "watch") != TILE_OK) complain("capture", scene->error.message);
    DRIVER(cuStreamEndCapture(stream, &graph));
    EXPECT(graph != NULL);
    DRIVER(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (int i = 0; i < 6 && executable; i++) {
        listen(scene, &heard);
        set_element(scene, 77777, i % 2 ? 300000 : 77777);
        DRIVER(cuGraphLaunch(executable, stream));
        tile_status status = tile_device_synchronize(scene->device, stream, &scene->error);
        EXPECT(status == (i % 2 ? TILE_INVALID_ARGUMENT : TILE_OK));
        EXPECT(i % 2 == 0 || strcmp(scene->error.message, failure) == 0);
        EXPECT(heard.lines == 1 + i % 2 && strncmp(heard.text, first_line, strlen(first_line)) == 0);
    }
    set_element(scene, 77777, 77777);
    DRIVER(cuGraphExecDestroy(executable));
    DRIVER(cuGraphDestroy(graph));
    expect_good(scene, "triple");
    DRIVER(cuStreamDestroy_v2(stream));
    scene->options.stream = NULL;
    tile_cuda_leave(&scope);
}

/* The launches of every other thread fail. */
static void *watch_often(void *state) {
    Scene *scene = state;
    Heard *heard = scene->options.print_host;
    float largest = 0;
    EXPECT(tile_device_read(scene->device, &largest, (float *)scene->x.data + 77777, sizeof largest, &scene->error) ==
           TILE_OK);
    for (int i = 0; i < 50; i++) {
        heard->lines = 0;
        heard->text[0] = 0;
        tile_status status = launch(scene, "watch");
        EXPECT(status == (largest > 200000 ? TILE_INVALID_ARGUMENT : TILE_OK));
        EXPECT(status == TILE_OK || strcmp(scene->error.message, failure) == 0);
        EXPECT(heard->lines == 1 && strncmp(heard->text, first_line, strlen(first_line)) == 0);
    }
    return NULL;
}

/* Each thread has its own tensors, stream and print hook; in every other thread one element of x is large. */
static void run_threads(Scene *scene, void *(*run)(void *scene), float large) {
    enum { THREADS = 6 };
    Scene scenes[THREADS];
    Heard heard[THREADS];
    pthread_t threads[THREADS];
    TileCudaScope scope;
    EXPECT(tile_cuda_enter(scene->device, NULL, &scope, &scene->error) == TILE_OK);
    for (int i = 0; i < THREADS; i++) {
        if (!set(&scenes[i], scene->device)) complain("scene", "");
        tile_library_destroy(scenes[i].library);
        scenes[i].library = scene->library; /* shared by all threads */
        DRIVER(cuStreamCreate(&scenes[i].options.stream, 1));
        listen(&scenes[i], &heard[i]);
        if (i % 2) set_element(&scenes[i], 77777, large);
    }
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, run, &scenes[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        DRIVER(cuStreamDestroy_v2(scenes[i].options.stream));
        scenes[i].library = NULL;
        strike(&scenes[i]);
    }
    tile_cuda_leave(&scope);
}

static void threads_have_streams_of_their_own(Scene *scene) { run_threads(scene, launch_often, 77777); }

static void threads_hear_their_own_launches(Scene *scene) { run_threads(scene, watch_often, 300000); }

/* ---- misuse ---- */

static void wrong_addresses_are_refused(Scene *scene) {
    static float host[N];
    void *memory = scene->x.data, *pinned = NULL;
    uint64_t managed = 0;
    TileCudaScope scope;
    scene->x.data = host;
    expect_refused(scene, "triple", TILE_INVALID_ARGUMENT, "x: data is an address of host memory");
    scene->x.data = memory;
    expect_good(scene, "triple");
    EXPECT(tile_cuda_enter(scene->device, NULL, &scope, &scene->error) == TILE_OK);
    DRIVER(cuMemAllocManaged(&managed, N * sizeof(float), 1));
    DRIVER(cuMemHostAlloc(&pinned, N * sizeof(float), 2));
    for (int i = 0; i < N; i++) ((float *)pinned)[i] = ((float *)(uintptr_t)managed)[i] = (float)i;
    scene->x.data = (void *)(uintptr_t)managed;
    expect_good(scene, "triple");
    scene->x.data = pinned;
    expect_good(scene, "chain");
    scene->x.data = memory;
    DRIVER(cuMemFreeHost(pinned));
    DRIVER(cuMemFree_v2(managed));
    tile_cuda_leave(&scope);
}

static void devices_that_are_not_there_are_refused(Scene *scene) {
    scene->x.device.device_id = scene->y.device.device_id = 99;
    expect_refused(scene, "triple", TILE_INVALID_ARGUMENT, "there is no device cuda:99");
    scene->x.device.device_id = scene->y.device.device_id = scene->device;
    expect_good(scene, "triple");
}

static tile_status run_wide(Scene *scene, const char *extent, const char *depth) {
    enum { SIDE = 300 };
    const TileSetting settings[] = {{"B", extent}, {"D", depth}};
    int64_t shape[] = {SIDE, SIDE};
    TileLibrary *library = compile(scene->compiler, settings, 2);
    TileKernel *kernel;
    DLTensor a = scene->x, c = scene->y;
    a.ndim = c.ndim = 2;
    a.shape = c.shape = shape;
    TileArg arguments[] = {TILE_TENSOR(&a), TILE_TENSOR(&a), TILE_TENSOR(&c)};
    tile_status status = library ? tile_library_kernel(library, "wide", &kernel) : TILE_INTERNAL;
    if (status == TILE_OK) status = tile_launch(kernel, arguments, 3, &scene->options);
    EXPECT(tile_device_synchronize(scene->device, NULL, NULL) == TILE_OK);
    tile_library_destroy(library);
    return status;
}

static void shared_memory_has_its_limit(Scene *scene) {
    if (run_wide(scene, "128", "64") != TILE_OK) complain("more than 48 KiB", scene->error.message);
    EXPECT(run_wide(scene, "256", "256") == TILE_UNAVAILABLE);
    if (!strstr(scene->error.message, "bytes of shared memory, and cuda:")) complain("limit", scene->error.message);
    expect_good(scene, "triple");
}

static void memory_has_its_limit(Scene *scene) {
    void *memory = NULL;
    EXPECT(tile_device_allocate(scene->device, (size_t)1 << 45, &memory, &scene->error) == TILE_OUT_OF_MEMORY);
    if (!strstr(scene->error.message, "CUDA_ERROR_OUT_OF_MEMORY")) complain("memory", scene->error.message);
    /* Makes the temporary of `chain` too large: with a stride of 0 x needs no memory, and y is not written. */
    int64_t zero = 0, extent = (int64_t)1 << 43;
    DLTensor x = scene->x, y = scene->y;
    bool swapped = x.data > y.data;
    scene->x.data = swapped ? y.data : x.data;
    scene->y.data = swapped ? x.data : y.data;
    scene->x.shape = scene->y.shape = &extent;
    scene->x.strides = &zero;
    expect_refused(scene, "chain", TILE_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY");
    scene->x = x;
    scene->y = y;
    expect_good(scene, "chain");
}

static void nothing_is_leaked(Scene *scene) {
    size_t before = 0, after = 0, total;
    TileCudaScope scope;
    EXPECT(tile_cuda_enter(scene->device, NULL, &scope, &scene->error) == TILE_OK);
    for (int i = 0; i < 60; i++) {
        Scene again;
        if (i == 10) DRIVER(cuMemGetInfo_v2(&before, &total));
        if (!set(&again, scene->device)) complain("scene", "");
        expect_good(&again, "triple");
        expect_good(&again, "chain");
        strike(&again);
    }
    DRIVER(cuMemGetInfo_v2(&after, &total));
    if (after + ((size_t)8 << 20) < before) complain("memory is lost", "");
    tile_cuda_leave(&scope);
}

static void two_devices_take_turns(Scene *scene) {
    Scene other;
    if (!set(&other, 1)) complain("scene", "");
    for (int i = 0; i < 10; i++) {
        expect_good(scene, "chain");
        TileLibrary *own = other.library;
        other.library = scene->library; /* the same library */
        expect_good(&other, "chain");
        other.library = own;
    }
    void *memory = scene->x.data;
    scene->x.data = other.x.data;
    expect_refused(scene, "triple", TILE_INVALID_ARGUMENT, "x: data is memory of cuda:1, though");
    scene->x.data = memory;
    expect_good(scene, "triple");
    strike(&other);
}

int main(void) {
    static const struct {
        const char *name;
        void (*run)(Scene *scene);
        int devices;
    } tests[] = {
        {"a graph captures the first launch, and repeats it", a_graph_captures_and_repeats, 1},
        {"code goes when nothing holds it", code_goes_when_nothing_holds_it, 1},
        {"where no context is current none is left", no_context_stays_none, 1},
        {"the caller's context and stream are used", the_callers_context_is_used, 1},
        {"threads have streams of their own", threads_have_streams_of_their_own, 1},
        {"lines and failed assertions come back with the launch", lines_and_failures_come_back, 1},
        {"lines without room are counted", lines_without_room_are_counted, 1},
        {"a graph says it each time", a_graph_says_it_each_time, 1},
        {"threads hear their own launches", threads_hear_their_own_launches, 1},
        {"wrong addresses are refused", wrong_addresses_are_refused, 1},
        {"devices that are not there are refused", devices_that_are_not_there_are_refused, 1},
        {"shared memory has its limit", shared_memory_has_its_limit, 1},
        {"memory has its limit", memory_has_its_limit, 1},
        {"nothing is leaked", nothing_is_leaked, 1},
        {"two devices take turns", two_devices_take_turns, 2},
    };
    const char *why_not = tile_cuda_why_not(), *missing = why_not ? NULL : find_functions();
    int devices = 0;
    if (why_not || missing) {
        printf("skipped: %s\n", why_not ? why_not : missing);
        return SKIPPED;
    }
    cuda.cuDeviceGetCount(&devices);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        Scene scene;
        int before = failures;
        test_name = tests[i].name;
        if (devices < tests[i].devices) {
            printf("skip %s: it takes %d GPUs\n", test_name, tests[i].devices);
            continue;
        }
        if (set(&scene, 0)) tests[i].run(&scene);
        strike(&scene);
        if (failures == before) printf("good %s\n", test_name);
    }
    return failures != 0;
}
