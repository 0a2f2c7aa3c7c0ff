#define _GNU_SOURCE
#include "launch/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/stack.h"
#include "launch/cores.h"
#include "launch/environment.h"
#include "launch/openmp.h"
#include "launch/options.h"
#include "launch/stay.h"

enum {
    MAX_THREADS = 1024,
    PARTS_PER_THREAD = 64, /* number of parts for each thread */
    SPINS = 2000,          /* about 20 to 50 microseconds of spinning before a thread sleeps */
};

/* The parts begin .. end-1 that a thread has left, in one word: begin in the high half. And the number of the job that the
 * worker is inside of, 0: none, which no other thread writes. */
typedef struct Share {
    _Alignas(64) _Atomic uint64_t range;
    _Atomic uint64_t inside;
} Share;

/* What the threads share: `items` in parts of `items_per_part`, of which each thread has a share left. */
typedef struct Job {
    TileParallelBody body;
    void *state;
    int64_t items, items_per_part;
    int threads;   /* the caller included */
    Share *shares; /* one per thread, the caller's first */
} Job;

/* A worker first says which job it enters, then looks whether the gate is still open for that one, and leaves if not. The
 * caller first closes the gate, then waits for those that say so. In any order of these four, in which all threads agree,
 * either the worker sees that the job is over, or the caller sees the worker: one that wakes too late touches nothing. Nobody
 * but the caller writes the gate, and nobody but a worker what it says, so that threads begin and end without waiting for
 * one another's writes. */
enum { GATE_OPEN = 1, GATE_JOB_SHIFT = 1 };

typedef struct Workers {
    _Alignas(64) _Atomic uint64_t gate; /* job number, open flag; the cache line is read by all */
    _Atomic bool stop;
    Job job;
    _Alignas(64) pid_t process; /* the threads exist in this process only, not in children that it forked */
    int count; /* threads started, the caller not included */
    _Atomic bool busy;
    _Atomic bool caller_sleeps; /* until the last worker has left */
    _Atomic int sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t wake, left;
    pthread_t *threads;
} Workers;

/* The job of a parallel region of OpenMP, whose shares are made for the number of its threads. */
typedef struct Region {
    _Atomic bool busy;
    const TileOpenmpRuntime *runtime;
    Job job;
} Region;

struct TileThreadPool {
    int threads;
    TileParallelFor parallel_for;
    void *host;
    _Atomic(Workers *) workers;
    TileOpenmp openmp; /* of the process's pool; pools of one's own have own threads */
    Region region;
    bool asked; /* for this number of threads, by the options or the environment */
    TileScratchCache scratch;
};

typedef struct WorkerStart {
    Workers *workers;
    int index;
} WorkerStart;

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    sched_yield();
#endif
}

/* ---- a job ---- */

static uint64_t pack_range(uint64_t begin, uint64_t end) { return begin << 32 | end; }

/* Takes half of the share, rounded up: its front for the owner, its back for a thief. */
static bool take(Share *share, bool front, uint64_t *begin, uint64_t *end) {
    uint64_t range = atomic_load(&share->range);
    for (;;) {
        uint64_t first = range >> 32, past = range & UINT32_MAX;
        if (first >= past) return false;
        uint64_t half = (past - first + 1) / 2;
        *begin = front ? first : past - half;
        *end = *begin + half;
        uint64_t rest = front ? pack_range(first + half, past) : pack_range(first, past - half);
        if (atomic_compare_exchange_weak(&share->range, &range, rest)) return true;
    }
}

static void run_parts(const Job *job, uint64_t begin, uint64_t end) {
    int64_t first = (int64_t)begin * job->items_per_part, past = (int64_t)end * job->items_per_part;
    job->body(job->state, first, past < job->items ? past : job->items);
}

static void work(const Job *job, int self) {
    uint64_t begin, end;
    while (take(&job->shares[self], true, &begin, &end)) run_parts(job, begin, end);
    for (int i = 1; i < job->threads; i++) {
        Share *victim = &job->shares[(self + i) % job->threads];
        while (take(victim, false, &begin, &end)) run_parts(job, begin, end);
    }
}

static void share_out(Job *job, int64_t count, TileParallelBody body, void *state) {
    job->body = body;
    job->state = state;
    job->items = count;
    job->items_per_part = (count - 1) / ((int64_t)job->threads * PARTS_PER_THREAD) + 1;
    uint64_t parts = (uint64_t)((count - 1) / job->items_per_part + 1), total = (uint64_t)job->threads;
    for (uint64_t i = 0; i < total; i++)
        atomic_store_explicit(&job->shares[i].range, pack_range(parts * i / total, parts * (i + 1) / total), memory_order_relaxed);
}

static Share *allocate_shares(int threads) {
    Share *shares = aligned_alloc(64, sizeof(Share) * (size_t)threads);
    if (shares) memset(shares, 0, sizeof(Share) * (size_t)threads);
    return shares;
}

/* ---- the threads ---- */

static bool has_job(const Workers *workers, uint64_t last) {
    uint64_t gate = atomic_load(&workers->gate);
    return (gate & GATE_OPEN) && gate >> GATE_JOB_SHIFT != last;
}

static void wait_for_job(Workers *workers, uint64_t last) {
    for (int i = 0; i < SPINS; i++) {
        if (has_job(workers, last) || atomic_load(&workers->stop)) return;
        pause_briefly();
    }
    pthread_mutex_lock(&workers->mutex);
    atomic_fetch_add(&workers->sleepers, 1);
    while (!has_job(workers, last) && !atomic_load(&workers->stop)) pthread_cond_wait(&workers->wake, &workers->mutex);
    atomic_fetch_sub(&workers->sleepers, 1);
    pthread_mutex_unlock(&workers->mutex);
}

/* Works on the job, unless it is over. */
static void enter_job(Workers *workers, int self, uint64_t job) {
    Share *own = &workers->job.shares[self];
    atomic_store(&own->inside, job);
    if (atomic_load(&workers->gate) == (job << GATE_JOB_SHIFT | GATE_OPEN)) work(&workers->job, self);
    atomic_store(&own->inside, 0);
    if (!atomic_load(&workers->caller_sleeps)) return;
    pthread_mutex_lock(&workers->mutex);
    pthread_cond_signal(&workers->left);
    pthread_mutex_unlock(&workers->mutex);
}

static void *worker_main(void *start) {
    Workers *workers = ((WorkerStart *)start)->workers;
    int self = ((WorkerStart *)start)->index;
    free(start);
    uint64_t last = 0;
    while (!atomic_load(&workers->stop)) {
        wait_for_job(workers, last);
        uint64_t gate = atomic_load(&workers->gate);
        if (!(gate & GATE_OPEN) || gate >> GATE_JOB_SHIFT == last) continue;
        last = gate >> GATE_JOB_SHIFT;
        enter_job(workers, self, last);
    }
    return NULL;
}

static void destroy_workers(Workers *workers) {
    if (!workers) return;
    pthread_mutex_lock(&workers->mutex);
    atomic_store(&workers->stop, true);
    pthread_cond_broadcast(&workers->wake);
    pthread_mutex_unlock(&workers->mutex);
    for (int i = 0; i < workers->count; i++) pthread_join(workers->threads[i], NULL);
    pthread_cond_destroy(&workers->wake);
    pthread_cond_destroy(&workers->left);
    pthread_mutex_destroy(&workers->mutex);
    free(workers->job.shares);
    free(workers->threads);
    free(workers);
}

static Workers *allocate_workers(int threads) {
    Workers *workers = aligned_alloc(_Alignof(Workers), sizeof *workers);
    if (!workers) return NULL;
    memset(workers, 0, sizeof *workers);
    workers->process = getpid();
    workers->job.shares = allocate_shares(threads);
    workers->threads = calloc((size_t)threads, sizeof *workers->threads);
    if (!workers->job.shares || !workers->threads) {
        free(workers->job.shares);
        free(workers->threads);
        free(workers);
        return NULL;
    }
    pthread_mutex_init(&workers->mutex, NULL);
    pthread_cond_init(&workers->wake, NULL);
    pthread_cond_init(&workers->left, NULL);
    return workers;
}

/* Starts as many threads as the system allows; the caller works in any case. */
static Workers *create_workers(int threads) {
    Workers *workers = allocate_workers(threads);
    if (!workers) return NULL;
    /* A worker reads the number of threads only inside a job, which begins after all have been started. */
    for (int i = 1; i < threads; i++) {
        WorkerStart *start = malloc(sizeof *start);
        if (!start) break;
        *start = (WorkerStart){workers, i};
        if (tile_thread_create(&workers->threads[workers->count], worker_main, start)) {
            free(start);
            break;
        }
        pthread_setname_np(workers->threads[workers->count], "tile");
        workers->count++;
    }
    workers->job.threads = workers->count + 1;
    return workers;
}

/* The threads of this process. After fork() the parent's threads do not exist, and what they held is not touched. */
static Workers *get_workers(TileThreadPool *pool) {
    Workers *workers = atomic_load(&pool->workers);
    if (workers && workers->process == getpid()) return workers;
    Workers *created = create_workers(pool->threads);
    if (!created || atomic_compare_exchange_strong(&pool->workers, &workers, created)) return created;
    destroy_workers(created); /* another thread was faster */
    return workers;
}

static void open_job(Workers *workers, int64_t count, TileParallelBody body, void *state) {
    share_out(&workers->job, count, body, state);
    uint64_t job = (atomic_load(&workers->gate) >> GATE_JOB_SHIFT) + 1;
    atomic_store(&workers->gate, job << GATE_JOB_SHIFT | GATE_OPEN);
    if (atomic_load(&workers->sleepers) == 0) return;
    pthread_mutex_lock(&workers->mutex);
    pthread_cond_broadcast(&workers->wake);
    pthread_mutex_unlock(&workers->mutex);
}

static bool is_anyone_inside(const Workers *workers, uint64_t job) {
    for (int i = 1; i <= workers->count; i++)
        if (atomic_load(&workers->job.shares[i].inside) == job) return true;
    return false;
}

static void close_job(Workers *workers) {
    uint64_t job = atomic_load(&workers->gate) >> GATE_JOB_SHIFT;
    atomic_store(&workers->gate, job << GATE_JOB_SHIFT);
    for (int i = 0; i < SPINS; i++) {
        if (!is_anyone_inside(workers, job)) return;
        pause_briefly();
    }
    pthread_mutex_lock(&workers->mutex);
    atomic_store(&workers->caller_sleeps, true);
    while (is_anyone_inside(workers, job)) pthread_cond_wait(&workers->left, &workers->mutex);
    atomic_store(&workers->caller_sleeps, false);
    pthread_mutex_unlock(&workers->mutex);
}

/* ---- threads of OpenMP ---- */

static void region_main(void *state) {
    Region *region = state;
    int self = region->runtime->thread_number();
    if (self < region->job.threads) work(&region->job, self);
}

/* Shares the items with `most` threads of the runtime, whose team keeps its size: the runtime would end threads of a
 * larger one, and start them again. A region of fewer threads than were asked for leaves shares, which are taken as
 * others' are. */
static bool run_region(TileThreadPool *pool, int most, int64_t count, TileParallelBody body, void *state) {
    Region *region = &pool->region;
    if (atomic_exchange(&region->busy, true)) return false;
    int threads = most < pool->threads ? most : pool->threads;
    if (region->job.threads != threads) {
        free(region->job.shares);
        region->job.shares = allocate_shares(threads);
        region->job.threads = region->job.shares ? threads : 0;
    }
    bool runs = region->job.threads != 0;
    if (runs) {
        region->runtime = atomic_load(&pool->openmp.runtime);
        share_out(&region->job, count, body, state);
        region->runtime->parallel(region_main, region, (unsigned)most, 0);
    }
    atomic_store(&region->busy, false);
    return runs;
}

/* How many threads a region of OpenMP would have; 0 where own threads are to run. More threads than it has are own ones
 * where somebody asked for them. */
static int region_threads(TileThreadPool *pool) {
    Workers *workers = atomic_load(&pool->workers);
    int most = tile_openmp_threads(&pool->openmp, workers ? workers->count : 0);
    return most < pool->threads && pool->asked ? 0 : most;
}

static void run_workers(TileThreadPool *pool, int64_t count, TileParallelBody body, void *state) {
    Workers *workers = get_workers(pool);
    if (!workers || atomic_exchange(&workers->busy, true)) {
        body(state, 0, count);
        return;
    }
    open_job(workers, count, body, state);
    work(&workers->job, 0);
    close_job(workers);
    atomic_store(&workers->busy, false);
}

void tile_thread_pool_run(TileThreadPool *pool, int64_t count, TileParallelBody body, void *state) {
    if (count <= 0) return;
    if (pool->parallel_for) {
        int64_t pieces = (int64_t)pool->threads * 4;
        pool->parallel_for(pool->host, count, pieces < count ? pieces : count, body, state);
        return;
    }
    if (pool->threads == 1 || count == 1 || tile_openmp_is_inside(&pool->openmp)) {
        body(state, 0, count);
        return;
    }
    int most = region_threads(pool);
    if (most && run_region(pool, most, count, body, state)) return;
    run_workers(pool, count, body, state);
}

/* ---- the pool ---- */

static int count_cores(void) {
    int cores = tile_cores_count();
    return cores < MAX_THREADS ? cores : MAX_THREADS;
}

int tile_default_threads(const TileSettings *settings) {
    if (!tile_variable_text(TILE_VARIABLE_NUM_THREADS)) return count_cores();
    char words[64];
    int cores = count_cores();
    snprintf(words, sizeof words, "%d, the cores that this process may use", cores);
    return (int)tile_variable_number(TILE_VARIABLE_NUM_THREADS, settings, 1, MAX_THREADS, (uint64_t)cores, words);
}

tile_status tile_thread_pool_create(const TileThreadPoolOptions *given, TileThreadPool **pool) {
    TileThreadPoolOptions options;
    if (!pool || !tile_options_read(&options, sizeof options, given)) return TILE_INVALID_ARGUMENT;
    if (options.threads < 0 || options.threads > MAX_THREADS) return TILE_INVALID_ARGUMENT;
    TileThreadPool *created = calloc(1, sizeof *created);
    if (!created) return TILE_OUT_OF_MEMORY;
    created->threads = options.threads ? options.threads : tile_default_threads(NULL);
    created->openmp.refused = true;
    created->parallel_for = options.parallel_for;
    created->host = options.host;
    *pool = created;
    return TILE_OK;
}

void tile_thread_pool_destroy(TileThreadPool *pool) {
    if (!pool) return;
    Workers *workers = atomic_load(&pool->workers);
    if (workers && workers->process == getpid()) destroy_workers(workers);
    tile_scratch_clear(&pool->scratch);
    free(pool->region.job.shares);
    free(pool);
}

TileThreadPool *tile_thread_pool_default(void) {
    static _Atomic(TileThreadPool *) shared; /* published once, never changed again */
    TileThreadPool *pool = atomic_load_explicit(&shared, memory_order_acquire);
    if (pool) return pool;
    TileThreadPool *created;
    tile_stay_loaded(); /* nobody joins its threads */
    if (tile_thread_pool_create(NULL, &created) != TILE_OK) return NULL;
    created->openmp.refused = tile_variable_switch(TILE_VARIABLE_OWN_THREADS, NULL);
    created->asked = tile_variable_text(TILE_VARIABLE_NUM_THREADS) != NULL;
    if (atomic_compare_exchange_strong(&shared, &pool, created)) return created;
    tile_thread_pool_destroy(created);
    return pool;
}

int tile_thread_pool_size(TileThreadPool *pool) {
    if (!pool) pool = tile_thread_pool_default();
    return pool ? pool->threads : 1;
}

TileScratchCache *tile_thread_pool_scratch(TileThreadPool *pool) { return &pool->scratch; }
