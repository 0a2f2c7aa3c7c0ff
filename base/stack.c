#define _GNU_SOURCE
#include "base/stack.h"

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

static int create(pthread_t *thread, size_t least, void *(*body)(void *state), void *state) {
    pthread_attr_t attributes;
    size_t usual = 0;
    sigset_t all, old;
    if (pthread_attr_init(&attributes)) return -1;
    pthread_attr_getstacksize(&attributes, &usual);
    if (usual < least) pthread_attr_setstacksize(&attributes, least);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old); /* the new thread inherits it */
    int failed = pthread_create(thread, &attributes, body, state);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    return failed;
}

int tile_thread_create(pthread_t *thread, void *(*body)(void *state), void *state) {
    return create(thread, TILE_STACK_ENOUGH, body, state);
}

/* The first thread's stack grows up to the limit, and little of it is used so far. The stacks of fibres are unknown to
 * the system: they count as too small. */
static bool has_enough(void) {
    if (gettid() == getpid()) {
        struct rlimit limit;
        return getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur >= TILE_STACK_ENOUGH;
    }
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t size = 0;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (pthread_getattr_np(pthread_self(), &attributes)) return false;
    pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_destroy(&attributes);
    return here - (uintptr_t)lowest < size && here - (uintptr_t)lowest >= TILE_STACK_ENOUGH;
}

typedef struct Run {
    void (*body)(void *state);
    void *state;
} Run;

static void *run(void *state) {
    const Run *given = state;
    given->body(given->state);
    return NULL;
}

bool tile_stack_run(void (*body)(void *state), void *state) {
    Run given = {body, state};
    pthread_t thread;
    if (has_enough()) {
        body(state);
        return true;
    }
    if (create(&thread, TILE_STACK_OWN, run, &given)) return false;
    pthread_join(thread, NULL);
    return true;
}
