/* Threads of the OpenMP runtime that the process has loaded, such as PyTorch's.
 *
 * Threads of OpenMP keep spinning for milliseconds behind a parallel region. A second pool on the same cores would wait
 * for the scheduler's time slices, so the process's pool lends their threads where there are any. */
#ifndef TILE_LAUNCH_OPENMP_H
#define TILE_LAUNCH_OPENMP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Functions of the runtime, by GCC's names, which Intel's and LLVM's have as well. */
typedef struct TileOpenmpRuntime {
    void (*parallel)(void (*body)(void *state), void *state, unsigned threads, unsigned flags);
    int (*max_threads)(void);
    int (*thread_number)(void);
    int (*in_parallel)(void);
} TileOpenmpRuntime;

typedef struct TileOpenmp {
    bool refused;                               /* TILE_OWN_THREADS=1 */
    _Atomic uint64_t objects;                   /* that the loader had loaded at the last search */
    _Atomic(const TileOpenmpRuntime *) runtime; /* NULL: none was found yet; kept until the process ends */
    _Atomic int owner;        /* the thread whose parallel regions these are, as gettid() says; 0: none yet */
    _Atomic bool has_threads; /* the runtime was seen with threads */
} TileOpenmp;

/* The number of threads, the caller's included, that a parallel region of this thread would have; 0 where the
 * launcher's own threads are the better ones: no runtime is loaded or it has no threads yet, the regions belong to
 * another thread that lives, this process was forked, or it would be one thread. `own` is the number of the launcher's
 * own threads. Thread safe. */
int tile_openmp_threads(TileOpenmp *openmp, int own);

/* Does the calling thread execute a parallel region? */
bool tile_openmp_is_inside(const TileOpenmp *openmp);

#endif
