/* Stacks that are large enough. Programs limit the stacks of their threads (`ulimit -s`, threads of other languages),
 * while parsing, checking and code generation recurse as deeply as the text is nested. */
#ifndef TILE_BASE_STACK_H
#define TILE_BASE_STACK_H

#include <pthread.h>
#include <stdbool.h>

enum {
    TILE_STACK_ENOUGH = 4 << 20, /* bytes */
    TILE_STACK_OWN = 16 << 20
};

/* Runs the body here if enough stack is left, else on a thread with a stack of its own, while this one waits. False if
 * there is no memory for that: the body has not run. */
bool tile_stack_run(void (*body)(void *state), void *state);

/* pthread_create with all signals blocked, and a stack that is large enough. */
int tile_thread_create(pthread_t *thread, void *(*body)(void *state), void *state);

#endif
