/* Tensor maps of launches: what the driver is asked to encode, when it is asked, and which code gets them. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "launch/cuda.h"
#include "launch/cuda_maps.h"
#include "launch/guard.h"
#include "tests/gpu/fake/fake_cuda.h"
#include "tests/unit/launch/parameter.h"
#include "tile/launch.h"

/* move(x: in f32[A, B, C], y: out f32[A]): a grid of A programs, whose code has maps of x. */
static const char *const x_extents[] = {"A", "B", "C"}, *const y_extents[] = {"A"};
static const TileImageParameter parameters[] = {F32_TENSOR("x", IN, x_extents), F32_TENSOR("y", OUT, y_extents)};
static const TileImageSignature signature = {.name = "move",
                                             .text = "move(x: in f32[A, B, C], y: out f32[A])",
                                             .parameters = parameters,
                                             .parameter_count = 2,
                                             .gpu = true,
                                             .maps = true};
static const TileHostInstruction host[] = {{.op = TILE_HOST_DIM, .type = TILE_HOST_I64, .a = 0, .b = 0}};
static const TileImagePhase phases[] = {{.rank = 1, .extents = {0}}};
static const uint8_t order[] = {0, 1};
static const TileImageMap maps[] = {
    {.slot = 0, .box = {2, 8, 32}, .rank = 3, .element_bytes = 4, .swizzle = 128},
    {.slot = 0, .box = {1, 2, 4}, .rank = 3, .element_bytes = 4, .step = {1, 3, 1}},
};
enum { SLOTS = 7 + 3, ROOM = 1 << 16 };

typedef struct Scene {
    bool asks;       /* code uses a map where it may */
    unsigned mapped; /* how often it did */
    TileImageRequest last;
    TileLibrary *library;
    TileKernel *kernel;
    int64_t extents[3], strides[3], y_extent;
    DLTensor x, y;
    TileArg arguments[2];
    TileError error;
    TileLaunchOptions options;
} Scene;

static void destroy_code(TileImageCode *code) {
    tile_cuda_module_destroy(code->gpu);
    free(code);
}

/* What the compiler makes: code with maps where they are granted, else code without. */
static tile_status compile(void *state, uint32_t kernel, const TileImageRequest *request, TileImageCode **code,
                           TileReport **report) {
    Scene *scene = state;
    const uint64_t fact = TILE_GUARD_MAP | tile_guard_align(16);
    bool mapped = scene->asks && (request->facts[0] & fact) == fact;
    (void)kernel, (void)report;
    scene->last = *request;
    scene->mapped += mapped;
    TileCudaPhase made = {.symbol = mapped ? "move$map" : "move$0", .threads = 128};
    if (mapped) made.map_count = 2, made.maps = maps;
    *code = calloc(1, sizeof **code);
    **code = (TileImageCode){.host = host,
                             .phases = phases,
                             .order = order,
                             .host_count = 1,
                             .phase_count = 1,
                             .order_count = 2,
                             .gpu = tile_cuda_module_create("ptx", 3, &made, 1),
                             .destroy = destroy_code};
    if (mapped) (*code)->need[0] = fact;
    if (scene->asks) (*code)->asked[0] = TILE_GUARD_MAP | 15;
    return TILE_OK;
}

static void forget(void *state) { (void)state; }

static DLTensor tensor(int rank, int64_t *extents, int64_t *strides) {
    void *memory = NULL;
    cr_assert(tile_device_allocate(0, ROOM, &memory, NULL) == TILE_OK);
    return (DLTensor){.data = memory,
                      .device = {kDLCUDA, 0},
                      .ndim = rank,
                      .dtype = {kDLFloat, 32, 1},
                      .shape = extents,
                      .strides = strides};
}

static void set(Scene *scene) {
    scene->asks = true;
    memcpy(scene->extents, (int64_t[]){3, 5, 36}, sizeof scene->extents);
    memcpy(scene->strides, (int64_t[]){200, 40, 1}, sizeof scene->strides);
    scene->y_extent = 3;
    TileImageSource source = {.compile = compile, .destroy = forget, .state = scene};
    cr_assert(tile_library_create(&signature, 1, source, &scene->library) == TILE_OK);
    scene->kernel = tile_library_kernel_at(scene->library, 0);
    scene->x = tensor(3, scene->extents, scene->strides);
    scene->y = tensor(1, &scene->y_extent, NULL);
    scene->arguments[0] = TILE_TENSOR(&scene->x);
    scene->arguments[1] = TILE_TENSOR(&scene->y);
    scene->options = (TileLaunchOptions){.struct_size = sizeof scene->options, .error = &scene->error};
    fake_cuda_expect(SLOTS + 2);
    fake_cuda_expect_maps(2);
}

static void launch(Scene *scene) {
    cr_assert(tile_launch(scene->kernel, scene->arguments, 2, &scene->options) == TILE_OK, "%s", scene->error.message);
}

static const FakeCudaLaunch *last_launch(void) { return fake_cuda_launch(fake_cuda_state().launches - 1); }

static int encoded(void) { return fake_cuda_calls("cuTensorMapEncodeTiled"); }

static void strike(Scene *scene) {
    tile_library_destroy(scene->library);
    tile_device_release(0, scene->x.data);
    tile_device_release(0, scene->y.data);
    FakeCudaState state = fake_cuda_state();
    cr_expect(state.allocations == 0 && state.libraries == 0);
    cr_expect(state.violations == 0, "%d calls that a driver refuses", state.violations);
}

/* ---- what is encoded ---- */

Test(cuda_maps, a_launch_has_maps_behind_its_words) {
    Scene scene = {0};
    set(&scene);
    launch(&scene);
    const FakeCudaLaunch *made = last_launch();
    uint64_t address = (uintptr_t)scene.x.data;
    uint64_t words[SLOTS] = {address, 3, 5, 36, 800, 160, 4, (uintptr_t)scene.y.data, 3, 4};
    cr_expect_str_eq(made->kernel, "move$map");
    cr_expect_arr_eq(made->parameters, words, sizeof words);
    const FakeCudaMap *map = &made->maps[0];
    cr_expect(map->address == address && map->rank == 3 && map->type == 2 && map->swizzle == 3);
    cr_expect(map->extents[0] == 36 && map->extents[1] == 5 && map->extents[2] == 3, "the contiguous axis first");
    cr_expect(map->strides[0] == 160 && map->strides[1] == 800);
    cr_expect(map->box[0] == 32 && map->box[1] == 8 && map->box[2] == 2);
    cr_expect(made->maps[1].box[0] == 4 && made->maps[1].box[1] == 4 && made->maps[1].swizzle == 0, "a box that reaches over 4, of which it has 2");
    strike(&scene);
}

/* The driver refuses a stride of 0, or none that is a multiple of 16, though nothing lies there. */
Test(cuda_maps, the_stride_of_an_axis_of_one_element_is_any) {
    Scene scene = {0};
    set(&scene);
    scene.extents[1] = 1;
    scene.strides[1] = 7;
    launch(&scene);
    cr_expect(last_launch()->maps[0].strides[0] == 144 && last_launch()->maps[0].strides[1] == 800);
    scene.extents[0] = scene.y_extent = 1;
    scene.strides[0] = -1;
    launch(&scene);
    cr_expect(last_launch()->maps[0].strides[1] == 144 && scene.mapped == 1);
    strike(&scene);
}

Test(cuda_maps, an_error_of_the_driver_is_told) {
    Scene scene = {0};
    set(&scene);
    fake_cuda_fail("cuTensorMapEncodeTiled", 2, 1);
    cr_expect(tile_launch(scene.kernel, scene.arguments, 2, &scene.options) == TILE_DRIVER);
    cr_expect(strstr(scene.error.message, "move: the CUDA driver") != NULL, "%s", scene.error.message);
    cr_expect(fake_cuda_state().launches == 0);
    launch(&scene);
    strike(&scene);
}

/* ---- when it is encoded ---- */

Test(cuda_maps, what_was_encoded_is_remembered) {
    Scene scene = {0};
    set(&scene);
    launch(&scene);
    cr_expect(encoded() == 2);
    for (int i = 0; i < 5; i++) launch(&scene);
    cr_expect(encoded() == 2 && fake_cuda_state().launches == 6);
    FakeCudaMap first = last_launch()->maps[0];
    DLTensor x = scene.x;
    scene.x = tensor(3, scene.extents, scene.strides);
    launch(&scene);
    cr_expect(encoded() == 4 && last_launch()->maps[0].address == (uintptr_t)scene.x.data, "another address");
    tile_device_release(0, scene.x.data);
    scene.x = x;
    launch(&scene);
    cr_expect(encoded() == 4 && memcmp(&first, &last_launch()->maps[0], sizeof first) == 0);
    scene.extents[2] = 20;
    launch(&scene);
    cr_expect(encoded() == 6 && last_launch()->maps[0].extents[0] == 20, "other extents");
    scene.strides[1] = 36;
    launch(&scene);
    cr_expect(encoded() == 8 && last_launch()->maps[0].strides[0] == 144, "other strides");
    strike(&scene);
}

/* Bound calls with addresses like those that they were bound with, too (queue.c). */
Test(cuda_maps, bound_calls_have_those_of_the_addresses) {
    Scene scene = {0};
    TileBound *bound = NULL;
    set(&scene);
    cr_assert(tile_bind(scene.kernel, scene.arguments, 2, &scene.options, &bound) == TILE_OK, "%s", scene.error.message);
    DLTensor other = tensor(3, scene.extents, scene.strides);
    for (int i = 0; i < 4; i++) {
        void *addresses[] = {i % 2 ? other.data : scene.x.data, scene.y.data};
        scene.options.flags = TILE_LAUNCH_REMEMBERED;
        cr_assert(tile_launch_bound(bound, addresses, &scene.options) == TILE_OK, "%s", scene.error.message);
        cr_expect(last_launch()->maps[0].address == (uintptr_t)addresses[0]);
        cr_expect(last_launch()->parameters[0] == (uintptr_t)addresses[0]);
        scene.options.flags = 0;
        cr_assert(tile_launch_bound(bound, NULL, &scene.options) == TILE_OK, "%s", scene.error.message);
        cr_expect(last_launch()->maps[0].address == (uintptr_t)scene.x.data);
    }
    cr_expect(encoded() == 4, "%d maps", encoded());
    tile_bound_destroy(bound);
    tile_device_release(0, other.data);
    strike(&scene);
}

Test(cuda_maps, graphs_keep_their_maps) {
    Scene scene = {0};
    set(&scene);
    scene.options.stream = fake_cuda_stream(fake_cuda_primary(0) ? fake_cuda_primary(0) : fake_cuda_context(0));
    launch(&scene);
    int before = fake_cuda_state().launches;
    fake_cuda_begin_capture();
    scene.extents[2] = 24;
    launch(&scene);
    cr_assert(fake_cuda_end_capture(), "making a map is allowed");
    const FakeCudaLaunch *captured = fake_cuda_launch(before);
    scene.extents[2] = 28;
    launch(&scene);
    cr_expect(captured->maps[0].extents[0] == 24 && last_launch()->maps[0].extents[0] == 28);
    fake_cuda_run_graph();
    fake_cuda_drop_graph();
    strike(&scene);
}

/* ---- threads ---- */

enum { THREADS = 4, TENSORS = 40, ROUNDS = 50 };

typedef struct Worker {
    Scene *scene;
    char *memory;
    unsigned wrong;
} Worker;

/* Each launch's map is checked when it happens, with the driver's mutex held. */
static _Atomic unsigned wrong_maps;
static void check_map(const FakeCudaLaunch *launch) {
    wrong_maps += launch->maps[0].address != launch->parameters[0] ||
                  launch->maps[1].address != launch->parameters[0] ||
                  launch->maps[0].extents[2] != launch->parameters[1];
}

static void *launch_all(void *state) {
    Worker *worker = state;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < TENSORS; i++) {
            DLTensor x = worker->scene->x;
            x.data = worker->memory + 256 * i;
            TileArg arguments[] = {TILE_TENSOR(&x), TILE_TENSOR(&worker->scene->y)};
            worker->wrong += tile_launch(worker->scene->kernel, arguments, 2, NULL) != TILE_OK;
        }
    return NULL;
}

Test(cuda_maps, threads_get_their_own_maps) {
    Scene scene = {0};
    pthread_t threads[THREADS];
    Worker workers[THREADS];
    set(&scene);
    launch(&scene);
    fake_cuda_set_kernel(check_map);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (Worker){&scene, (char *)scene.x.data + 256 * (i / 2), 0};
        pthread_create(&threads[i], NULL, launch_all, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect(workers[i].wrong == 0);
    }
    cr_expect(wrong_maps == 0, "%u", wrong_maps);
    fake_cuda_set_kernel(NULL);
    strike(&scene);
}

/* One map, of a vector; the slots are its address, extent and stride. */
typedef struct Reader {
    TileCudaMaps *maps;
    uint64_t address;
    unsigned wrong;
} Reader;

enum { LOOKS = 300000 };

static void find(TileCudaMaps *maps, uint64_t address, TileCudaMap *made) {
    const uint64_t slots[] = {address, 64, 4};
    cr_assert(tile_cuda_maps_find(maps, slots, made, "vector", NULL) == TILE_OK);
}

static void *look(void *state) {
    Reader *reader = state;
    for (int i = 0; i < LOOKS; i++) {
        TileCudaMap made;
        FakeCudaMap map;
        find(reader->maps, reader->address, &made);
        memcpy(&map, &made, sizeof map);
        reader->wrong += map.address != reader->address || map.extents[0] != 64 || map.mark != FAKE_CUDA_MAP;
    }
    return NULL;
}

/* Two addresses whose maps are kept in one place: what one thread writes there another one reads. */
Test(cuda_maps, maps_are_read_whole) {
    static const TileImageMap vector = {.box = {16}, .rank = 1, .element_bytes = 4};
    TileCudaMaps *kept = tile_cuda_maps_create(&vector, 1);
    TileCudaMap made;
    uint64_t other = 4096;
    cr_assert(tile_cuda_why_not() == NULL);
    for (int before = -1; before != encoded() - 2; other += 16) {
        find(kept, 1024, &made);
        before = encoded();
        find(kept, other + 16, &made);
        find(kept, 1024, &made);
    }
    Reader readers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        readers[i] = (Reader){kept, i % 2 ? 1024 : other, 0};
        pthread_create(&threads[i], NULL, look, &readers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect(readers[i].wrong == 0, "%u of %d", readers[i].wrong, LOOKS);
    }
    tile_cuda_maps_destroy(kept);
}

/* ---- which code ---- */

Test(cuda_maps, code_with_maps_serves_the_tensors_that_have_them) {
    Scene scene = {0};
    set(&scene);
    launch(&scene);
    cr_expect(scene.mapped == 1 && (scene.last.facts[0] & TILE_GUARD_MAP) && (scene.last.facts[1] & TILE_GUARD_MAP));
    scene.strides[1] = 41; /* 164 bytes */
    launch(&scene);
    cr_expect_str_eq(last_launch()->kernel, "move$0");
    cr_expect(!(scene.last.facts[0] & TILE_GUARD_MAP));
    scene.strides[1] = 0;
    launch(&scene);
    cr_expect_str_eq(last_launch()->kernel, "move$0");
    scene.strides[1] = 40;
    launch(&scene);
    cr_expect_str_eq(last_launch()->kernel, "move$map");
    scene.x.byte_offset = 8; /* replayed where that would be right */
    launch(&scene);
    cr_expect_str_eq(last_launch()->kernel, "move$0");
    scene.x.byte_offset = 32;
    launch(&scene);
    cr_expect_str_eq(last_launch()->kernel, "move$map");
    cr_expect(scene.mapped == 1);
    strike(&scene);
}

/* Code that was made for a tensor without a map, and would have used one, does not serve one that has it. */
Test(cuda_maps, what_code_asked_for_is_granted_later) {
    Scene scene = {0};
    set(&scene);
    scene.x.byte_offset = 4;
    launch(&scene);
    cr_expect(scene.mapped == 0);
    scene.x.byte_offset = 0;
    launch(&scene);
    cr_expect_str_eq(last_launch()->kernel, "move$map");
    strike(&scene);
}

Test(cuda_maps, code_that_does_not_ask_is_made_once) {
    Scene scene = {0};
    set(&scene);
    scene.asks = false;
    fake_cuda_expect_maps(0);
    launch(&scene);
    scene.strides[1] = 41;
    launch(&scene);
    TileKernelStats stats;
    tile_kernel_stats(scene.kernel, &stats);
    cr_expect(stats.variants == 1 && encoded() == 0);
    strike(&scene);
}

/* ---- positions ---- */

static const TileImageMap pictures[] = {
    {.slot = 0, .box = {1, 1, 1, 64}, .rank = 4, .element_bytes = 2, .swizzle = 128, .step = {1, 2, 1, 1}, .positions = 192, .corner = {-1, -64}, .over = {10, 11}},
    {.slot = 0, .box = {1, 1, 1, 64}, .rank = 4, .element_bytes = 2, .swizzle = 128},
};

/* What a launch with these slots gets: the word at 10 and the one at 11 say how many positions there are. */
static tile_status find_maps(TileCudaMaps *found, uint64_t rows, uint64_t columns, TileCudaMap *made) {
    const uint64_t slots[] = {4096, 5, 7, 9, 128, 16128, 2304, 256, 2, 8192, rows, columns};
    TileError error = {0};
    return tile_cuda_maps_find(found, slots, made, "k", &error);
}

Test(cuda_maps, maps_of_positions) {
    TileCudaMap made[2];
    FakeCudaMap map;
    TileCudaMaps *found = tile_cuda_maps_create(pictures, 2);
    cr_assert(tile_cuda_why_not() == NULL && find_maps(found, 4, 9, made) == TILE_OK);
    memcpy(&map, &made[0], sizeof map);
    cr_expect(map.address == 4096 && map.rank == 4 && map.type == 1 && map.swizzle == 3 && map.positions == 192 && map.box[0] == 64);
    cr_expect(map.extents[0] == 128 && map.extents[1] == 9 && map.extents[2] == 7 && map.extents[3] == 5);
    cr_expect(map.strides[0] == 256 && map.strides[1] == 2304 && map.strides[2] == 16128);
    cr_expect(map.lower[0] == -64 && map.lower[1] == -1, "columns come first");
    cr_expect(map.upper[0] == -64 && map.upper[1] == -1 + 3 * 2 - 6);
    memcpy(&map, &made[1], sizeof map);
    cr_expect(map.positions == 0 && map.box[0] == 64);
    cr_expect(fake_cuda_calls("cuTensorMapEncodeIm2col") == 1 && encoded() == 1);
    cr_expect(find_maps(found, 4, 9, made) == TILE_OK && fake_cuda_calls("cuTensorMapEncodeIm2col") == 1, "it is remembered");
    cr_expect(find_maps(found, 4, 10, made) == TILE_OK && fake_cuda_calls("cuTensorMapEncodeIm2col") == 2, "there are more columns");
    memcpy(&map, &made[0], sizeof map);
    cr_expect(map.upper[0] == -63 && encoded() == 1, "the other map is that of before");
    cr_expect(find_maps(found, 70, 9 + 192, made) == TILE_OK, "no corner says so many: code asks");
    memcpy(&map, &made[0], sizeof map);
    cr_expect(map.upper[0] == 127 && map.upper[1] == 127);
    cr_expect(find_maps(found, 0, 9, made) == TILE_OK && find_maps(found, 4, UINT64_MAX, made) == TILE_OK);
    tile_cuda_maps_destroy(found);
}
