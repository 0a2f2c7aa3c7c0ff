/* Bound calls on a GPU with addresses like those that they were bound with: the short way to the driver (queue.c). */
#include "tests/unit/cuda/scene.h"

static TileBound *bind(Scene *scene) {
    TileBound *bound = NULL;
    cr_assert(tile_bind(scene->kernel, scene->arguments, 2, &scene->options, &bound) == TILE_OK, "%s",
              scene->error.message);
    return bound;
}

static tile_status launch_at(Scene *scene, const TileBound *bound, void *x, void *y, uint32_t flags) {
    scene->options.flags = flags;
    return tile_launch_bound(bound, (void *[]){x, y}, &scene->options);
}

static void expect_grids(const Scene *scene, int first, const void *x, const void *y) {
    uint64_t expected[] = {(uintptr_t)x, N, 4, (uintptr_t)y, N, 4, 0, N};
    for (int i = first; i < first + 2; i++) {
        const FakeCudaLaunch *grid = fake_cuda_launch(i);
        cr_assert(grid != NULL);
        cr_expect_arr_eq(grid->parameters, expected, sizeof expected);
        cr_expect(grid->stream == scene->options.stream && grid->early == (i > first) && grid->grid == N);
    }
    cr_expect(fake_cuda_launch(first + 2) == NULL);
}

Test(queue, new_addresses_go_to_the_driver) {
    Scene scene = {.maker = {.no_temp = true, .waits = true}};
    set(&scene, 0);
    fake_cuda_expect(8);
    TileBound *bound = bind(&scene);
    void *other = allocate(0), *third = allocate(0);
    cr_assert(launch_at(&scene, bound, other, third, TILE_LAUNCH_REMEMBERED) == TILE_OK, "%s", scene.error.message);
    expect_grids(&scene, 0, other, third);
    scene.options.flags = 0;
    cr_assert(tile_launch_bound(bound, NULL, &scene.options) == TILE_OK, "%s", scene.error.message);
    expect_grids(&scene, 2, scene.x.data, scene.y.data);
    cr_assert(launch_at(&scene, bound, third, other, 0) == TILE_OK, "%s", scene.error.message);
    expect_grids(&scene, 4, third, other);
    TileKernelStats stats;
    tile_kernel_stats(scene.kernel, &stats);
    cr_expect(stats.launches == 3, "%d launches", (int)stats.launches);
    tile_bound_destroy(bound);
    tile_device_release(0, other);
    tile_device_release(0, third);
    strike(&scene);
}

Test(queue, what_is_not_alike_goes_another_way) {
    Scene scene = {.maker = {.no_temp = true}};
    set(&scene, 0);
    TileBound *bound = bind(&scene);
    char *x = scene.x.data, *y = scene.y.data;
    cr_expect(launch_at(&scene, bound, x, x + 8, TILE_LAUNCH_REMEMBERED) == TILE_NOT_FOUND, "shared memory");
    cr_expect(launch_at(&scene, bound, x + 1, y, TILE_LAUNCH_REMEMBERED) == TILE_NOT_FOUND, "not aligned");
    cr_expect(launch_at(&scene, bound, NULL, y, TILE_LAUNCH_REMEMBERED) == TILE_NOT_FOUND);
    cr_expect(launch_at(&scene, bound, (void *)(UINTPTR_MAX - 3), y, TILE_LAUNCH_REMEMBERED) == TILE_NOT_FOUND);
    cr_expect(tile_launch_bound(bound, NULL, &scene.options) == TILE_NOT_FOUND, "the flag is for given addresses");
    cr_expect(fake_cuda_state().launches == 0);
    float here[2 * N];
    cr_expect(launch_at(&scene, bound, here, y, TILE_LAUNCH_REMEMBERED) == TILE_INVALID_ARGUMENT);
    expect_words(&scene, "x: data is an address of host memory");
    cr_expect(scene.options.report == NULL && fake_cuda_state().launches == 0);
    TileReport *report = NULL;
    scene.options.report = &report;
    cr_expect(launch_at(&scene, bound, here, y, TILE_LAUNCH_REMEMBERED) == TILE_INVALID_ARGUMENT);
    cr_expect(report && strstr(tile_report_text(report, false), "host memory"));
    tile_report_destroy(report);
    tile_bound_destroy(bound);
    strike(&scene);
}

/* Whatever context is current: none, the device's primary one, another device's. */
Test(queue, the_context_of_the_device) {
    Scene scene = {.maker = {.no_temp = true}};
    TileCudaScope scope, other;
    set(&scene, 1);
    TileBound *bound = bind(&scene);
    for (int way = 0; way < 6; way++) {
        if (way % 3) cr_assert(tile_cuda_enter(1, NULL, &scope, NULL) == TILE_OK);
        if (way % 3 == 2) cr_assert(tile_cuda_enter(0, NULL, &other, NULL) == TILE_OK);
        cr_assert(launch_at(&scene, bound, scene.x.data, scene.y.data, TILE_LAUNCH_REMEMBERED) == TILE_OK, "%s",
                  scene.error.message);
        cr_expect(fake_cuda_launch(2 * way)->context == fake_cuda_primary(1));
        if (way % 3 == 2) tile_cuda_leave(&other);
        if (way % 3) tile_cuda_leave(&scope);
    }
    tile_bound_destroy(bound);
    strike(&scene);
}

/* With all known: the current context, the launches; where a stream may be captured, whether it is. */
Test(queue, asks_little_of_the_driver) {
    Scene scene = {.maker = {.no_temp = true}};
    TileCudaScope scope;
    set(&scene, 0);
    TileBound *bound = bind(&scene);
    cr_assert(tile_cuda_enter(0, NULL, &scope, NULL) == TILE_OK);
    for (int streams = 0; streams < 2; streams++) {
        if (streams) scene.options.stream = fake_cuda_stream(fake_cuda_primary(0));
        cr_assert(launch_at(&scene, bound, scene.x.data, scene.y.data, TILE_LAUNCH_REMEMBERED) == TILE_OK);
        int before = fake_cuda_state().calls;
        cr_assert(launch_at(&scene, bound, scene.x.data, scene.y.data, TILE_LAUNCH_REMEMBERED) == TILE_OK);
        cr_expect(fake_cuda_state().calls - before == 1 + 2 + streams, "%d calls", fake_cuda_state().calls - before);
    }
    scene.options.stream = NULL;
    tile_cuda_leave(&scope);
    tile_bound_destroy(bound);
    strike(&scene);
}

/* Also where nothing but the address is new. */
Test(queue, new_addresses_are_asked_about) {
    Scene scene = {.maker = {.no_temp = true}};
    TileCudaScope scope;
    float here[2 * N];
    set(&scene, 0);
    TileBound *bound = bind(&scene);
    cr_assert(tile_cuda_enter(0, NULL, &scope, NULL) == TILE_OK);
    for (int i = 0; i < 2; i++)
        cr_assert(launch_at(&scene, bound, scene.x.data, scene.y.data, TILE_LAUNCH_REMEMBERED) == TILE_OK);
    cr_expect(launch_at(&scene, bound, scene.x.data, here, TILE_LAUNCH_REMEMBERED) == TILE_INVALID_ARGUMENT);
    expect_words(&scene, "y: data is an address of host memory");
    cr_expect(fake_cuda_state().launches == 4);
    tile_cuda_leave(&scope);
    tile_bound_destroy(bound);
    strike(&scene);
}

enum { MOST_NUMBERS = 4 };

/* twice(x: in f32[N], y: out f32[N], s0: i64, ..), of so many numbers. */
static TileBound *bind_numbers(Scene *scene, TileImageSignature *many, uint32_t count) {
    static const TileImageParameter parameters[] = {F32_TENSOR("x", IN, extents), F32_TENSOR("y", OUT, extents),
                                                    SCALAR("s0", I64, "i64"),     SCALAR("s1", I64, "i64"),
                                                    SCALAR("s2", I64, "i64"),     SCALAR("s3", I64, "i64")};
    *many = (TileImageSignature){
        .name = "twice", .text = "twice", .parameters = parameters, .parameter_count = 2 + count, .gpu = true};
    *scene = (Scene){.maker = {.no_temp = true, .numbers = (uint8_t)count}};
    set_kernel(scene, 0, many);
    TileArg arguments[2 + MOST_NUMBERS] = {scene->arguments[0], scene->arguments[1]};
    for (uint32_t i = 0; i < count; i++) arguments[2 + i] = TILE_INTEGER(10 * count + i);
    TileBound *bound = NULL;
    cr_assert(tile_bind(scene->kernel, arguments, 2 + count, &scene->options, &bound) == TILE_OK, "%s", scene->error.message);
    return bound;
}

/* The driver's list is copied by several words at a time, however many are left over. All stay bound, so that no word is right
 * because an earlier launch left it there. */
Test(queue, every_word_is_copied) {
    Scene scenes[1 + MOST_NUMBERS];
    TileImageSignature signatures[1 + MOST_NUMBERS];
    TileBound *all[1 + MOST_NUMBERS];
    for (uint32_t count = 0; count <= MOST_NUMBERS; count++) {
        Scene *scene = &scenes[count];
        all[count] = bind_numbers(scene, &signatures[count], count);
        fake_cuda_expect(8 + count);
        void *addresses[2 + MOST_NUMBERS] = {scene->y.data, scene->x.data};
        uint64_t expected[8 + MOST_NUMBERS] = {(uintptr_t)addresses[0], N, 4, (uintptr_t)addresses[1], N, 4};
        for (uint32_t i = 0; i < count; i++) expected[6 + i] = 10 * count + i;
        expected[7 + count] = N;
        for (int way = 0; way < 2; way++) {
            scene->options.flags = way ? 0 : TILE_LAUNCH_REMEMBERED;
            if (way) expected[0] = (uintptr_t)scene->x.data, expected[3] = (uintptr_t)scene->y.data;
            int before = fake_cuda_state().launches;
            cr_assert(tile_launch_bound(all[count], way ? NULL : addresses, &scene->options) == TILE_OK, "%s", scene->error.message);
            for (int grid = before; grid < before + 2; grid++)
                cr_expect_arr_eq(fake_cuda_launch(grid)->parameters, expected, (8 + count) * sizeof *expected, "%u numbers", count);
        }
    }
    for (uint32_t count = 0; count < MOST_NUMBERS; count++) {
        tile_bound_destroy(all[count]);
        tile_library_destroy(scenes[count].library);
        tile_device_release(0, scenes[count].x.data);
        tile_device_release(0, scenes[count].y.data);
    }
    tile_bound_destroy(all[MOST_NUMBERS]);
    strike(&scenes[MOST_NUMBERS]);
}

/* Each grid has its own number of programs, in the first launch and in those that follow, whose list is the same. */
Test(queue, grids_of_different_numbers_of_programs) {
    static const TileImagePhase line_and_square[] = {{.rank = 1, .extents = {0}}, {.rank = 2, .extents = {0, 0}}};
    Scene scene = {.maker = {.no_temp = true, .phases = line_and_square}};
    set(&scene, 0);
    fake_cuda_expect(8);
    TileBound *bound = bind(&scene);
    for (int i = 0; i < 6; i++) {
        scene.options.flags = 0;
        cr_assert((i % 2 ? launch_at(&scene, bound, scene.x.data, scene.y.data, TILE_LAUNCH_REMEMBERED)
                         : tile_launch_bound(bound, NULL, &scene.options)) == TILE_OK);
        for (int grid = 0; grid < 2; grid++) {
            const FakeCudaLaunch *launch = fake_cuda_launch(2 * i + grid);
            cr_expect(launch->grid == (grid ? N * N : N) && launch->parameters[6] == 0 && launch->parameters[7] == launch->grid);
        }
    }
    tile_bound_destroy(bound);
    strike(&scene);
}

/* A driver's grid has less than 2**31 blocks, and code does not ask where a launch begins: a larger one is refused, behind the grids in front of it. */
Test(queue, more_programs_than_a_grid_has_blocks) {
    static const TileImagePhase line_and_square[] = {{.rank = 1, .extents = {0}}, {.rank = 2, .extents = {0, 0}}};
    const uint64_t line = 1 << 17;
    Scene scene = {.maker = {.no_temp = true, .phases = line_and_square}};
    set(&scene, 0);
    scene.extent = (int64_t)line;
    void *other, *x = scene.x.data;
    cr_assert(tile_device_allocate(0, 2 * line * sizeof(float), &scene.x.data, NULL) == TILE_OK);
    cr_assert(tile_device_allocate(0, line * sizeof(float), &other, NULL) == TILE_OK);
    void *y = scene.y.data;
    scene.y.data = (float *)scene.x.data + line;
    TileBound *bound = bind(&scene);
    cr_expect(launch_at(&scene, bound, scene.x.data, other, TILE_LAUNCH_REMEMBERED) == TILE_UNSUPPORTED);
    expect_words(&scene, "twice: a grid of 17179869184 programs, of which a GPU launches 2147483640 at most");
    cr_expect(fake_cuda_state().launches == 1 && fake_cuda_launch(0)->grid == line);
    tile_bound_destroy(bound);
    tile_device_release(0, scene.x.data);
    tile_device_release(0, other);
    scene.x.data = x;
    scene.y.data = y;
    strike(&scene);
}

Test(queue, what_the_driver_refuses_is_said) {
    Scene scene = {.maker = {.no_temp = true}};
    set(&scene, 0);
    TileBound *bound = bind(&scene);
    cr_assert(launch_at(&scene, bound, scene.x.data, scene.y.data, TILE_LAUNCH_REMEMBERED) == TILE_OK);
    fake_cuda_fail("cuLaunchKernel", 2, 1);
    cr_expect(launch_at(&scene, bound, scene.x.data, scene.y.data, TILE_LAUNCH_REMEMBERED) == TILE_DRIVER);
    expect_words(&scene, "twice: the CUDA driver");
    cr_expect(fake_cuda_state().launches == 3);
    tile_bound_destroy(bound);
    strike(&scene);
}
