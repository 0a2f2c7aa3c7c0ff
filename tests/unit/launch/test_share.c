/* Which pieces a phase's programs are shared in; that all are run once, whatever was measured before. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "launch/share.h"

enum { PIECES = 40 };

typedef struct Count {
    _Atomic int seen[PIECES], calls;
    long ns; /* of each call */
} Count;

static void count_pieces(void *state, int64_t begin, int64_t end) {
    Count *count = state;
    atomic_fetch_add(&count->calls, 1);
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&count->seen[i], 1);
    if (count->ns) nanosleep(&(struct timespec){.tv_nsec = count->ns}, NULL);
}

/* Stands for a host's threads: the pieces one by one, so that calls tell whether they were shared. */
static void one_by_one(void *host, int64_t count, int64_t pieces, TileParallelBody body, void *state) {
    ++*(int *)host;
    for (int64_t i = 0; i < count; i++) body(state, i, i + 1);
}

static TileThreadPool *make_pool(int *shared) {
    TileThreadPool *pool = NULL;
    TileThreadPoolOptions options = {
        .struct_size = sizeof options, .threads = 4, .parallel_for = one_by_one, .host = shared};
    cr_assert_eq(tile_thread_pool_create(&options, &pool), TILE_OK);
    return pool;
}

Test(share, pieces_are_whole_programs_where_there_are_enough) {
    cr_expect_eq(tile_share_grain(1000, 0, 4), 1, "programs without bands");
    cr_expect_eq(tile_share_grain(1024, 16, 4), 16, "64 programs for 4 threads");
    cr_expect_eq(tile_share_grain(64, 16, 4), 4, "4 programs: quarters of them");
    cr_expect_eq(tile_share_grain(16, 16, 4), 1, "one program: bands");
    cr_expect_eq(tile_share_grain(24, 6, 1), 6, "one thread");
    cr_expect_eq(tile_share_grain(24, 6, 2), 3, "half a program");
    cr_expect_eq(tile_share_grain(12, 6, 2), 1, "an odd number of bands is not halved");
}

Test(share, every_piece_once) {
    int shared = 0;
    TileThreadPool *pool = make_pool(&shared);
    TilePhaseCost cost = {0};
    for (uint32_t key = 1; key <= 3; key++)
        for (int64_t items = 1; items <= PIECES; items++) {
            Count count = {.ns = key == 2 ? 30000 : 0};
            tile_share_run(pool, &cost, key, items, count_pieces, &count);
            for (int64_t i = 0; i < PIECES; i++) cr_assert_eq(count.seen[i], i < items, "piece %d", (int)i);
        }
    tile_thread_pool_destroy(pool);
}

Test(share, little_work_stays_here) {
    int shared = 0;
    TileThreadPool *pool = make_pool(&shared);
    TilePhaseCost cost = {0};
    for (int i = 0; i < 50; i++) {
        Count count = {0};
        tile_share_run(pool, &cost, 7, 3, count_pieces, &count);
    }
    cr_expect_eq(shared, 0);
    tile_thread_pool_destroy(pool);
}

/* Sharing calls the body, which sleeps, once for each piece; alone there is one call. */
Test(share, what_is_slower_on_threads_goes_back) {
    int shared = 0;
    TileThreadPool *pool = make_pool(&shared);
    TilePhaseCost cost = {0};
    for (int i = 0; i < 64; i++) {
        Count count = {.ns = 30000};
        tile_share_run(pool, &cost, 9, 8, count_pieces, &count);
    }
    cr_expect(shared >= 2, "it was tried");
    cr_expect(shared < 32, "it was shared %d times", shared);
    tile_thread_pool_destroy(pool);
}
