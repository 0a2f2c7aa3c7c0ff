/* What threads cost and bring: for pools of 1, 2, 4 .. threads the time to share work among them and to wait for all
 * ("fork and join"), how much faster a loop of multiply-adds in registers runs, and how fast memory is copied.
 *
 * usage: tile_bench_threads [MOST]
 * A table of medians by the clock on the wall. Fork and join is what a job takes beyond its parts, each of which waits for
 * 20 microseconds on the clock, as many as there are threads; jobs follow one another at once. */
#include <stdio.h>
#include <stdlib.h>

#include "launch/threads.h"
#include "tools/limits.h"
#include "tools/measure.h"

enum { ROUNDS = 15, COPY_BYTES = 1 << 29, COPY_PART = 1 << 20 };
static const double sample_seconds = 0.004;
static const double part_seconds = 20e-6;
static const long rounds_of_part = 250000;

typedef struct Job {
    TileThreadPool *pool; /* NULL: this thread alone, without a pool */
    int64_t parts;
    long rounds; /* of multiply-adds in a part */
    TileCopyWork copied;
} Job;

static void multiply(void *state, int64_t begin, int64_t end) {
    const Job *job = state;
    for (int64_t i = begin; i < end; i++) tile_fma_flops(job->rounds);
}

static bool run_multiply(void *state) {
    Job *job = state;
    if (job->pool)
        tile_thread_pool_run(job->pool, job->parts, multiply, job);
    else
        multiply(job, 0, job->parts);
    return true;
}

static void wait_for_clock(void *state, int64_t begin, int64_t end) {
    double until = tile_clock_now(TILE_CLOCK_ON_WALL) + part_seconds * (double)(end - begin);
    while (tile_clock_now(TILE_CLOCK_ON_WALL) < until) {}
}

static bool run_wait(void *state) {
    Job *job = state;
    tile_thread_pool_run(job->pool, job->parts, wait_for_clock, job);
    return true;
}

static void copy(void *state, int64_t begin, int64_t end) {
    const TileCopyWork *work = &((Job *)state)->copied;
    size_t first = (size_t)begin * COPY_PART, last = (size_t)end * COPY_PART;
    __builtin_memcpy(work->to + first, work->from + first, last - first);
}

static bool run_copy(void *state) {
    Job *job = state;
    tile_thread_pool_run(job->pool, (int64_t)(job->copied.bytes / COPY_PART), copy, job);
    return true;
}

static bool measure(int threads, TileCopyWork copied) {
    TileThreadPoolOptions options = {.struct_size = sizeof options, .threads = threads};
    TileThreadPool *pool;
    if (tile_thread_pool_create(&options, &pool) != TILE_OK) return false;
    Job alone = {NULL, 1, rounds_of_part, copied}, shared = {pool, threads, rounds_of_part, copied};
    TileCandidate forks[] = {{run_wait, &shared, 0, 0}};
    TileCandidate gains[] = {{run_multiply, &alone, 0, 0}, {run_multiply, &shared, 0, 0}};
    TileCandidate copies[] = {{run_copy, &shared, 0, 0}};
    bool good = tile_measure(forks, 1, TILE_CLOCK_ON_WALL, ROUNDS, sample_seconds) &&
                tile_measure(gains, 2, TILE_CLOCK_ON_WALL, ROUNDS, sample_seconds) &&
                tile_measure(copies, 1, TILE_CLOCK_ON_WALL, ROUNDS / 3, sample_seconds);
    if (good)
        printf("| %d | %.2f | %.2f | %.1f |\n", threads, 1e6 * (forks[0].seconds - part_seconds),
               threads / gains[1].ratio, 2e-9 * (double)copied.bytes / copies[0].seconds);
    fflush(stdout);
    tile_thread_pool_destroy(pool);
    return good;
}

int main(int count, char **arguments) {
    int most = count > 1 ? atoi(arguments[1]) : tile_default_threads(NULL);
    TileCopyWork copied;
    if (!tile_copy_create(&copied, COPY_BYTES)) return 1;
    printf("| threads | fork and join µs | gain of multiply-adds | copy GB/s |\n|---|---|---|---|\n");
    bool good = true;
    for (int threads = 1; threads < 2 * most && good; threads *= 2)
        good = measure(threads < most ? threads : most, copied);
    tile_copy_destroy(&copied);
    return good ? 0 : 1;
}
