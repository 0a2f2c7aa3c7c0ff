/* Blocks of threads: each thread runs the phase as an executor with its own registers and frames; memory objects are
 * shared. The blocks of a cluster run as one, whose threads' numbers go on from block to block, with a shared memory for
 * each of them. The scheduler runs one thread at a time, until it reaches an op at which threads wait for others: round
 * robin, or, with a seed, at random and with a bias that changes, since races seldom show when all threads are about
 * equally fast. Blocks run one after the other; with a seed, in any order. */
#include <stdlib.h>
#include <string.h>

#include "lang/execute/state.h"

typedef enum Bias {
    BIAS_NONE,
    BIAS_AHEAD,    /* one thread runs as far as it can, then the next one */
    BIAS_STARVED,  /* one thread runs only if no other can */
    BIAS_BACKWARD, /* the last thread that can run */
    BIAS_LOCKSTEP, /* each thread one step */
    BIAS_COUNT
} Bias;

typedef struct Schedule {
    Bias bias;
    uint64_t decisions; /* how many more scheduling decisions it holds for */
    uint32_t thread;    /* the thread that the bias is about; without a seed, the last one that ran */
} Schedule;

typedef struct Block {
    TileExecutor *host;
    const ExecActivation *phase; /* has the parameters */
    TileExecutor *threads;
    uint32_t each, ranks;   /* threads of a block; blocks of the cluster, 1: there is none */
    uint32_t count, shared; /* all threads; the first object of shared memory */
    int64_t number, blocks;
    uint32_t clustered; /* threads that wait at a barrier of the cluster */
    uint32_t *lanes;    /* for each warp: lanes that wait at a warp-level op */
    uint32_t grouped[EXEC_MOST_THREADS / TILE_WARPGROUP_THREADS]; /* for each warpgroup: threads that wait at an op of
                                                                   * it */
    uint32_t named[TILE_MAX_CLUSTER][TILE_NAMED_BARRIERS]; /* threads of a block that wait at a barrier of this number */
    uint64_t ready[EXEC_MOST_THREADS / 64]; /* bit set of threads that have not ended and do not wait for others of the
                                            * block */
    ExecRaces *races;
    ExecMbarriers *mbarriers; /* NULL: the function has none */
    ExecWarpgroups *warpgroups;
    ExecClock meeting; /* what the threads of a named barrier know together, if clocks are kept */
    Schedule schedule;
} Block;

/* ---- ops of a single thread ---- */

bool tile_exec_thread(TileExecutor *e, const ExecInstruction *in) {
    tile_exec_set_scalar(tile_exec_result(e, in), tile_exec_own_thread(e));
    return true;
}

bool tile_exec_cluster_rank(TileExecutor *e, const ExecInstruction *in) {
    if (!e->ranks) return tile_exec_fault(e, in, "this function is not run by a block of threads");
    tile_exec_set_scalar(tile_exec_result(e, in), e->rank);
    return true;
}

/* The programs of a grid run one after the other where they are tile form: none has what the others have. */
bool tile_exec_cluster_reduce(TileExecutor *e, const ExecInstruction *in) {
    return tile_exec_fault(e, in, "blocks of a cluster combine what they have: only machine form runs them at a time");
}

bool tile_exec_here(TileExecutor *e, const ExecInstruction *in) {
    ExecValue x = tile_exec_operand(e, in, 0), result = tile_exec_result(e, in);
    result.lanes[0] = x.lanes[0];
    *result.any = 0;
    if (tile_exec_poisoned(x, 0)) tile_exec_set_poison(e, result, 0, x.poison[0]);
    return true;
}

bool tile_exec_defined_where(TileExecutor *e, const ExecInstruction *in) {
    ExecValue x = tile_exec_operand(e, in, 0), condition = tile_exec_operand(e, in, 1),
              result = tile_exec_result(e, in);
    uint8_t poison = tile_exec_poisoned(x, 0) | tile_exec_poisoned(condition, 0);
    if (!condition.lanes[0]) poison |= EXEC_POISON;
    result.lanes[0] = x.lanes[0];
    *result.any = 0;
    if (poison) tile_exec_set_poison(e, result, 0, poison);
    return true;
}

/* Grids run one after the other here. */
bool tile_exec_order_grids(TileExecutor *e, const ExecInstruction *in) {
    (void)e, (void)in;
    return true;
}

bool tile_exec_block(TileExecutor *e, const ExecInstruction *in) {
    tile_exec_set_scalar(tile_exec_result(e, in), (uint64_t)e->block);
    return true;
}

bool tile_exec_block_count(TileExecutor *e, const ExecInstruction *in) {
    tile_exec_set_scalar(tile_exec_result(e, in), (uint64_t)e->block_count);
    return true;
}

/* The thread stops here; the scheduler executes the op when all participants have arrived. In tile form there is one
 * thread, which does not wait. */
bool tile_exec_meet(TileExecutor *e, const ExecInstruction *in) {
    if (tile_op_func(in->op)->form == TILE_FORM_TILE) return true;
    if (!e->thread_count) return tile_exec_fault(e, in, "this function is not run by a block of threads");
    e->meeting = in;
    return false;
}

/* ---- ops of several threads ---- */

static bool take_over(TileExecutor *host, const TileExecutor *thread) {
    host->state = thread->state;
    host->message = thread->message;
    return false;
}

static uint32_t warp_size(const Block *block, uint32_t first) {
    return block->count - first < TILE_WARP_THREADS ? block->count - first : TILE_WARP_THREADS;
}

/* Do threads first .. first + count all wait at the same op? */
static bool have_come(const Block *block, uint32_t first, uint32_t count) {
    const ExecInstruction *at = block->threads[first].meeting;
    for (uint32_t i = first; i < first + count; i++)
        if (block->threads[i].meeting != at) return false;
    return at != NULL;
}

static void set_ready(Block *block, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; i++) block->ready[i / 64] |= UINT64_C(1) << i % 64;
}

/* The lanes know what all of them know. */
static bool meet_in_warp(Block *block, uint32_t first, uint32_t count) {
    block->meeting.era = 0; /* nothing is known */
    for (uint32_t i = first; i < first + count; i++) {
        TileExecutor *e = &block->threads[i];
        if (!tile_exec_publish(e, e->meeting, block->races, &block->meeting)) return take_over(block->host, e);
    }
    for (uint32_t i = first; i < first + count; i++) {
        tile_exec_learn(block->races, i, &block->meeting);
        block->threads[i].meeting = NULL;
    }
    return true;
}

static bool arrive_in_warp(Block *block, uint32_t thread) {
    uint32_t first = thread / TILE_WARP_THREADS * TILE_WARP_THREADS, failed = 0;
    uint32_t *lanes = &block->lanes[thread / TILE_WARP_THREADS];
    if (++*lanes < warp_size(block, first) || !have_come(block, first, *lanes)) return true;
    uint32_t count = *lanes;
    *lanes = 0;
    set_ready(block, first, count);
    if (block->threads[first].meeting->op->id == TILE_OP_WARP_BARRIER) return meet_in_warp(block, first, count);
    return tile_exec_warp(&block->threads[first], count, &failed) ||
           take_over(block->host, &block->threads[first + failed]);
}

/* Warpgroups that wait for registers go on if there are enough now. */
static bool retry_registers(Block *block) {
    uint32_t failed = 0;
    for (uint32_t first = 0; first + TILE_WARPGROUP_THREADS <= block->count; first += TILE_WARPGROUP_THREADS) {
        TileExecutor *threads = &block->threads[first];
        bool whole = block->grouped[first / TILE_WARPGROUP_THREADS] == TILE_WARPGROUP_THREADS;
        if (!whole || !threads->meeting || threads->meeting->op->id != TILE_OP_SET_REGISTERS) continue;
        if (!tile_exec_warpgroup(threads, &failed)) return take_over(block->host, &threads[failed]);
        if (threads->meeting) continue;
        block->grouped[first / TILE_WARPGROUP_THREADS] = 0;
        set_ready(block, first, TILE_WARPGROUP_THREADS);
    }
    return true;
}

static bool arrive_in_warpgroup(Block *block, uint32_t thread) {
    uint32_t group = thread / TILE_WARPGROUP_THREADS, first = group * TILE_WARPGROUP_THREADS, failed = 0;
    if (++block->grouped[group] < TILE_WARPGROUP_THREADS || !have_come(block, first, TILE_WARPGROUP_THREADS))
        return true;
    TileExecutor *threads = &block->threads[first];
    bool releases = threads->meeting->op->id == TILE_OP_SET_REGISTERS;
    if (!tile_exec_warpgroup(threads, &failed)) return take_over(block->host, &threads[failed]);
    if (threads->meeting) return true; /* there are too few registers */
    block->grouped[group] = 0;
    set_ready(block, first, TILE_WARPGROUP_THREADS);
    return !releases || retry_registers(block);
}

static int64_t barrier_number(const TileExecutor *e) {
    bool barrier = e->meeting && e->meeting->op->id == TILE_OP_BARRIER;
    if (!barrier) return -1;
    int64_t number = tile_op_integer(e->meeting->op, TILE_ATTRIBUTE_NUMBER, 0),
            turns = tile_op_integer(e->meeting->op, TILE_ATTRIBUTE_TURNS, 1);
    return turns > 1 ? number + tile_exec_own_thread(e) / tile_op_integer(e->meeting->op, TILE_ATTRIBUTE_THREADS, 1) : number;
}

/* The threads of a block that wait at barriers of the number know what all of them know, and go on. */
static bool meet(Block *block, uint32_t rank, int64_t number) {
    uint32_t begin = rank * block->each, end = begin + block->each;
    block->meeting.era = 0; /* nothing is known */
    for (uint32_t i = begin; i < end; i++) {
        TileExecutor *e = &block->threads[i];
        if (barrier_number(e) == number && !tile_exec_publish(e, e->meeting, block->races, &block->meeting))
            return take_over(block->host, e);
    }
    for (uint32_t i = begin; i < end; i++) {
        if (barrier_number(&block->threads[i]) != number) continue;
        tile_exec_learn(block->races, i, &block->meeting);
        block->threads[i].meeting = NULL;
        set_ready(block, i, 1);
    }
    return true;
}

/* Threads wait at any barrier of the number; all say how many they are. */
static bool arrive_at_named(Block *block, uint32_t thread) {
    TileExecutor *e = &block->threads[thread];
    int64_t number = barrier_number(e), count = tile_op_integer(e->meeting->op, TILE_ATTRIBUTE_THREADS, 0);
    uint32_t *named = &block->named[e->rank][number], begin = e->rank * block->each;
    for (uint32_t i = begin; i < begin + block->each; i++) {
        const TileExecutor *other = &block->threads[i];
        if (barrier_number(other) != number) continue;
        int64_t expected = tile_op_integer(other->meeting->op, TILE_ATTRIBUTE_THREADS, 0);
        if (expected == count) continue;
        tile_exec_fault(e, e->meeting, "thread %u waits for %lld threads at the barrier of this number", i - begin,
                        (long long)expected);
        return take_over(block->host, e);
    }
    if (++*named < count) return true;
    *named = 0;
    return meet(block, e->rank, number);
}

/* All threads that run have come to one op. */
static void begin_era(Block *block) {
    set_ready(block, 0, block->count);
    for (uint32_t i = 0; i < block->count; i++) block->threads[i].meeting = NULL;
    tile_exec_next_era(block->races);
}

/* A block of a cluster orders its own threads, and an era is one of all. */
static bool arrive_at_barrier(Block *block, uint32_t rank) {
    uint32_t *waiting = &block->named[rank][0];
    if (++*waiting < block->each || !have_come(block, rank * block->each, block->each)) return true;
    *waiting = 0;
    if (block->ranks > 1) return meet(block, rank, 0);
    begin_era(block);
    return true;
}

/* Partitions of warps come to ops of their own. */
static bool have_come_in_cluster(const Block *block) {
    for (uint32_t i = 0; i < block->count; i++)
        if (!block->threads[i].meeting || block->threads[i].meeting->op->id != TILE_OP_CLUSTER_BARRIER) return false;
    return true;
}

static bool arrive_in_cluster(Block *block) {
    if (++block->clustered < block->count || !have_come_in_cluster(block)) return true;
    block->clustered = 0;
    begin_era(block);
    return true;
}

/* The thread waits; if it is the last one to arrive, all continue. */
static bool arrive(Block *block, uint32_t thread) {
    const TileExecutor *e = &block->threads[thread];
    if (barrier_number(e) >= 0) return barrier_number(e) ? arrive_at_named(block, thread) : arrive_at_barrier(block, e->rank);
    if (e->meeting->op->id == TILE_OP_CLUSTER_BARRIER) return arrive_in_cluster(block);
    return tile_op_is_of_warpgroup((TileOpId)e->meeting->op->id) ? arrive_in_warpgroup(block, thread)
                                                                 : arrive_in_warp(block, thread);
}

/* ---- the scheduler ---- */

/* A ready thread can run unless it waits for a phase of an mbarrier that has not completed. */
static bool can_run(const TileExecutor *e) { return !e->awaited || tile_exec_may_go_on(e); }

static uint64_t random_below(Block *block, uint64_t end) { return tile_exec_random(block->host) % end; }

/* The first ready thread from `begin` on; `end` if there is none below it. */
static uint32_t find_between(const Block *block, uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; i = (i / 64 + 1) * 64) {
        for (uint64_t bits = block->ready[i / 64] >> i % 64 << i % 64; bits; bits &= bits - 1) {
            uint32_t thread = i / 64 * 64 + (uint32_t)__builtin_ctzll(bits);
            if (thread >= end) return end;
            if (can_run(&block->threads[thread])) return thread;
        }
    }
    return end;
}

/* The first ready thread from `start` on, cyclically; `count` if there is none. */
static uint32_t find_thread(const Block *block, uint32_t start) {
    start %= block->count;
    uint32_t found = find_between(block, start, block->count);
    if (found < block->count) return found;
    found = find_between(block, 0, start);
    return found < start ? found : block->count;
}

static uint32_t find_last(const Block *block) {
    for (uint32_t i = block->count; i-- > 0;)
        if (block->ready[i / 64] >> i % 64 & 1 && can_run(&block->threads[i])) return i;
    return block->count;
}

/* Chooses the thread to run, and for how many steps at most. */
static uint32_t choose(Block *block, uint64_t *steps) {
    Schedule *schedule = &block->schedule;
    *steps = UINT32_MAX;
    if (!block->host->options.seed) return find_thread(block, schedule->thread);
    if (!schedule->decisions--)
        *schedule = (Schedule){.bias = (Bias)random_below(block, BIAS_COUNT),
                               .decisions = random_below(block, 4 * (uint64_t)block->count),
                               .thread = (uint32_t)random_below(block, block->count)};
    *steps = 1 + random_below(block, 64);
    switch (schedule->bias) {
    case BIAS_AHEAD: return find_thread(block, schedule->thread);
    case BIAS_STARVED: return find_thread(block, schedule->thread + 1);
    case BIAS_BACKWARD: return find_last(block);
    case BIAS_LOCKSTEP: *steps = 1; return schedule->thread = find_thread(block, schedule->thread + 1);
    case BIAS_NONE:
    case BIAS_COUNT: break;
    }
    return find_thread(block, (uint32_t)random_below(block, block->count));
}

/* Do both wait for the same, or have both ended? */
static bool wait_alike(const TileExecutor *a, const TileExecutor *b) {
    return a->meeting == b->meeting && a->awaited == b->awaited && a->parity == b->parity;
}

/* For messages: ranges of threads that wait as this one does, or have all ended. */
static void print_group(const Block *block, const TileExecutor *e, TileText *text) {
    const char *separator = text->length ? "; " : "";
    for (uint32_t i = 0, end; i < block->count; i = end) {
        for (end = i; end < block->count && wait_alike(&block->threads[end], e); end++) continue;
        if (end == i) {
            end++;
            continue;
        }
        tile_text_format(text, end - i > 1 ? "%s%u .. %u" : "%s%u", separator, i, end - 1);
        separator = ", ";
    }
    tile_text_add(text, e->meeting ? " at `" : " at the end");
    if (!e->meeting) return;
    tile_exec_print_op(block->host, e->meeting->op, text);
    tile_text_add(text, "`");
    if (e->awaited) tile_exec_print_lacking(e, text);
}

static const char *what_lacks(const Block *block, const TileExecutor *e) {
    if (e->awaited) return "nobody completes the phase";
    if (barrier_number(e) > 0) return "not as many threads come to the barrier of this number";
    if (barrier_number(e) == 0) return "not all threads of the block come here";
    if (e->meeting->op->id == TILE_OP_CLUSTER_BARRIER) return "not all threads of the cluster come here";
    uint32_t group = e->thread / TILE_WARPGROUP_THREADS;
    bool whole = group < EXEC_MOST_THREADS / TILE_WARPGROUP_THREADS && block->grouped[group] == TILE_WARPGROUP_THREADS;
    if (whole && e->meeting->op->id == TILE_OP_SET_REGISTERS) return "other warpgroups keep too many registers";
    return tile_op_is_of_warpgroup((TileOpId)e->meeting->op->id) ? "not all threads of the warpgroup come here"
                                                                 : "not all lanes of the warp come here";
}

/* All threads have ended. */
static bool end_copies(Block *block) {
    const ExecInstruction *in;
    TileExecutor *e = tile_exec_bulk_thread(block->mbarriers, &in);
    if (!e) e = tile_exec_product_thread(block->warpgroups, &in);
    if (!e) return true;
    tile_exec_fault(e, in, "the block ends while the %s is under way",
                    in->op->id == TILE_OP_WGMMA ? "product" : "copy");
    return take_over(block->host, e);
}

/* No thread is ready: all have ended, or there is a deadlock. */
static bool end_block(Block *block) {
    uint32_t waits = 0;
    TileText groups = {.arena = block->host->arena};
    while (waits < block->count && !block->threads[waits].meeting) waits++;
    if (waits == block->count) return end_copies(block);
    TileExecutor *e = &block->threads[waits];
    for (uint32_t i = 0; i < block->count; i++) {
        uint32_t first = 0;
        while (!wait_alike(&block->threads[first], &block->threads[i])) first++;
        if (first == i) print_group(block, &block->threads[i], &groups);
    }
    tile_exec_fault(e, e->meeting, "a deadlock: %s; threads of block %lld: %s", what_lacks(block, e),
                    (long long)block->number, tile_text_get(&groups));
    return take_over(block->host, e);
}

static bool complete_bulk_copy(Block *block) {
    TileExecutor *failed;
    return tile_exec_complete_bulk_copy(block->host, block->mbarriers, &failed) || take_over(block->host, failed);
}

/* Does a thread wait for a phase that a pending copy may complete? */
static bool waits_for_copies(const Block *block) {
    const ExecInstruction *in;
    bool waits = false;
    for (uint32_t i = 0; i < block->count && block->mbarriers; i++) waits |= block->threads[i].awaited != 0;
    return waits && tile_exec_bulk_thread(block->mbarriers, &in);
}

static bool run_threads(Block *block) {
    for (;;) {
        uint64_t steps;
        uint32_t thread = choose(block, &steps);
        if (thread == block->count) {
            if (!waits_for_copies(block)) return end_block(block);
            if (!complete_bulk_copy(block)) return false;
            continue;
        }
        TileExecutor *e = &block->threads[thread];
        uint64_t before = e->steps;
        if (e->awaited) tile_exec_go_on(e);
        tile_exec_run(e, before + steps);
        block->host->steps += e->steps - before;
        if (block->host->options.seed) tile_exec_complete_copies(block->host, e);
        if (block->host->options.seed) tile_exec_complete_stores(block->host, e);
        if (e->state == TILE_EXECUTION_DONE) tile_exec_end_stores(e);
        if (e->state != TILE_EXECUTION_DONE && e->state != TILE_EXECUTION_PAUSED) return take_over(block->host, e);
        bool waits = e->meeting && !e->awaited;
        if (waits || e->state == TILE_EXECUTION_DONE) block->ready[thread / 64] &= ~(UINT64_C(1) << thread % 64);
        if (waits && !arrive(block, thread)) return false;
        if (!block->host->options.seed) block->schedule.thread = thread;
        bool early = block->mbarriers && block->host->options.seed && !random_below(block, 4);
        if (early && !complete_bulk_copy(block)) return false;
        if (early && block->warpgroups && !tile_exec_read_early(block->host, block->warpgroups)) return false;
    }
}

/* ---- one block ---- */

/* The objects are those of the host, with the same numbers. */
static bool create_thread(Block *block, uint32_t number) {
    TileExecutor *host = block->host, *e = &block->threads[number];
    *e = (TileExecutor){.arena = host->arena,
                        .func = block->phase->program->func,
                        .options = host->options,
                        .undefined = host->undefined,
                        .programs = host->programs,
                        .thread = number,
                        .records = host->records,
                        .thread_count = block->each,
                        .rank = number / block->each,
                        .ranks = block->ranks,
                        .block_count = block->blocks,
                        .shared = block->shared + number / block->each,
                        .races = block->races,
                        .warpgroups = block->warpgroups,
                        .mbarriers = block->mbarriers};
    e->objects = malloc(host->object_count * sizeof *e->objects);
    if (!e->objects) return tile_exec_out_of_memory(host);
    e->object_count = e->object_capacity = host->object_count;
    memcpy(e->objects, host->objects, host->object_count * sizeof *e->objects);
    for (size_t i = 0; i < e->object_count; i++) e->objects[i].owned = NULL;
    e->root = tile_exec_activate(e, block->phase->program);
    return e->root || tile_exec_out_of_memory(host);
}

/* Frees the thread's own buffers, and activations of functions that it has called. */
static void drop_own(TileExecutor *e) {
    if (e->root) tile_exec_release(e, e->root->first_object);
    for (size_t i = 0; i < e->depth; i++)
        if (e->frames[i].owner && e->frames[i].owner->op->id == TILE_OP_CALL) free(e->frames[i].activation);
    e->depth = 0;
}

static bool start_thread(Block *block, uint32_t number) {
    TileExecutor *e = &block->threads[number];
    drop_own(e);
    e->object_count = e->root->first_object; /* no pointers to the others are left */
    e->state = TILE_EXECUTION_PAUSED;
    e->started = true;
    e->message = (TileText){.arena = e->arena};
    e->block = block->number + e->rank;
    e->meeting = NULL;
    e->awaited = e->parity = 0;
    e->fenced = 0;
    tile_exec_forget_copies(e);
    tile_exec_forget_stores(e);
    tile_exec_reset(e->root);
    const ExecProgram *program = e->root->program;
    uint32_t last = program->body.first_argument + program->body.argument_count - 1;
    for (uint32_t i = program->body.first_argument; i < last; i++)
        tile_exec_copy(tile_exec_register(block->phase, i), tile_exec_register(e->root, i));
    ExecValue shared = tile_exec_register(e->root, last);
    shared.lanes[0] = e->shared;
    shared.lanes[1] = 0;
    *shared.any = 0;
    return tile_exec_push(e, &(ExecFrame){.activation = e->root, .code = &program->body, .active = 1}) != NULL ||
           tile_exec_out_of_memory(block->host);
}

static void destroy_thread(TileExecutor *e) {
    drop_own(e);
    tile_exec_free_copies(e);
    tile_exec_free_stores(e);
    free(e->root);
    free(e->frames);
    free(e->objects);
    free(e->tensors);
    free(e->scratch);
}

/* A thread has a multiple of 8. */
static uint32_t registers_of(const Block *block) { return (block->phase->program->func->registers + 7) / 8 * 8; }

/* A block, or those of a cluster. */
static bool run_block(Block *block, int64_t number) {
    const ExecObject *shared = &block->host->objects[block->shared];
    block->number = number;
    block->clustered = 0;
    memset(block->ready, 0, sizeof block->ready);
    memset(block->grouped, 0, sizeof block->grouped);
    memset(block->named, 0, sizeof block->named);
    tile_exec_forget_mbarriers(block->mbarriers);
    if (block->warpgroups) tile_exec_forget_warpgroups(block->warpgroups, registers_of(block));
    memset(block->lanes, 0, (block->count + TILE_WARP_THREADS - 1) / TILE_WARP_THREADS * sizeof *block->lanes);
    for (uint32_t rank = 0; rank < block->ranks; rank++) {
        if (shared[rank].size) memset(shared[rank].base, 0xff, (size_t)shared[rank].size);
        if (shared[rank].poison) memset(shared[rank].poison, 1, (size_t)shared[rank].size);
    }
    if (!tile_exec_begin_block(block->host, block->races, number, shared, block->ranks)) return false;
    for (uint32_t i = 0; i < block->count; i++)
        if (!start_thread(block, i)) return false;
    set_ready(block, 0, block->count);
    return run_threads(block);
}

/* ---- all blocks ---- */

/* The order in which blocks run; NULL: by number. False if out of memory. */
static bool choose_order(Block *block, int64_t **order) {
    *order = NULL;
    if (!block->host->options.seed) return true;
    *order = malloc((size_t)block->blocks * sizeof **order);
    if (!*order) return tile_exec_out_of_memory(block->host);
    for (int64_t i = 0; i < block->blocks / block->ranks; i++) {
        int64_t at = (int64_t)random_below(block, (uint64_t)i + 1);
        (*order)[i] = (*order)[at];
        (*order)[at] = i;
    }
    return true;
}

/* Where clocks are kept; other functions have no ops of warpgroups. */
static bool create_warpgroups(Block *block) {
    if (!block->mbarriers) return true;
    if (!tile_exec_clock_create(block->races, &block->meeting)) return tile_exec_out_of_memory(block->host);
    if (block->each < TILE_WARPGROUP_THREADS) return true;
    block->warpgroups = tile_exec_create_warpgroups(block->each, block->ranks);
    return block->warpgroups || tile_exec_out_of_memory(block->host);
}

static bool run_blocks(Block *block) {
    TileExecutor *host = block->host;
    const TileFunc *func = block->phase->program->func;
    int64_t *order = NULL;
    block->threads = calloc(block->count, sizeof *block->threads);
    block->lanes = calloc(block->count, sizeof *block->lanes);
    if (!block->threads || !block->lanes) return tile_exec_out_of_memory(host);
    for (uint32_t rank = 0; rank < block->ranks; rank++)
        if (!tile_exec_allocate(host, func->scratch_bytes, 1024, true, &block->shared)) return false;
    block->shared -= block->ranks - 1;
    if (!choose_order(block, &order)) return false;
    block->races = tile_exec_watch(host);
    bool going = block->races && tile_exec_create_mbarriers(host, func, block->ranks, block->races, &block->mbarriers) &&
                 create_warpgroups(block) && tile_exec_open_records(host, block->phase->program->func);
    for (uint32_t i = 0; i < block->count && going; i++) going = create_thread(block, i);
    for (int64_t i = 0; i < block->blocks / block->ranks && going; i++)
        going = run_block(block, (order ? order[i] : i) * block->ranks);
    for (uint32_t i = 0; i < block->count; i++) destroy_thread(&block->threads[i]);
    tile_exec_unwatch(host, block->races);
    tile_exec_free_mbarriers(block->mbarriers);
    tile_exec_free_warpgroups(block->warpgroups);
    free(block->meeting.times);
    free(order);
    return tile_exec_close_records(host, going);
}

static void look_for_warpgroups(TileOp *op, void *found) { *(bool *)found |= tile_op_is_of_warpgroup((TileOpId)op->id); }

/* Warpgroups are numbered through the blocks of a cluster, and so are warps. */
static bool has_whole_groups(const TileFunc *func) {
    bool warpgroups = false;
    tile_block_walk((TileBlock *)(uintptr_t)&func->body, look_for_warpgroups, &warpgroups);
    return func->threads % (warpgroups ? TILE_WARPGROUP_THREADS : TILE_WARP_THREADS) == 0;
}

bool tile_exec_blocks(TileExecutor *e, const ExecInstruction *grid, const ExecActivation *phase, int64_t block_count) {
    const TileFunc *func = phase->program->func;
    uint32_t parameters = func->body.argument_count;
    if (!parameters || func->body.arguments[parameters - 1]->type->kind != TILE_TYPE_POINTER ||
        func->body.arguments[parameters - 1]->type->space != TILE_SPACE_SHARED)
        return tile_exec_fault(e, grid, "the last parameter of %s is not its shared memory", func->name);
    uint32_t ranks = func->cluster > 1 ? func->cluster : 1;
    bool fits = func->threads * ranks <= EXEC_MOST_THREADS && has_whole_groups(func);
    if (ranks > 1 && !fits)
        return tile_exec_fault(e, grid, "clusters have whole warps or warpgroups here, and %d threads at most", EXEC_MOST_THREADS);
    if (block_count % ranks)
        return tile_exec_fault(e, grid, "%lld blocks are no whole clusters of %u", (long long)block_count, ranks);
    Block block = {.host = e,
                   .phase = phase,
                   .each = func->threads,
                   .ranks = ranks,
                   .count = func->threads * ranks,
                   .blocks = block_count};
    size_t first_object = e->object_count;
    bool done = run_blocks(&block);
    tile_exec_release(e, first_object);
    e->object_count = first_object; /* no pointers to it are left */
    free(block.threads);
    free(block.lanes);
    return done;
}
