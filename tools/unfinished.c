#include "tools/unfinished.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { SIGNALS = sizeof signals / sizeof *signals };

/* The list only grows, at its head, so that a signal handler may walk it at any time. */
typedef struct Unfinished {
    struct Unfinished *next;
    _Atomic bool there;
    char path[];
} Unfinished;

static _Atomic(Unfinished *) all;
static _Atomic bool dying;
static _Atomic int held; /* threads in which signals are blocked */
static _Atomic pid_t child;
static _Thread_local int depth;
static _Thread_local sigset_t before;

/* ---- the end ---- */

void tile_unfinished_remove(void) {
    pid_t writer = atomic_load(&child);
    if (writer > 0 && kill(writer, SIGKILL) == 0) waitpid(writer, NULL, 0);
    for (Unfinished *file = atomic_load(&all); file; file = file->next)
        if (atomic_load(&file->there) && unlink(file->path) != 0) rmdir(file->path);
}

/* Waits for the threads that block signals, which are running and soon done; no other one begins. */
void tile_unfinished_die(int number) {
    sigset_t one;
    atomic_store(&dying, true);
    while (atomic_load(&held)) sched_yield();
    tile_unfinished_remove();
    signal(number, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    raise(number);
}

void tile_unfinished_watch(void) {
    struct sigaction action = {.sa_handler = tile_unfinished_die}, old;
    sigfillset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++) {
        sigaction(signals[i], NULL, &old);
        if (old.sa_handler != SIG_IGN) sigaction(signals[i], &action, NULL);
    }
}

/* ---- meanwhile ---- */

static void begin(void) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < SIGNALS; i++) sigaddset(&set, signals[i]);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    atomic_fetch_add(&held, 1);
    if (!atomic_load(&dying)) return;
    atomic_fetch_sub(&held, 1);
    for (;;) pause(); /* another thread ends the process */
}

void tile_unfinished_hold(bool hold) {
    int error = errno;
    if (hold && depth++ == 0) begin();
    if (!hold && --depth == 0) {
        atomic_fetch_sub(&held, 1);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    errno = error;
}

bool tile_unfinished_add(const char *path) {
    size_t length = strlen(path) + 1;
    Unfinished *file = malloc(sizeof *file + length);
    if (!file) return false;
    memcpy(file->path, path, length);
    atomic_init(&file->there, true);
    file->next = atomic_load(&all);
    while (!atomic_compare_exchange_weak(&all, &file->next, file)) continue;
    return true;
}

void tile_unfinished_forget(const char *path) {
    for (Unfinished *file = atomic_load(&all); file; file = file->next)
        if (strcmp(file->path, path) == 0) atomic_store(&file->there, false);
}

void tile_unfinished_child(pid_t process) { atomic_store(&child, process); }
