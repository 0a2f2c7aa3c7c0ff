#define _GNU_SOURCE
#include "launch/stay.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>

static _Atomic bool stays, noted, ending;

/* atexit handlers run before the destructors of shared objects. */
static void note_end(void) { atomic_store(&ending, true); }

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

bool tile_process_ends(void) { return atomic_load(&ending); }
