/* A host that uses OpenMP, as programs with PyTorch do: which threads run the items of the process's pool?
 * usage: sharing [own]     own: TILE_OWN_THREADS=1 and TILE_NUM_THREADS were set by the caller */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch/threads.h"

enum { TEAM = 4, ITEMS = 4000, MOST = 64, LONGEST = 60 /* seconds */ };

typedef struct Threads {
    _Atomic int count;
    _Atomic int ids[MOST];
} Threads;

typedef struct Work {
    Threads threads;
    _Atomic uint8_t seen[ITEMS];
} Work;

static void (*parallel)(void (*body)(void *), void *state, unsigned threads, unsigned flags);
static void (*set_threads)(int);

static void fail(const char *what) {
    printf("failed: %s\n", what);
    fflush(stdout);
    _exit(1);
}

static void expect(bool good, const char *what) {
    if (!good) fail(what);
}

static bool has(const Threads *threads, int id) {
    for (int i = 0; i < threads->count; i++)
        if (threads->ids[i] == id) return true;
    return false;
}

static void note_thread(Threads *threads) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int id = (int)syscall(SYS_gettid);
    pthread_mutex_lock(&lock);
    if (!has(threads, id) && threads->count < MOST) threads->ids[threads->count++] = id;
    pthread_mutex_unlock(&lock);
}

/* Each item takes long enough that every thread comes to some. */
static void run_items(void *state, int64_t begin, int64_t end) {
    Work *work = state;
    note_thread(&work->threads);
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&work->seen[i], 1);
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static Work *share(void) {
    Work *work = calloc(1, sizeof *work);
    if (!work) fail("memory");
    tile_thread_pool_run(tile_thread_pool_default(), ITEMS, run_items, work);
    for (int i = 0; i < ITEMS; i++) expect(work->seen[i] == 1, "every item is run once");
    return work;
}

static void region(void *state) { note_thread(state); }

/* The threads of a parallel region of the calling thread. */
static Threads team(void) {
    Threads threads = {.count = 0};
    parallel(region, &threads, TEAM, 0);
    return threads;
}

static bool is_part(const Threads *some, const Threads *all) {
    for (int i = 0; i < some->count; i++)
        if (!has(all, some->ids[i])) return false;
    return true;
}

/* Are they the caller and the pool's own threads, which have a name? */
static bool are_own(const Threads *threads) {
    for (int i = 0; i < threads->count; i++) {
        char path[64], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%d/comm", threads->ids[i]);
        FILE *file = fopen(path, "r");
        if (file && !fgets(name, sizeof name, file)) *name = 0;
        if (file) fclose(file);
        if (threads->ids[i] != (int)syscall(SYS_gettid) && strcmp(name, "tile\n")) return false;
    }
    return true;
}

/* How many threads came to work at most, in a few rounds: a machine may be too busy for more than one in one of them.
 */
static int share_repeatedly(const Threads *team) {
    int most = 0;
    for (int i = 0; i < 5; i++) {
        Work *work = share();
        expect(team ? is_part(&work->threads, team) : are_own(&work->threads),
               team ? "threads of the team" : "own threads");
        if (work->threads.count > most) most = work->threads.count;
        free(work);
    }
    return most;
}

static void *share_elsewhere(void *result) {
    Work *work = share();
    *(bool *)result = are_own(&work->threads);
    free(work);
    return NULL;
}

static void share_inside(void *state) {
    Work *work = calloc(1, sizeof *work);
    if (!work) fail("memory");
    tile_thread_pool_run(tile_thread_pool_default(), ITEMS, run_items, work);
    if (work->threads.count != 1 || work->threads.ids[0] != (int)syscall(SYS_gettid))
        atomic_store((_Atomic int *)state, 1);
    free(work);
}

static void check_fork(void) {
    pid_t child = fork();
    if (child == 0) {
        alarm(LONGEST); /* waiting for threads that are not there would take forever */
        Work *work = share();
        _exit(are_own(&work->threads) ? 0 : 1);
    }
    int status = 0;
    expect(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status),
           "a forked child has own threads");
}

static void open_runtime(void) {
    void *runtime = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!runtime) {
        printf("skipped: no OpenMP runtime: %s\n", dlerror());
        exit(77);
    }
    *(void **)&parallel = dlsym(runtime, "GOMP_parallel");
    *(void **)&set_threads = dlsym(runtime, "omp_set_num_threads");
    expect(parallel && set_threads, "functions of the runtime");
    set_threads(TEAM);
}

static void check_other_thread(void) {
    pthread_t other;
    bool good = false;
    pthread_create(&other, NULL, share_elsewhere, &good);
    pthread_join(other, NULL);
    expect(good, "another thread's items stay off the team of the main thread");
}

static void check_inside(void) {
    _Atomic int elsewhere = 0;
    parallel(share_inside, (void *)&elsewhere, TEAM, 0);
    expect(!elsewhere, "inside of a parallel region its thread does everything");
}

int main(int count, char **words) {
    bool own = count > 1 && !strcmp(words[1], "own"), single = tile_thread_pool_size(NULL) == 1;
    share_repeatedly(NULL);
    open_runtime();
    share_repeatedly(NULL); /* a runtime without threads is not used */
    Threads threads = team();
    expect(threads.count == TEAM, "a team");
    int most = share_repeatedly(own ? NULL : &threads);
    expect(most > 1 || single, "several threads work");
    check_other_thread();
    if (!own) check_inside();
    check_fork();
    set_threads(2);
    if (!own) share_repeatedly(&threads);
    printf("threads of OpenMP are %s\n", own ? "left alone" : "shared");
    return 0;
}
