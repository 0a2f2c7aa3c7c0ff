/* A hit allocates nothing and locks nothing: counters.c counts the calls. */
#include <criterion/criterion.h>

#include "counters.h"
#include "fixture.h"

Test(hit, allocates_nothing_and_locks_nothing) {
    Compiler compiler = {.code = row_copy_code(), .relies = true};
    TileLibrary *library = make_library(&row_copy, &compiler);
    TileThreadPoolOptions one = {.struct_size = sizeof one, .threads = 1};
    TileThreadPool *pool = NULL;
    cr_assert_eq(tile_thread_pool_create(&one, &pool), TILE_OK);
    static float memory[4][64] __attribute__((aligned(128)));
    Tensor tensors[2][2];
    TileArg args[2][2];
    for (int i = 0; i < 2; i++) {
        make_tensor(&tensors[i][0], memory[0], f32_type, 2, SHAPE(2, 8 + i), i ? SHAPE(16, 2) : NULL);
        make_tensor(&tensors[i][1], memory[2], f32_type, 2, SHAPE(2, 8 + i), NULL);
        args[i][0] = TILE_TENSOR(&tensors[i][0].dl);
        args[i][1] = TILE_TENSOR(&tensors[i][1].dl);
    }
    TileLaunchOptions options = {.struct_size = sizeof options, .threads = pool};
    TileKernel *kernel = tile_library_kernel_at(library, 0);
    for (int i = 0; i < 4; i++) cr_assert_eq(tile_launch(kernel, args[i % 2], 2, &options), TILE_OK);
    CallCounts before = count_calls();
    cr_assert(before.allocations > 0 && before.locks > 0, "the counters count");
    for (int i = 0; i < 1000; i++) { /* alternates between the last hit and the table */
        cr_assert_eq(tile_launch(kernel, args[i / 10 % 2], 2, &options), TILE_OK);
        cr_assert_eq(tile_prepare(kernel, args[i / 10 % 2], 2, &options), TILE_OK);
    }
    CallCounts after = count_calls();
    cr_assert_eq(after.allocations, before.allocations);
    cr_assert_eq(after.locks, before.locks);
    cr_assert_eq(compiler.compiled, 2);
    TileKernelStats stats;
    tile_kernel_stats(kernel, &stats);
    cr_assert(stats.launches == 1004 && stats.misses == 2 && stats.hits == 1002 && stats.variants == 2);
    cr_assert(stats.guard_ns / stats.hits > 0 && stats.guard_ns / stats.hits < 1000000, "some were timed");
    tile_library_destroy(library);
    tile_thread_pool_destroy(pool);
}
