#define _GNU_SOURCE
#include "launch/stay.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static _Atomic bool stays, noted, ending;
static _Atomic pid_t process; /* whose threads these are: a child that was forked has none of them */
static _Atomic int working;

/* atexit handlers run before the destructors of shared objects. */
static void note_end(void) {
    const struct timespec while_it_works = {.tv_nsec = 1000000};
    atomic_store(&ending, true);
    while (atomic_load(&process) == getpid() && atomic_load(&working)) nanosleep(&while_it_works, NULL);
}

/* Threads that come here at the same time all do it, and none waits for another: one may hold the loader's lock, in a
 * constructor that launches. A program itself, whose name is empty, is never unloaded. */
void tile_stay_loaded(void) {
    Dl_info info;
    struct link_map *object = NULL;
    if (atomic_load(&stays)) return;
    if (dladdr1((void *)&stays, &info, (void **)&object, RTLD_DL_LINKMAP) && object && *object->l_name)
        dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    atomic_store(&stays, true);
    if (!atomic_exchange(&noted, true)) atexit(note_end);
}

void tile_stay_work(void) {
    pid_t own = getpid();
    tile_stay_loaded();
    if (atomic_exchange(&process, own) != own) atomic_store(&working, 0);
    atomic_fetch_add(&working, 1);
}

void tile_stay_worked(void) { atomic_fetch_sub(&working, 1); }

bool tile_process_ends(void) { return atomic_load(&ending); }
