/* Blocks of threads: each thread runs the phase as an executor of its own, with registers and frames of its own and the
 * memory objects of all. The scheduler lets one of them go on at a time, at random where there is a seed, until it
 * meets an op at which threads wait for others. */
#include <stdlib.h>
#include <string.h>

#include "lang/execute_state.h"

typedef struct Block {
    TileExecutor *host;
    const ExecInstruction *grid;
    const ExecActivation *phase; /* holds the parameters */
    TileExecutor *threads;
    uint32_t count;
    int64_t number, blocks;
} Block;

/* ---- what threads do alone ---- */

bool tile_exec_thread(TileExecutor *e, const ExecInstruction *in) {
    tile_exec_set_scalar(tile_exec_result(e, in), e->thread);
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

/* The scheduler does the rest when all that take part have come; a block of one thread waits for nobody. */
bool tile_exec_meet(TileExecutor *e, const ExecInstruction *in) {
    if (!e->thread_count) return tile_exec_fault(e, in, "this function is not run by a block of threads");
    e->meeting = in;
    return false;
}

/* ---- what they do together ---- */

/* Lane values pass between warps' registers; a lane that does not exist gives poison. */
static bool exchange(Block *block, uint32_t first) {
    uint64_t bits[TILE_WARP_THREADS];
    bool poison[TILE_WARP_THREADS];
    uint32_t count = block->count - first < TILE_WARP_THREADS ? block->count - first : TILE_WARP_THREADS;
    for (uint32_t lane = 0; lane < count; lane++) {
        TileExecutor *e = &block->threads[first + lane];
        ExecValue value = tile_exec_operand(e, e->meeting, 0);
        bits[lane] = value.lanes[0];
        poison[lane] = tile_exec_poisoned(value, 0);
    }
    for (uint32_t lane = 0; lane < count; lane++) {
        TileExecutor *e = &block->threads[first + lane];
        int64_t mask;
        if (!tile_exec_integer(e, e->meeting, 1, "the lane", &mask)) return false;
        int64_t from = (int64_t)lane ^ mask;
        ExecValue result = tile_exec_result(e, e->meeting);
        if (from < 0 || from >= TILE_WARP_THREADS) return tile_exec_fault(e, e->meeting, "no lane of a warp");
        tile_exec_set_scalar(result, from < count ? bits[from] : 0);
        if (from >= count || poison[from]) tile_exec_set_poison(e, result, 0);
        e->meeting = NULL;
    }
    return true;
}

/* Have the threads first .. first + count all come to one and the same op? Those that have ended are not waited for at
 * a barrier. */
static bool have_come(const Block *block, uint32_t first, uint32_t count) {
    const ExecInstruction *at = NULL;
    for (uint32_t i = first; i < first + count; i++) {
        const TileExecutor *e = &block->threads[i];
        if (e->state == TILE_EXECUTION_DONE) continue;
        if (!e->meeting || (at && e->meeting != at)) return false;
        at = e->meeting;
    }
    return at != NULL;
}

/* The threads from `first` on that take part in an op; false where one of them has not come. */
static bool meet_warp(Block *block, uint32_t first, bool *moved) {
    uint32_t left = block->count - first, count = left < TILE_WARP_THREADS ? left : TILE_WARP_THREADS;
    const TileExecutor *e = &block->threads[first];
    if (!e->meeting || e->meeting->op->id != TILE_OP_EXCHANGE || !have_come(block, first, count)) return true;
    for (uint32_t i = first; i < first + count; i++)
        if (!block->threads[i].meeting) return true; /* one has ended: this is a deadlock, found by the caller */
    *moved = true;
    return exchange(block, first);
}

static bool meet(Block *block, bool *moved) {
    *moved = false;
    for (uint32_t first = 0; first < block->count; first += TILE_WARP_THREADS)
        if (!meet_warp(block, first, moved)) return false;
    if (*moved || !have_come(block, 0, block->count)) return true;
    for (uint32_t i = 0; i < block->count; i++) {
        TileExecutor *e = &block->threads[i];
        if (e->meeting && e->meeting->op->id != TILE_OP_BARRIER) return true;
        *moved |= e->meeting != NULL;
        e->meeting = NULL;
    }
    return true;
}

/* ---- the scheduler ---- */

static bool take_over(TileExecutor *host, const TileExecutor *thread) {
    host->state = thread->state;
    host->message = thread->message;
    return false;
}

static bool can_run(const TileExecutor *e) { return e->state == TILE_EXECUTION_PAUSED && !e->meeting; }

/* The thread that goes on, from a random one on where there is a seed; count when none can. */
static uint32_t choose(Block *block, uint32_t last) {
    uint32_t start = block->host->options.seed ? (uint32_t)(tile_exec_random(block->host) % block->count) : last;
    for (uint32_t i = 0; i < block->count; i++) {
        uint32_t thread = (start + i) % block->count;
        if (can_run(&block->threads[thread])) return thread;
    }
    return block->count;
}

static bool deadlock(Block *block) {
    for (uint32_t i = 0; i < block->count; i++) {
        TileExecutor *e = &block->threads[i];
        if (!e->meeting) continue;
        tile_exec_fault(e, e->meeting, "thread %u of block %lld waits here for ever", i, (long long)block->number);
        return take_over(block->host, e);
    }
    return true; /* all have ended */
}

static bool schedule(Block *block) {
    for (uint32_t last = 0;;) {
        uint32_t thread = choose(block, last);
        if (thread < block->count) {
            TileExecutor *e = &block->threads[thread];
            uint64_t steps = block->host->options.seed ? 1 + tile_exec_random(block->host) % 64 : UINT32_MAX;
            uint64_t before = e->steps;
            tile_exec_run(e, e->steps + steps);
            block->host->steps += e->steps - before;
            if (e->state != TILE_EXECUTION_DONE && e->state != TILE_EXECUTION_PAUSED) return take_over(block->host, e);
            last = thread;
            continue;
        }
        bool moved;
        if (!meet(block, &moved)) {
            for (uint32_t i = 0; i < block->count; i++)
                if (block->threads[i].state == TILE_EXECUTION_FAULT) return take_over(block->host, &block->threads[i]);
        }
        if (!moved) return deadlock(block);
    }
}

/* ---- one block ---- */

/* The parameters that the host has bound, and the objects that they lie in, by the same numbers. */
static bool start_thread(Block *block, uint32_t number, uint32_t shared) {
    TileExecutor *host = block->host, *e = &block->threads[number];
    const ExecProgram *program = block->phase->program;
    *e = (TileExecutor){.arena = host->arena,
                        .func = program->func,
                        .options = host->options,
                        .programs = host->programs,
                        .message = {.arena = host->arena},
                        .state = TILE_EXECUTION_PAUSED,
                        .started = true,
                        .thread = number,
                        .thread_count = block->count,
                        .block = block->number,
                        .block_count = block->blocks};
    e->objects = malloc(host->object_count * sizeof *e->objects);
    if (!e->objects) return tile_exec_out_of_memory(host);
    e->object_count = e->object_capacity = host->object_count;
    memcpy(e->objects, host->objects, host->object_count * sizeof *e->objects);
    for (size_t i = 0; i < e->object_count; i++) e->objects[i].owned = NULL;
    e->root = tile_exec_activate(e, (ExecProgram *)program);
    if (!e->root) return tile_exec_out_of_memory(host);
    uint32_t count = program->body.argument_count;
    for (uint32_t i = 0; i + 1 < count; i++)
        tile_exec_copy(tile_exec_register(block->phase, program->body.first_argument + i),
                       tile_exec_register(e->root, program->body.first_argument + i));
    ExecValue scratch = tile_exec_register(e->root, program->body.first_argument + count - 1);
    scratch.lanes[0] = shared;
    scratch.lanes[1] = 0;
    *scratch.any = 0;
    return tile_exec_push(e, &(ExecFrame){.activation = e->root, .code = &program->body, .active = 1}) != NULL ||
           tile_exec_out_of_memory(host);
}

static void end_thread(TileExecutor *e) {
    for (size_t i = e->root ? e->root->first_object : e->object_count; i < e->object_count; i++)
        free(e->objects[i].owned);
    for (size_t i = 0; i < e->depth; i++)
        if (e->frames[i].owner && e->frames[i].owner->op->id == TILE_OP_CALL) free(e->frames[i].activation);
    free(e->root);
    free(e->frames);
    free(e->objects);
    free(e->tensors);
    free(e->scratch);
}

static bool run_block(Block *block) {
    const TileFunc *func = block->phase->program->func;
    size_t first_object = block->host->object_count;
    uint32_t shared;
    if (!tile_exec_allocate(block->host, func->scratch_bytes, 1024, true, &shared)) return false;
    bool going = true;
    for (uint32_t i = 0; i < block->count; i++) block->threads[i] = (TileExecutor){0};
    for (uint32_t i = 0; i < block->count && going; i++) going = start_thread(block, i, shared);
    going = going && schedule(block);
    for (uint32_t i = 0; i < block->count; i++) end_thread(&block->threads[i]);
    tile_exec_release(block->host, first_object);
    block->host->object_count = first_object; /* nothing points to it any more */
    return going;
}

bool tile_exec_blocks(TileExecutor *e, const ExecInstruction *grid, const ExecActivation *phase, int64_t block_count) {
    const TileFunc *func = phase->program->func;
    uint32_t parameters = func->body.argument_count;
    if (!parameters || func->body.arguments[parameters - 1]->type->kind != TILE_TYPE_POINTER ||
        func->body.arguments[parameters - 1]->type->space != TILE_SPACE_SHARED)
        return tile_exec_fault(e, grid, "the last parameter of %s is not its shared memory", func->name);
    Block block = {.host = e, .grid = grid, .phase = phase, .count = func->threads, .blocks = block_count};
    block.threads = calloc(func->threads, sizeof *block.threads);
    if (!block.threads) return tile_exec_out_of_memory(e);
    bool going = true;
    for (int64_t i = 0; i < block_count && going; i++) {
        block.number = i;
        going = run_block(&block);
    }
    free(block.threads);
    return going;
}
