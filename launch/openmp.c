#define _GNU_SOURCE
#include "launch/openmp.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_RUNTIMES = 4 };

/* The process that this code was loaded in, written once. In a child that it forked, the runtime's threads do not
 * exist, and a parallel region would wait for them forever. */
static pid_t loaded_in;

__attribute__((constructor)) static void note_process(void) { loaded_in = getpid(); }

typedef struct Search {
    uint64_t objects;
    int count;
    char paths[MOST_RUNTIMES][PATH_MAX];
} Search;

/* ---- which runtime ---- */

/* By the names that the runtimes' shared objects have; whether one is a runtime, its functions decide (open_runtime). */
static bool is_runtime(const char *path) {
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    return !strncmp(name, "libgomp", 7) || !strncmp(name, "libiomp5", 8) || !strncmp(name, "libomp.", 7) ||
           !strncmp(name, "libomp-", 7) || !strncmp(name, "libomp5", 7);
}

static int count_objects(struct dl_phdr_info *info, size_t size, void *objects) {
    (void)size;
    *(uint64_t *)objects = info->dlpi_adds;
    return 1;
}

static int note_runtime(struct dl_phdr_info *info, size_t size, void *state) {
    (void)size;
    Search *search = state;
    if (!is_runtime(info->dlpi_name) || strlen(info->dlpi_name) >= PATH_MAX) return 0;
    strcpy(search->paths[search->count++], info->dlpi_name);
    return search->count == MOST_RUNTIMES;
}

/* The runtime stays loaded from then on. */
static TileOpenmpRuntime *open_runtime(const char *path) {
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    if (!library) return NULL;
    void *functions[] = {dlsym(library, "GOMP_parallel"), dlsym(library, "omp_get_max_threads"),
                         dlsym(library, "omp_get_thread_num"), dlsym(library, "omp_in_parallel")};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!functions[i]) return NULL;
    TileOpenmpRuntime *runtime = malloc(sizeof *runtime);
    if (!runtime) return NULL;
    memcpy(&runtime->parallel, &functions[0], sizeof functions[0]);
    memcpy(&runtime->max_threads, &functions[1], sizeof functions[1]);
    memcpy(&runtime->thread_number, &functions[2], sizeof functions[2]);
    memcpy(&runtime->in_parallel, &functions[3], sizeof functions[3]);
    return runtime;
}

/* Looks only where objects were loaded since the last time. Of several runtimes the first that was loaded is taken. */
static const TileOpenmpRuntime *find_runtime(TileOpenmp *openmp) {
    const TileOpenmpRuntime *found = atomic_load(&openmp->runtime);
    uint64_t objects = 0;
    if (found) return found;
    dl_iterate_phdr(count_objects, &objects);
    if (objects == atomic_load(&openmp->objects)) return NULL;
    Search search = {.count = 0};
    TileOpenmpRuntime *opened = NULL;
    dl_iterate_phdr(note_runtime, &search);
    for (int i = 0; i < search.count && !opened; i++) opened = open_runtime(search.paths[i]);
    atomic_store(&openmp->objects, objects);
    if (!opened || atomic_compare_exchange_strong(&openmp->runtime, &found, opened)) return opened;
    free(opened); /* another thread was faster */
    return found;
}

/* ---- whose ---- */

/* The kernel counts a process's threads as folders of /proc/self/task. A runtime that nothing used so far has none, and
 * own threads sleep sooner behind their work than its would. */
static bool has_threads(TileOpenmp *openmp, int most, int own) {
    struct stat tasks;
    if (atomic_load(&openmp->has_threads)) return true;
    if (stat("/proc/self/task", &tasks) || (int64_t)tasks.st_nlink - 2 - own < most) return false;
    atomic_store(&openmp->has_threads, true);
    return true;
}

/* A runtime starts threads for each thread that has parallel regions. So that N threads which launch do not start N
 * pools, one has them until it ends: the first, or the main thread as soon as it comes. */
static bool is_owner(TileOpenmp *openmp) {
    int self = (int)syscall(SYS_gettid), process = (int)getpid(), owner = atomic_load(&openmp->owner);
    if (owner == self) return true;
    if (owner && self != process && (syscall(SYS_tgkill, process, owner, 0) == 0 || errno != ESRCH)) return false;
    return atomic_compare_exchange_strong(&openmp->owner, &owner, self);
}

int tile_openmp_threads(TileOpenmp *openmp, int own) {
    if (openmp->refused || getpid() != loaded_in) return 0;
    const TileOpenmpRuntime *runtime = find_runtime(openmp);
    int most = runtime ? runtime->max_threads() : 0;
    return most > 1 && has_threads(openmp, most, own) && is_owner(openmp) ? most : 0;
}

bool tile_openmp_is_inside(const TileOpenmp *openmp) {
    const TileOpenmpRuntime *runtime = atomic_load(&openmp->runtime);
    return runtime && runtime->in_parallel();
}
