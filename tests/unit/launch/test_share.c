/* Which pieces a phase's programs are shared in; that all are run once, whatever was measured before. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>

#include "launch/share.h"

enum { PIECES = 40 };

typedef struct Count {
    _Atomic int seen[PIECES], calls;
} Count;

static void count_pieces(void *state, int64_t begin, int64_t end) {
    Count *count = state;
    atomic_fetch_add(&count->calls, 1);
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&count->seen[i], 1);
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
            Count count = {0};
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

static TilePhaseCost noted(double alone, int alone_tries, double shared, int shared_tries) {
    TilePhaseCost cost = {0};
    for (int i = 0; i < alone_tries; i++) tile_share_note(&cost.alone, 9, alone);
    for (int i = 0; i < shared_tries; i++) tile_share_note(&cost.shared, 9, shared);
    return cost;
}

/* In how many of 64 launches the pieces run on the calling thread. */
static int alone_of_64(TilePhaseCost cost, int64_t count) {
    int alone = 0;
    for (uint64_t i = 0; i < 64; i++) alone += tile_share_is_alone(&cost, 9, count, i);
    return alone;
}

Test(share, the_shorter_way_is_taken_and_the_other_tried) {
    cr_expect_eq(alone_of_64(noted(100, 3, 0, 0), 1000), 0, "threads were not tried");
    cr_expect_eq(alone_of_64(noted(100, 3, 900, 2), 1000), 0, "threads are tried three times");
    cr_expect_eq(alone_of_64(noted(100, 3, 900, 3), 1000), 63, "threads are much slower");
    cr_expect_eq(alone_of_64(noted(100, 3, 150, 3), 1000), 60, "threads are slower");
    cr_expect_eq(alone_of_64(noted(150, 3, 100, 3), 1000), 4, "threads are faster");
    cr_expect_eq(alone_of_64(noted(900, 3, 100, 3), 1000), 0, "threads are much faster");
    cr_expect_eq(alone_of_64(noted(150, 1, 100, 3), 1000), 64, "one thread was measured with cold caches only");
    cr_expect_eq(alone_of_64(noted(900, 1, 100, 3), 1000), 0, "that could not matter");
    cr_expect_eq(alone_of_64(noted(150, 1, 100, 3), 1000000), 4, "it would take long");
    cr_expect_eq(alone_of_64(noted(900, 1, 100, 3), 50), 64, "what seems slower was measured once, and takes no long time");
    cr_expect_eq(alone_of_64(noted(900, 3, 100, 3), 50), 1, "it is slower");
    TilePhaseCost other = noted(100, 3, 900, 3);
    cr_expect(!tile_share_is_alone(&other, 8, 1000, 1), "other extents");
}

Test(share, a_shorter_time_is_believed) {
    TilePhaseCost cost = noted(100, 3, 1000, 3);
    tile_share_note(&cost.shared, 9, 20);
    cr_expect(!tile_share_is_alone(&cost, 9, 1000, 1));
    tile_share_note(&cost.shared, 9, 1e9);
    tile_share_note(&cost.shared, 9, 1e9);
    cr_expect(!tile_share_is_alone(&cost, 9, 1000, 1), "twice a delay: 45");
    tile_share_note(&cost.shared, 9, 1e9);
    tile_share_note(&cost.shared, 9, 1e9);
    cr_expect(tile_share_is_alone(&cost, 9, 1000, 1), "four times: 101");
}
