/* What race.c and clocks.c share: accesses, and the times that order them. */
#ifndef TILE_LANG_EXECUTE_RACES_H
#define TILE_LANG_EXECUTE_RACES_H

#include "lang/execute/state.h"

/* A thread's own time in an era, from 1; 0 if no function of the kernel has clocks. */
enum {
    TIME_BITS = 19,
    TIME_COPY = (1 << TIME_BITS) - 1,
    TIME_UNDER_WAY = TIME_COPY - 1,
    MOST_TIME = TIME_UNDER_WAY - 1
};

enum { MOST_WARPGROUPS = EXEC_MOST_THREADS / TILE_WARPGROUP_THREADS };

/* Times of asynchronous accesses, until a thread has waited for them: TIME_UNDER_WAY, of bulk copies and products, is
 * unordered with all accesses of the block, TIME_COPY with those of other threads in the era. Clocks have entries for
 * threads, then for mbarriers, whose times are their phases, then for warpgroups, whose times are numbers of waits for
 * their products: after a wait, those are the times of the copies and products. */
typedef struct Access {
    const TileOp *op;                                        /* NULL: none */
    uint32_t era, thread : 32 - TIME_BITS, time : TIME_BITS; /* the thread's number, or that of the entry */
} Access;

_Static_assert(EXEC_MOST_THREADS + EXEC_MOST_MBARRIERS + MOST_WARPGROUPS <= 1 << (32 - TIME_BITS),
               "all entries of a clock have a number");

typedef struct BlockBegin {
    uint32_t era;
    int64_t number;
} BlockBegin;

/* Accesses of a thread up to its last fence. */
typedef struct Fence {
    uint32_t era, time;
} Fence;

struct ExecRaces {
    uint32_t era, block_era; /* the current one; that in which this block began */
    BlockBegin *blocks;
    size_t block_count, block_capacity;
    ExecShadow *shadows;
    size_t shadow_count;
    ExecClock *clocks;              /* of the threads; NULL: only barriers order them */
    ExecClock common;               /* what all threads of a warpgroup know */
    Fence *fences, *earlier_fences; /* of each thread: the last one, and the last one of an earlier era than that */
    uint32_t thread_count, clock_size;
};

/* Who looks at an access: a thread, or all of a warpgroup (the common clock). */
enum { EXEC_COMMON = UINT32_MAX };

/* ---- clocks.c ---- */

/* The thread's time; its accesses have it until something moves it on. */
uint32_t tile_exec_own_time(const ExecRaces *races, uint32_t thread);
/* Did an access of this era happen before what the observer does now? */
bool tile_exec_has_seen(const ExecRaces *races, uint32_t observer, const Access *access);
/* Does a fence stand behind an ordered access of this block, one that the observer knows of? */
bool tile_exec_is_fenced(const ExecRaces *races, uint32_t observer, const Access *access);
void tile_exec_free_clocks(ExecRaces *races);

#endif
