/* Assertions of compiled code: their numbers are returned in the scratch memory, and the launch reports the message. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "fixture.h"

enum { ROWS = 96 };

static float x_memory[ROWS], y_memory[ROWS];
static _Atomic int64_t rows_done, later_calls, dirty;

/* x < 0 violates the first assertion, x > 1000 the second. Slow enough that several threads run it. */
static void copy_checked(const uint64_t *slots, int64_t begin, int64_t end, void *scratch) {
    const float *x = (const float *)slots[0];
    float *y = (float *)slots[5];
    int64_t *failed = scratch;
    if (*failed) atomic_fetch_add(&dirty, 1);
    for (int64_t row = begin; row < end; row++) {
        usleep(50);
        if (!*failed && x[row] < 0) *failed = 1;
        if (!*failed && x[row] > 1000) *failed = 2;
        y[row] = x[row];
    }
    atomic_fetch_add(&rows_done, end - begin);
}

/* Without assertions, the code may use all of the scratch memory. */
static void count_call(const uint64_t *slots, int64_t begin, int64_t end, void *scratch) {
    (void)slots, (void)begin, (void)end;
    memset(scratch, 1, 64);
    atomic_fetch_add(&later_calls, 1);
}

static const char *const texts[] = {"k.tile:3:9: assertion failed: x >= 0", "k.tile:4:9: assertion failed: small"};
static const TileImagePhase checked_phases[] = {
    {.entry = copy_checked, .scratch_bytes = 64, .rank = 1, .extents = {0}, .assertions = texts, .assertion_count = 2},
    {.entry = count_call, .scratch_bytes = 64, .rank = 1, .extents = {0}}};

typedef struct World {
    Compiler compiler;
    TileImageCode code;
    TileLibrary *library;
    TileThreadPool *pool;
    TileError error;
} World;

static void make_world(World *world, int threads) {
    *world = (World){.code = *row_copy_code()};
    world->code.phases = checked_phases;
    world->code.phase_count = 2;
    world->compiler.code = &world->code;
    world->library = make_library(&row_copy, &world->compiler);
    TileThreadPoolOptions options = {.struct_size = sizeof options, .threads = threads};
    cr_assert_eq(tile_thread_pool_create(&options, &world->pool), TILE_OK);
    for (int i = 0; i < ROWS; i++) x_memory[i] = (float)i;
}

static void destroy_world(World *world) {
    tile_library_destroy(world->library);
    tile_thread_pool_destroy(world->pool);
}

static tile_status launch(World *world) {
    Tensor x, y;
    make_tensor(&x, x_memory, f32_type, 2, SHAPE(ROWS, 1), NULL);
    make_tensor(&y, y_memory, f32_type, 2, SHAPE(ROWS, 1), NULL);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &world->error, .threads = world->pool};
    TileKernel *kernel = NULL;
    cr_assert_eq(tile_library_kernel(world->library, NULL, &kernel), TILE_OK);
    world->error.message[0] = '\0';
    rows_done = later_calls = dirty = 0;
    tile_status status = tile_launch(kernel, args, 2, &options);
    cr_assert_eq(rows_done, ROWS);
    cr_assert_eq(dirty, 0);
    cr_assert(memcmp(x_memory, y_memory, sizeof x_memory) == 0);
    return status;
}

static void expect_passes(World *world) {
    cr_assert_eq(launch(world), TILE_OK, "%s", world->error.message);
    cr_assert_gt(later_calls, 0);
}

static void expect_fails(World *world, const char *message) {
    cr_assert_eq(launch(world), TILE_INVALID_ARGUMENT);
    cr_assert_eq(world->error.status, TILE_INVALID_ARGUMENT);
    cr_assert_str_eq(world->error.message, message);
    cr_assert_eq(later_calls, 0);
}

Test(assertions, fail_the_launch) {
    for (int threads = 1; threads <= 4; threads += 3) {
        World world;
        make_world(&world, threads);
        expect_passes(&world);
        for (int row = 0; row < ROWS; row += 19) {
            x_memory[row] = -1;
            expect_fails(&world, "row_copy: k.tile:3:9: assertion failed: x >= 0");
            x_memory[row] = 1001;
            expect_fails(&world, "row_copy: k.tile:4:9: assertion failed: small");
            x_memory[row] = 1;
            expect_passes(&world);
        }
        destroy_world(&world);
    }
}

Test(assertions, first_recorded) {
    World world;
    make_world(&world, 1);
    x_memory[5] = 2000;
    x_memory[6] = -1;
    expect_fails(&world, "row_copy: k.tile:4:9: assertion failed: small");
    x_memory[5] = -1;
    x_memory[6] = 2000;
    expect_fails(&world, "row_copy: k.tile:3:9: assertion failed: x >= 0");
    destroy_world(&world);
}

Test(assertions, one_of_several_threads) {
    World world;
    make_world(&world, 4);
    for (int i = 0; i < ROWS; i++) x_memory[i] = i % 2 ? -1 : 2000;
    cr_assert_eq(launch(&world), TILE_INVALID_ARGUMENT);
    bool first = strstr(world.error.message, texts[0]), second = strstr(world.error.message, texts[1]);
    cr_assert(first != second, "%s", world.error.message);
    destroy_world(&world);
}
