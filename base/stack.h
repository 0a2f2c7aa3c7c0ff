/* Stacks that are deep enough. Programs limit those of their threads as they like (`ulimit -s`, threads of other
 * languages), and parsing, checking and code generation go as deep as the text does. */
#ifndef TILE_BASE_STACK_H
#define TILE_BASE_STACK_H

#include <pthread.h>
#include <stdbool.h>

enum {
    TILE_STACK_ENOUGH = 4 << 20, /* bytes */
    TILE_STACK_OWN = 16 << 20
};

/* Runs the body here where enough of the stack is left, else on a thread with a stack of its own, while this one waits.
 * False where there is no memory for that: nothing has run. */
bool tile_stack_run(void (*body)(void *state), void *state);

/* pthread_create of a thread that takes no signals of the process, with a stack that is enough. */
int tile_thread_create(pthread_t *thread, void *(*body)(void *state), void *state);

#endif
