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

/* A driver's grid has less than 2**31 blocks. */
Test(queue, more_programs_than_a_grid_has_blocks) {
    static const TileImagePhase line_and_square[] = {{.rank = 1, .extents = {0}}, {.rank = 2, .extents = {0, 0}}};
    const uint64_t line = 1 << 17;
    Scene scene = {.maker = {.no_temp = true, .phases = line_and_square}};
    set(&scene, 0);
    fake_cuda_expect(8);
    scene.extent = (int64_t)line;
    void *other, *x = scene.x.data;
    cr_assert(tile_device_allocate(0, 2 * line * sizeof(float), &scene.x.data, NULL) == TILE_OK);
    cr_assert(tile_device_allocate(0, line * sizeof(float), &other, NULL) == TILE_OK);
    void *y = scene.y.data;
    scene.y.data = (float *)scene.x.data + line;
    TileBound *bound = bind(&scene);
    cr_assert(launch_at(&scene, bound, scene.x.data, other, TILE_LAUNCH_REMEMBERED) == TILE_OK, "%s", scene.error.message);
    uint64_t done = 0;
    cr_expect(fake_cuda_launch(0)->grid == line);
    for (int i = 1; i < fake_cuda_state().launches; i++) {
        const FakeCudaLaunch *launch = fake_cuda_launch(i);
        cr_expect(launch->parameters[6] == done && launch->parameters[7] == done + launch->grid);
        cr_expect(launch->parameters[3] == (uintptr_t)other);
        done += launch->grid;
    }
    cr_expect(done == line * line);
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
