/* Partitions. In machine form a thread executes the region of its warp. In tile form, which has one thread, the two
 * regions are coroutines: one runs until it waits for a channel, or has ended, and then the other one. */
#include <stdlib.h>

#include "lang/execute/state.h"

/* ---- machine form ---- */

static bool enter_own(TileExecutor *e, const ExecInstruction *in) {
    const int64_t *warps = tile_op_get(in->op, TILE_ATTRIBUTE_WARPS)->integers;
    int64_t warp = tile_exec_own_thread(e) / TILE_WARP_THREADS;
    if (e->thread_count != (warps[0] + warps[1]) * TILE_WARP_THREADS)
        return tile_exec_fault(e, in, "the block has %u threads", e->thread_count);
    const ExecFrame *outer = tile_exec_frame(e);
    return tile_exec_push(e, &(ExecFrame){.activation = outer->activation,
                                          .code = &in->regions[warp >= warps[0]],
                                          .owner = in,
                                          .active = outer->active}) != NULL;
}

/* ---- tile form ---- */

static void swap(TileExecutor *e) {
    ExecPartition own = {.frames = e->frames,
                         .depth = e->depth,
                         .capacity = e->frame_capacity,
                         .base = e->other.own_base,
                         .own_base = e->other.base,
                         .is_first = !e->other.is_first};
    e->frames = e->other.frames;
    e->depth = e->other.depth;
    e->frame_capacity = e->other.capacity;
    e->other = own;
}

static bool has_ended(const ExecPartition *partition) { return partition->depth == partition->base; }

/* The second region's frames lie upon a copy of the frame around both. */
bool tile_exec_partitions(TileExecutor *e, const ExecInstruction *in) {
    ExecFrame outer = *tile_exec_frame(e);
    if (tile_op_func(in->op)->form == TILE_FORM_MACHINE) return enter_own(e, in);
    if (e->other.frames) return tile_exec_fault(e, in, "stands within a partition");
    e->turns = 0;
    e->in_turn = false;
    ExecFrame region = {.activation = outer.activation, .owner = in, .active = outer.active};
    e->other = (ExecPartition){.own_base = e->depth, .base = 1, .depth = 2, .capacity = 2};
    e->other.frames = calloc(e->other.capacity, sizeof *e->other.frames);
    if (!e->other.frames) return tile_exec_out_of_memory(e);
    e->other.frames[0] = e->other.frames[1] = region;
    e->other.frames[0].code = outer.code;
    e->other.frames[1].code = &in->regions[1];
    region.code = &in->regions[0];
    return tile_exec_push(e, &region) != NULL;
}

bool tile_exec_wait_for_partition(TileExecutor *e, const ExecInstruction *in, const char *why) {
    if (!e->other.frames || has_ended(&e->other) || e->other.waits)
        return tile_exec_fault(e, in, "waits for ever: %s", why);
    tile_exec_frame(e)->next--;
    swap(e);
    e->other.waits = true;
    return true;
}

/* With a seed the other one may go on at once. */
bool tile_exec_wake_partition(TileExecutor *e) {
    e->other.waits = false;
    bool changes = e->other.frames && !has_ended(&e->other) && e->options.seed && tile_exec_random(e) % 2;
    if (changes) swap(e);
    return true;
}

bool tile_exec_end_partition(TileExecutor *e) {
    e->depth--;
    if (!e->other.frames) return true; /* machine form */
    if (!has_ended(&e->other)) {
        swap(e);
        return true;
    }
    if (e->other.is_first) swap(e);
    tile_exec_free_partition(e);
    return true;
}

/* ---- turns ---- */

bool tile_exec_turn(TileExecutor *e, const ExecInstruction *in) {
    tile_exec_set_scalar(tile_exec_result(e, in), 1);
    return true;
}

static int64_t turns_around(const TileOp *op) {
    while (op && op->id != TILE_OP_PARTITIONS) op = op->block->op;
    return op ? tile_op_integer(op, TILE_ATTRIBUTE_TURNS, 1) : 1;
}

bool tile_exec_turn_begin(TileExecutor *e, const ExecInstruction *in) {
    int64_t place, expected = (int64_t)e->turns % (2 * turns_around(in->op));
    if (e->in_turn) return tile_exec_fault(e, in, "the turn before it has not ended");
    if (!tile_exec_integer(e, in, 0, "the place of a program", &place)) return false;
    if (place != expected)
        return tile_exec_fault(e, in, "place %lld is not the next one, which is %lld", (long long)place, (long long)expected);
    e->in_turn = true;
    return true;
}

bool tile_exec_turn_end(TileExecutor *e, const ExecInstruction *in) {
    if (!e->in_turn) return tile_exec_fault(e, in, "no turn has begun");
    e->in_turn = false;
    e->turns++;
    return true;
}

void tile_exec_free_partition(TileExecutor *e) {
    free(e->other.frames);
    e->other = (ExecPartition){0};
}
