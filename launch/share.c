#include "launch/share.h"

#include <stdatomic.h>
#include <string.h>

#include "launch/clock.h"

enum {
    WORTH_NS = 20000,  /* less work than this is not worth sharing */
    SETTLED = 3,       /* launches in each way before one is chosen */
    SOON_NS = 1000000, /* less work than this is tried on the calling thread before long */
    SHORT_NS = 100000, /* less work than this even where it seems far slower: what is known of it may be a first launch's */
    PIECES = 4,        /* for each thread at least, where programs can be divided */
    CLOSE = 2,         /* a factor */
    TRY_CLOSE = 16,    /* one launch of so many tries what was slower before */
    TRY_FAR = 64
};

/* ---- what was measured ---- */

typedef struct Measured {
    bool known;
    uint32_t tries; /* how often, at most SETTLED */
    double ns;      /* of a piece */
} Measured;

/* The float's last bits count. */
static void keep(_Atomic uint64_t *cost, uint32_t key, double ns, uint32_t tries) {
    float single = (float)ns;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    bits = (bits & ~(uint32_t)SETTLED) | (tries < SETTLED ? tries : SETTLED);
    atomic_store_explicit(cost, (uint64_t)key << 32 | bits, memory_order_relaxed);
}

static Measured measured(_Atomic uint64_t *cost, uint32_t key) {
    uint64_t word = atomic_load_explicit(cost, memory_order_relaxed);
    uint32_t bits = (uint32_t)word;
    float single;
    memcpy(&single, &bits, sizeof single);
    return (Measured){.known = word >> 32 == key, .tries = bits & SETTLED, .ns = (double)single};
}

/* Threads that sleep, caches that are cold and interrupts only make launches longer: a shorter time is taken as it is,
 * a longer one not at all at first, and later by half of what was known. */
void tile_share_note(_Atomic uint64_t *cost, uint32_t key, double ns) {
    Measured before = measured(cost, key);
    double most = before.tries < SETTLED ? before.ns : 3 * before.ns / 2;
    keep(cost, key, before.known && ns > most ? most : ns, before.known ? before.tries + 1 : 1);
}

/* ---- the decision ---- */

/* What is slower by less than CLOSE is tried more often; the calling thread alone, which leaves the others idle, only
 * then, or where it takes no long time. */
bool tile_share_is_alone(TilePhaseCost *cost, uint32_t key, int64_t count, uint64_t number) {
    Measured alone = measured(&cost->alone, key), shared = measured(&cost->shared, key);
    if (!shared.known || shared.tries < SETTLED) return false;
    bool better = alone.ns <= shared.ns, close = better ? shared.ns < CLOSE * alone.ns : alone.ns < CLOSE * shared.ns;
    double work = alone.ns * (double)count;
    if (alone.tries < SETTLED && work < (close ? SOON_NS : SHORT_NS)) return true;
    if (number % (close ? TRY_CLOSE : TRY_FAR)) return better;
    return better ? false : close || work < SHORT_NS;
}

typedef struct Rest {
    TileParallelBody body;
    void *state;
    int64_t first;
} Rest;

static void run_rest(void *state, int64_t begin, int64_t end) {
    const Rest *rest = state;
    rest->body(rest->state, rest->first + begin, rest->first + end);
}

int64_t tile_share_grain(int64_t programs, uint32_t bands, int threads) {
    int64_t grain = bands ? bands : 1;
    while (grain > 1 && programs / grain < (int64_t)PIECES * threads) grain = grain % 2 ? 1 : grain / 2;
    return grain;
}

void tile_share_run(TileThreadPool *pool, TilePhaseCost *cost, uint32_t key, int64_t count, TileParallelBody body,
                    void *state) {
    int threads = tile_thread_pool_size(pool);
    Rest rest = {body, state, 0};
    if (count == 1 || threads == 1) {
        body(state, 0, count);
        return;
    }
    Measured alone = measured(&cost->alone, key);
    if (!alone.known) {
        uint64_t start = tile_clock_ns();
        rest.first = count / (8 * (int64_t)threads) + 1;
        body(state, 0, rest.first);
        alone = (Measured){true, 1, (double)(tile_clock_ns() - start) / (double)rest.first};
        tile_share_note(&cost->alone, key, alone.ns);
    }
    int64_t left = count - rest.first;
    if (alone.ns * (double)left < WORTH_NS) {
        if (left) run_rest(&rest, 0, left);
        return;
    }
    uint64_t start = tile_clock_ns();
    bool here = tile_share_is_alone(cost, key, left, start);
    if (here)
        run_rest(&rest, 0, left);
    else
        tile_thread_pool_run(pool, left, run_rest, &rest);
    tile_share_note(here ? &cost->alone : &cost->shared, key, (double)(tile_clock_ns() - start) / (double)left);
}
