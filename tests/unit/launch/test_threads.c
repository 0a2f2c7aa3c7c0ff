/* The pool: every item is run once, whatever the number of callers and threads. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/threads.h"

enum { ITEMS = 100000 };

typedef struct Count {
    _Atomic uint8_t *seen;
    _Atomic int64_t items;
    _Atomic int ranges;
} Count;

static void count_items(void *state, int64_t begin, int64_t end) {
    Count *count = state;
    for (int64_t i = begin; i < end; i++) atomic_fetch_add_explicit(&count->seen[i], 1, memory_order_relaxed);
    atomic_fetch_add(&count->items, end - begin);
    atomic_fetch_add(&count->ranges, 1);
}

static bool covers(TileThreadPool *pool, int64_t items) {
    Count count = {.seen = calloc(ITEMS, 1)};
    tile_thread_pool_run(pool, items, count_items, &count);
    bool good = count.items == items;
    for (int64_t i = 0; i < items; i++) good &= count.seen[i] == 1;
    free((void *)count.seen);
    return good;
}

static TileThreadPool *make_pool(int threads) {
    TileThreadPool *pool = NULL;
    TileThreadPoolOptions options = {.struct_size = sizeof options, .threads = threads};
    cr_assert_eq(tile_thread_pool_create(&options, &pool), TILE_OK);
    return pool;
}

Test(threads, every_item_once) {
    static const int64_t items[] = {0, 1, 2, 3, 7, 64, 65, 1000, 1023, ITEMS};
    for (int threads = 1; threads <= 5; threads += 2) {
        TileThreadPool *pool = make_pool(threads);
        cr_assert_eq(tile_thread_pool_size(pool), threads);
        for (int round = 0; round < 20; round++)
            for (size_t i = 0; i < sizeof items / sizeof *items; i++)
                cr_assert(covers(pool, items[i]), "%d threads, %lld items", threads, (long long)items[i]);
        tile_thread_pool_destroy(pool);
    }
}

typedef struct Short {
    int64_t number;       /* of the job */
    int64_t done[8];      /* by which job each item was done last */
    _Atomic int failures; /* items that met another job's number */
} Short;

static void run_short(void *state, int64_t begin, int64_t end) {
    Short *job = state;
    for (int64_t i = begin; i < end; i++) {
        if (job->done[i] >= job->number) atomic_fetch_add(&job->failures, 1);
        job->done[i] = job->number;
    }
}

/* Workers that wake too late find a job that is over, or the next one. */
Test(threads, short_jobs_follow_one_another) {
    TileThreadPool *pool = make_pool(8);
    Short jobs[2] = {{.number = 0}, {.number = 0}};
    for (int64_t number = 1; number <= 20000; number++) {
        Short *job = &jobs[number % 2];
        job->number = number;
        tile_thread_pool_run(pool, 2 + number % 7, run_short, job);
        for (int64_t i = 0; i < 2 + number % 7; i++) cr_assert_eq(job->done[i], number, "item %lld of job %lld", (long long)i, (long long)number);
    }
    cr_assert_eq(jobs[0].failures + jobs[1].failures, 0);
    tile_thread_pool_destroy(pool);
}

static void *call_often(void *pool) {
    bool good = true;
    for (int i = 0; i < 200; i++) good &= covers(pool, 500 + i);
    return good ? pool : NULL;
}

Test(threads, many_callers) {
    TileThreadPool *pool = make_pool(4);
    pthread_t callers[16];
    for (int i = 0; i < 16; i++) pthread_create(&callers[i], NULL, call_often, pool);
    for (int i = 0; i < 16; i++) {
        void *result = NULL;
        pthread_join(callers[i], &result);
        cr_assert_not_null(result);
    }
    tile_thread_pool_destroy(pool);
}

enum { CALLERS = 6, LAUNCHES = 1500 };

typedef struct Burst {
    _Atomic int64_t items;
    unsigned length; /* of each item */
} Burst;

static void burn(void *state, int64_t begin, int64_t end) {
    Burst *burst = state;
    atomic_fetch_add(&burst->items, end - begin);
    for (volatile unsigned i = 0; i < burst->length * (unsigned)(end - begin);) i = i + 1;
}

typedef struct Caller {
    TileThreadPool *pool;
    unsigned seed;
    bool good;
} Caller;

/* Some launches follow at once, others when all threads sleep; items are many or few, long or short. */
static void *call_at_random(void *state) {
    Caller *caller = state;
    unsigned number = caller->seed;
    caller->good = true;
    for (int i = 0; i < LAUNCHES; i++) {
        number = number * 1664525u + 1013904223u;
        int64_t count = 1 + (number >> 8) % (number & 64 ? 2000 : 20);
        Burst burst = {.length = (number >> 4) % (number & 128 ? 3 : 200)};
        tile_thread_pool_run(caller->pool, count, burn, &burst);
        caller->good &= burst.items == count;
        if ((number >> 12) % 50 == 0) usleep((number >> 16) % 2000);
    }
    return NULL;
}

/* A worker that goes to sleep while a job begins, or wakes when it has ended, and a caller that waits for one that the scheduler
 * does not let run: with more threads than cores, each is likely. A wake-up that is lost is a test that does not end. */
Test(threads, more_than_cores) {
    TileThreadPool *pool = make_pool(16);
    pthread_t threads[CALLERS];
    Caller callers[CALLERS];
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] = (Caller){pool, 12345 + 77 * i, false};
        pthread_create(&threads[i], NULL, call_at_random, &callers[i]);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert(callers[i].good);
    }
    tile_thread_pool_destroy(pool);
}

typedef struct Nested {
    TileThreadPool *pool;
    _Atomic int failures;
} Nested;

static void run_inside(void *state, int64_t begin, int64_t end) {
    Nested *nested = state;
    for (int64_t i = begin; i < end; i++)
        if (!covers(nested->pool, 100)) atomic_fetch_add(&nested->failures, 1);
}

Test(threads, a_job_may_call_the_pool) {
    Nested nested = {.pool = make_pool(3)};
    tile_thread_pool_run(nested.pool, 50, run_inside, &nested);
    cr_assert_eq(nested.failures, 0);
    tile_thread_pool_destroy(nested.pool);
}

enum { SHARED_ITEMS = 1000 };

/* The first items take until all others are done, which the other thread has to steal. */
static void first_is_slow(void *state, int64_t begin, int64_t end) {
    Count *count = state;
    while (begin == 0 && atomic_load(&count->items) < SHARED_ITEMS - end) usleep(1000);
    count_items(count, begin, end);
}

Test(threads, work_is_stolen) {
    TileThreadPool *pool = make_pool(2);
    Count count = {.seen = calloc(ITEMS, 1)};
    tile_thread_pool_run(pool, SHARED_ITEMS, first_is_slow, &count);
    cr_assert_eq(count.items, SHARED_ITEMS);
    cr_assert_gt(count.ranges, 4);
    free((void *)count.seen);
    tile_thread_pool_destroy(pool);
}

static void host_loop(void *host, int64_t count, int64_t pieces, TileParallelBody body, void *state) {
    *(int64_t *)host += pieces;
    for (int64_t i = count; i-- > 0;) body(state, i, i + 1);
}

Test(threads, the_host_may_bring_its_own) {
    int64_t pieces = 0;
    TileThreadPoolOptions options = {
        .struct_size = sizeof options, .threads = 3, .parallel_for = host_loop, .host = &pieces};
    TileThreadPool *pool;
    cr_assert_eq(tile_thread_pool_create(&options, &pool), TILE_OK);
    cr_assert(covers(pool, 1000));
    cr_assert_eq(pieces, 12);
    tile_thread_pool_destroy(pool);
}

#ifndef __SANITIZE_THREAD__ /* it does not support threads started by a forked child */
enum { FORKING_THREADS = 3 };

/* Each item waits for all others, so each needs its own thread. */
static void meet(void *state, int64_t begin, int64_t end) {
    _Atomic int64_t *come = state;
    atomic_fetch_add(come, end - begin);
    while (atomic_load(come) < FORKING_THREADS) usleep(1000);
}

/* A thread that is starting when its process forks may hold a lock of the sanitizer's, on which the child would block:
 * so all threads have run an item before. */
Test(threads, fork) {
    _Atomic int64_t come = 0;
    TileThreadPool *pool = make_pool(FORKING_THREADS);
    tile_thread_pool_run(pool, FORKING_THREADS, meet, (void *)&come);
    cr_assert(covers(pool, 1000));
    pid_t child = fork();
    if (child == 0) {
        alarm(100);
        bool good = covers(pool, 1000) && covers(pool, 3000);
        tile_thread_pool_destroy(pool);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert(covers(pool, 1000));
    tile_thread_pool_destroy(pool);
}
#endif

Test(threads, number_from_the_environment) {
    setenv("TILE_NUM_THREADS", "3", 1);
    TileThreadPool *pool;
    cr_assert_eq(tile_thread_pool_create(NULL, &pool), TILE_OK);
    cr_assert_eq(tile_thread_pool_size(pool), 3);
    tile_thread_pool_destroy(pool);
    setenv("TILE_NUM_THREADS", "none", 1);
    cr_assert_eq(tile_thread_pool_create(NULL, &pool), TILE_OK);
    cr_assert_geq(tile_thread_pool_size(pool), 1);
    tile_thread_pool_destroy(pool);
    TileThreadPoolOptions bad = {.struct_size = sizeof bad, .threads = -1};
    cr_assert_eq(tile_thread_pool_create(&bad, &pool), TILE_INVALID_ARGUMENT);
}

Test(threads, scratch_is_aligned_and_kept) {
    TileScratchCache cache = {0};
    static const size_t sizes[] = {1, 4096, 100000, (size_t)2 << 20, ((size_t)5 << 20) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        TileScratch *scratch = tile_scratch_take(&cache, sizes[i]);
        cr_assert_not_null(scratch);
        cr_assert_geq(scratch->bytes, sizes[i]);
        size_t align = sizes[i] >= (size_t)2 << 20 ? (size_t)2 << 20 : 64;
        cr_assert_eq((uintptr_t)scratch->memory % align, 0);
        memset(scratch->memory, 1, sizes[i]);
        void *memory = scratch->memory;
        tile_scratch_give(&cache, scratch);
        scratch = tile_scratch_take(&cache, sizes[i]);
        cr_assert_eq(scratch->memory, memory);
        tile_scratch_give(&cache, scratch);
    }
    cr_assert_null(tile_scratch_take(&cache, SIZE_MAX));
    tile_scratch_clear(&cache);
}
