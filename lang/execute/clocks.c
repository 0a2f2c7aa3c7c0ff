/* Vector clocks: what each thread knows of the others in the current era, and of their fences. A clock is an array of
 * times, one for each entry (races.h), and behind them, for each thread, the time of its last fence between ordinary
 * and asynchronous accesses. */
#include <stdlib.h>
#include <string.h>

#include "lang/execute/races.h"

static uint32_t warpgroup_count(const ExecRaces *races) {
    return (races->thread_count + TILE_WARPGROUP_THREADS - 1) / TILE_WARPGROUP_THREADS;
}

static uint32_t length_of(const ExecRaces *races) { return races->clock_size + races->thread_count; }

/* The size of a clock for so many threads, and the mbarriers that fit into so many bytes. */
static bool create_clocks(ExecRaces *races, uint32_t threads, uint64_t bytes) {
    uint64_t mbarriers = bytes / EXEC_MBARRIER_BYTES;
    races->thread_count = threads;
    races->clock_size = threads + (uint32_t)(mbarriers < EXEC_MOST_MBARRIERS ? mbarriers : EXEC_MOST_MBARRIERS) +
                        warpgroup_count(races);
    races->fences = calloc(threads, sizeof *races->fences);
    races->earlier_fences = calloc(threads, sizeof *races->earlier_fences);
    races->clocks = calloc(threads, sizeof *races->clocks);
    bool good =
        races->clocks && races->fences && races->earlier_fences && tile_exec_clock_create(races, &races->common);
    for (uint32_t i = 0; good && i < threads; i++) good = tile_exec_clock_create(races, &races->clocks[i]);
    return good;
}

bool tile_exec_keep_clocks(TileExecutor *e, ExecRaces *races, uint32_t threads, uint64_t bytes) {
    return create_clocks(races, threads, bytes) || tile_exec_out_of_memory(e);
}

void tile_exec_free_clocks(ExecRaces *races) {
    for (uint32_t i = 0; races->clocks && i < races->thread_count; i++) free(races->clocks[i].times);
    free(races->clocks);
    free(races->common.times);
    free(races->fences);
    free(races->earlier_fences);
}

bool tile_exec_clock_create(const ExecRaces *races, ExecClock *clock) {
    *clock = (ExecClock){.times = calloc(length_of(races), sizeof *clock->times)};
    return clock->times != NULL;
}

/* ---- what is known ---- */

/* Everything before the last barrier happened before this. */
static uint32_t *times_now(const ExecRaces *races, ExecClock *clock) {
    if (clock->era != races->era) memset(clock->times, 0, length_of(races) * sizeof *clock->times);
    clock->era = races->era;
    return clock->times;
}

static void join(const ExecRaces *races, ExecClock *to, const ExecClock *from) {
    uint32_t *times = times_now(races, to);
    for (uint32_t i = 0; from->era == races->era && i < length_of(races); i++)
        if (times[i] < from->times[i]) times[i] = from->times[i];
}

static uint32_t *own_time(const ExecRaces *races, uint32_t thread) {
    uint32_t *own = &times_now(races, &races->clocks[thread])[thread];
    if (!*own) *own = 1;
    return own;
}

uint32_t tile_exec_own_time(const ExecRaces *races, uint32_t thread) {
    return races->clocks ? *own_time(races, thread) : 0;
}

static bool move_on(TileExecutor *e, const ExecInstruction *in, uint32_t *own) {
    if (*own == MOST_TIME)
        return tile_exec_fault(e, in, "more than %d arrivals and fences of a thread without a barrier are not followed",
                               MOST_TIME);
    ++*own;
    return true;
}

bool tile_exec_publish(TileExecutor *e, const ExecInstruction *in, const ExecRaces *races, ExecClock *clock) {
    uint32_t *own = own_time(races, e->thread);
    join(races, clock, &races->clocks[e->thread]);
    return move_on(e, in, own);
}

void tile_exec_learn(const ExecRaces *races, uint32_t thread, const ExecClock *clock) {
    own_time(races, thread);
    join(races, &races->clocks[thread], clock);
}

uint32_t tile_exec_mbarrier_entry(const ExecRaces *races, uint32_t mbarrier) { return races->thread_count + mbarrier; }

void tile_exec_tick(const ExecRaces *races, ExecClock *clock, uint32_t entry, uint32_t time) {
    times_now(races, clock)[entry] = time;
}

static const ExecClock *clock_of(const ExecRaces *races, uint32_t observer) {
    return observer == EXEC_COMMON ? &races->common : &races->clocks[observer];
}

bool tile_exec_has_seen(const ExecRaces *races, uint32_t observer, const Access *access) {
    const ExecClock *clock = clock_of(races, observer);
    return clock->era == races->era && access->time <= clock->times[access->thread];
}

/* ---- warpgroups ---- */

uint32_t tile_exec_warpgroup_entry(const ExecRaces *races, uint32_t thread) {
    return races->clock_size - warpgroup_count(races) + thread / TILE_WARPGROUP_THREADS;
}

void tile_exec_find_common(ExecRaces *races, uint32_t first) {
    uint32_t *common = races->common.times;
    races->common.era = races->era;
    memset(common, 0xff, length_of(races) * sizeof *common);
    for (uint32_t thread = first; thread < first + TILE_WARPGROUP_THREADS; thread++) {
        own_time(races, thread);
        const uint32_t *times = races->clocks[thread].times;
        for (uint32_t i = 0; i < length_of(races); i++)
            if (common[i] > times[i]) common[i] = times[i];
    }
}

bool tile_exec_finish_products(TileExecutor *threads, const ExecInstruction *in, uint32_t waits) {
    const ExecRaces *races = threads->races;
    if (waits > MOST_TIME)
        return tile_exec_fault(threads, in, "more than %d waits for products are not followed", MOST_TIME);
    for (uint32_t i = 0; i < TILE_WARPGROUP_THREADS; i++) {
        own_time(races, threads[i].thread);
        races->clocks[threads[i].thread].times[tile_exec_warpgroup_entry(races, threads->thread)] = waits;
    }
    return true;
}

/* ---- fences ---- */

bool tile_exec_fence_async(TileExecutor *e, const ExecInstruction *in) {
    const ExecRaces *races = e->races;
    if (!races) return tile_exec_fault(e, in, "this function is not run by a block of threads");
    if (!races->clocks) return true; /* nothing of the function is asynchronous */
    uint32_t *own = own_time(races, e->thread);
    Fence *last = &races->fences[e->thread];
    if (last->era < races->era) races->earlier_fences[e->thread] = *last;
    *last = (Fence){races->era, *own};
    races->clocks[e->thread].times[races->clock_size + e->thread] = *own;
    return move_on(e, in, own);
}

bool tile_exec_is_fenced(const ExecRaces *races, uint32_t observer, const Access *access) {
    if (access->thread >= races->thread_count) return true;
    const ExecClock *clock = clock_of(races, observer);
    uint32_t known = clock->era == races->era ? clock->times[races->clock_size + access->thread] : 0;
    if (access->era == races->era) return access->time <= known;
    const Fence *fence = &races->fences[access->thread];
    if (fence->era == races->era) fence = &races->earlier_fences[access->thread];
    return known || fence->era > access->era || (fence->era == access->era && fence->time >= access->time);
}
