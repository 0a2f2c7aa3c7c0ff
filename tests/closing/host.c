/* A host that knows nothing of Tile but a header: it opens the given shared kernel libraries, each with a function
 * `apply`, and closes them. usage: host WAY LIBRARY.. */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tile/launch.h"

enum { ROWS = 512, COLUMNS = 512, CYCLES = 200, THREADS = 4, MOST_LIBRARIES = 4 };
typedef tile_status (*Apply)(const TileLaunchOptions *options, const DLTensor *x, const DLTensor *y, float by);

static char **libraries;
static int library_count;

static void fail(const char *what) {
    const char *why = dlerror();
    printf("%s: %s\n", what, why ? why : "");
    fflush(stdout);
    _exit(1);
}

static void *open_library(int number, Apply *apply) {
    void *library = dlopen(libraries[number % library_count], RTLD_NOW | RTLD_LOCAL);
    if (!library) fail("dlopen");
    *(void **)apply = dlsym(library, "apply");
    if (!*apply) fail("dlsym");
    return library;
}

/* Enough work for all threads of the pool. */
static void launch(Apply apply) {
    float *x = calloc(ROWS * COLUMNS, sizeof *x), *y = calloc(ROWS * COLUMNS, sizeof *y);
    int64_t shape[] = {ROWS, COLUMNS};
    DLTensor tx = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0}, ty = tx;
    ty.data = y;
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i % 3);
    for (int i = 0; i < 3; i++)
        if (apply(NULL, &tx, &ty, 2) != TILE_OK || y[COLUMNS - 1] <= 0) fail("launch");
    free(x);
    free(y);
}

static void use(int number) {
    Apply apply;
    void *library = open_library(number, &apply);
    launch(apply);
    if (dlclose(library)) fail("dlclose");
}

/* A number in /proc/self/status. */
static long status_of(const char *name) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long number = -1;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0) number = strtol(line + strlen(name), NULL, 10);
    if (file) fclose(file);
    return number;
}

static long mappings(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    long count = 0;
    for (int c; file && (c = getc(file)) != EOF;) count += c == '\n';
    if (file) fclose(file);
    return count;
}

/* After the first iterations nothing may grow: threads, mappings, malloc's memory and resident memory. Except: a thread
 * of the pool that had no work before may allocate its scratch memory, one page, only now. */
static void cycles(void) {
    enum { SETTLED = 20 };
    long threads = 0, resident = 0, mapped = 0;
    size_t allocated = 0;
    for (int i = 0; i < SETTLED + CYCLES; i++) {
        use(i);
        if (i + 1 != SETTLED) continue;
        threads = status_of("Threads:");
        resident = status_of("VmRSS:");
        mapped = mappings();
        allocated = mallinfo2().uordblks;
    }
    long more_threads = status_of("Threads:") - threads, more_kb = status_of("VmRSS:") - resident;
    long more_mapped = mappings() - mapped, more_bytes = (long)(mallinfo2().uordblks - allocated);
    printf("%d cycles: %ld threads, %+ld threads, %+ld bytes allocated, %+ld kB resident, %+ld mappings\n", CYCLES,
           threads, more_threads, more_bytes, more_kb, more_mapped);
    if (more_threads || more_bytes > THREADS * 4500 || more_kb > 2048 || more_mapped > 4) fail("something leaks");
}

/* ---- threads ---- */

static void *use_often(void *state) {
    for (int i = 0; i < CYCLES / 4; i++) use((int)(intptr_t)state + i);
    return NULL;
}

static void threads(void) {
    pthread_t made[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&made[i], NULL, use_often, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++) pthread_join(made[i], NULL);
}

/* One thread launches, another one closes the library, and then the first one exits, with a thread-local destructor. */
static pthread_barrier_t barrier;
static pthread_key_t key;
static Apply shared_apply;

static void destroy(void *value) { free(value); }

static void *launch_and_stay(void *state) {
    pthread_setspecific(key, malloc(1));
    launch(shared_apply);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); /* the library has been closed */
    return state;
}

static void thread_ends_later(void) {
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_key_create(&key, destroy);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *library = open_library(i, &shared_apply);
        pthread_create(&thread, NULL, launch_and_stay, NULL);
        pthread_barrier_wait(&barrier);
        if (dlclose(library)) fail("dlclose");
        pthread_barrier_wait(&barrier);
        pthread_join(thread, NULL);
        usleep(1000); /* so that the pool's threads go to sleep */
    }
}

/* ---- processes ---- */

static void wait_for(pid_t child) {
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status)) fail("a child");
}

/* The child process has the library, but not its threads. */
static void fork_often(void) {
    for (int i = 0; i < 20; i++) {
        Apply apply;
        void *library = open_library(i, &apply);
        launch(apply);
        pid_t child = fork();
        if (child == 0) {
            if (i & 1) launch(apply);
            dlclose(library);
            use(i);
            use(i + 1);
            exit(0);
        }
        launch(apply);
        if (dlclose(library)) fail("dlclose");
        wait_for(child);
    }
}

static void *use_for_ever(void *state) {
    for (;;) use((int)(intptr_t)state);
    return state;
}

static void *launch_for_ever(void *state) {
    for (;;) launch(shared_apply);
    return state;
}

/* The process exits while its other threads are running. */
static void exit_during(void *(*body)(void *)) {
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t thread;
            open_library(i, &shared_apply);
            for (int k = 0; k < 3; k++) pthread_create(&thread, NULL, body, (void *)(intptr_t)k);
            usleep((useconds_t)(1000 + 700 * i));
            exit(0);
        }
        wait_for(child);
    }
}

int main(int count, char **words) {
    if (count < 3) return 2;
    libraries = words + 2;
    library_count = count - 2;
    if (strcmp(words[1], "cycles") == 0) cycles();
    if (strcmp(words[1], "threads") == 0) threads();
    if (strcmp(words[1], "thread_ends_later") == 0) thread_ends_later();
    if (strcmp(words[1], "fork") == 0) fork_often();
    if (strcmp(words[1], "exit_while_closing") == 0) exit_during(use_for_ever);
    if (strcmp(words[1], "exit_while_launching") == 0) exit_during(launch_for_ever);
    puts("all is well");
    return 0;
}
