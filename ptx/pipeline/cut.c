/* Purpose: cut a function into partitions, which run at the same time. Partition 1 is a slice of the function: the ops
 * that have its number, and what they need, which are loops and scalars; partition 0 is all else. What crosses the cut
 * goes through channels, which the function's first ops make. Each partition counts the slots of a group of channels
 * that it has taken, up to twice the slots and from 0 again: this tells the slot and the parity of the round in the
 * ring without a division. The count is loop-carried, or yielded by branches, and an operand of each take.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %end: i64) threads =
 *                          128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %0 = channel {slots = 2, group = 0} : channel<f16[64, 64], swizzle 128 panels>
 *       %sum = for %zero, %end, %n, %acc : f32[64, 64] (%k: i64, %acc.1: f32[64, 64]) {
 *         %1 = channel_acquire %0 {latency = 1, partition = 1} : ptr<shared, f16[64, 64], swizzle 128 panels>
 *         copy_tile %a, %1, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range], types = [f16[64,
 *             64]], tensor_map = 1, partition = 1}
 *         channel_commit %1 {partition = 1}
 *         %2 = channel_wait %0 : ptr<shared, f16[64, 64], swizzle 128 panels>
 *         %x = shared_tile %2 : f16[64, 64]
 *         %s = dot %x, %x, %acc.1 {instruction = wgmma} : f32[64, 64]
 *         %3 = dot_wait %s {pending = 0} : f32[64, 64]
 *         channel_release %2
 *         yield %3
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %end: i64) threads =
 *                              128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %0 = channel {slots = 2, group = 0} : channel<f16[64, 64], swizzle 128 panels>
 *       partitions {warps = [4, 4]} {
 *         %1 = const {value = 0} : i64
 *         %sum, %2 = for %zero, %end, %n, %acc, %1 : f32[64, 64], i64 (%k: i64, %acc.1: f32[64, 64], %3: i64) {
 *           %4 = channel_wait %0, %3 : ptr<shared, f16[64, 64], swizzle 128 panels>
 *           %5 = const {value = 1} : i64
 *           %6 = add %3, %5 : i64
 *           %7 = const {value = 4} : i64
 *           %8 = eq %6, %7 : bool
 *           %9 = const {value = 0} : i64
 *           %10 = select %8, %9, %6 : i64
 *           %x = shared_tile %4 : f16[64, 64]
 *           %s = dot %x, %x, %acc.1 {instruction = wgmma} : f32[64, 64]
 *           %11 = dot_wait %s {pending = 0} : f32[64, 64]
 *           channel_release %4
 *           yield %11, %10
 *         }
 *         store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *         yield
 *       } {
 *         %12 = const {value = 0} : i64
 *         %13 = for %zero, %end, %n, %12 : i64 (%k.1: i64, %14: i64) {
 *           %15 = channel_acquire %0, %14 : ptr<shared, f16[64, 64], swizzle 128 panels>
 *           %16 = const {value = 1} : i64
 *           %17 = add %14, %16 : i64
 *           %18 = const {value = 4} : i64
 *           %19 = eq %17, %18 : bool
 *           %20 = const {value = 0} : i64
 *           %21 = select %19, %20, %17 : i64
 *           copy_tile %a, %15, %zero, %one, %zero, %n, %k.1, %one, %zero, %n {access = [range, range], types =
 *               [f16[64, 64]], tensor_map = 1}
 *           channel_commit %15
 *           yield %21
 *         }
 *         yield
 *       }
 *       return
 *     }
 * Needs: gpu-partitions. Keeps: tile form. Cost: linear, for each group of channels. */
#include "lang/ir/operands.h"
#include "lowering/dce.h"
#include "ptx/passes.h"
#include "ptx/pipeline/copies.h"
#include "ptx/pipeline/loop.h"

enum { COPYING_WARPS = 4 }; /* a warpgroup, since registers are handed over by warpgroups */

typedef TILE_LIST(TileOp *) Channels;

typedef struct Cut {
    TilePassContext *context;
    TileFunc *func;
    Channels channels;
    int64_t groups;
    const char *error;
} Cut;

static bool is_copying(const TileOp *op) { return tile_op_integer(op, TILE_ATTRIBUTE_PARTITION, 0) == 1; }

static void find_channel(TileOp *op, void *state) {
    Cut *cut = state;
    if (op->id != TILE_OP_CHANNEL || !tile_op_get(op, TILE_ATTRIBUTE_GROUP)) return;
    int64_t group = tile_op_integer(op, TILE_ATTRIBUTE_GROUP, 0);
    if (group >= cut->groups) cut->groups = group + 1;
    tile_list_push(cut->context->scratch, &cut->channels, op);
}

static int64_t group_of_take(const TileOp *op) {
    bool takes = op->id == TILE_OP_CHANNEL_ACQUIRE || op->id == TILE_OP_CHANNEL_WAIT;
    const TileOp *channel = takes ? tile_value_def(tile_op_operand(op, 0), TILE_OP_CHANNEL) : NULL;
    return channel ? tile_op_integer(channel, TILE_ATTRIBUTE_GROUP, -1) : -1;
}

/* ---- the two regions ---- */

enum { ANY_GROUP = -1 };

/* Does the op, or one in its regions, take a slot of the group? */
static bool has_takes(const TileOp *op, int64_t group) {
    int64_t own = group_of_take(op);
    if (own >= 0 && (group == ANY_GROUP || own == group)) return true;
    for (unsigned i = 0; i < op->region_count; i++)
        for (const TileOp *inner = op->regions[i].first; inner; inner = inner->next)
            if (has_takes(inner, group)) return true;
    return false;
}

static void end_region(Cut *cut, TileBlock *region) {
    TileBuilder b = tile_builder_at_end(cut->context->module, region);
    tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    if (b.error) cut->error = b.error;
}

/* From the first op with a take to the end of the function. */
static TileOp *build_partitions(Cut *cut) {
    TileOp *first = cut->func->body.first, *last = cut->func->body.last;
    while (!has_takes(first, ANY_GROUP)) first = first->next;
    TileBuilder b = tile_builder_before(cut->context->module, first);
    int64_t turns = cut->func->turns > 1 ? cut->func->turns : 1;
    int64_t warps[2] = {turns * cut->func->threads / TILE_WARP_THREADS, COPYING_WARPS};
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_WARPS, .count = 2, .integers = warps},
                                  {.key = TILE_ATTRIBUTE_TURNS, .integer = turns}};
    TileOp *partitions = tile_build_op(&b, TILE_OP_PARTITIONS, NULL, 0, attributes, turns > 1 ? 2 : 1, NULL, 0);
    if (!partitions) cut->error = b.error;
    for (TileOp *op = first, *next; partitions && op != last; op = next) {
        next = op->next;
        tile_op_detach(op);
        tile_op_append(op, &partitions->regions[0]);
    }
    return partitions;
}

static void clone_region(Cut *cut, TileOp *partitions) {
    TileMap map;
    tile_map_init(&map, cut->context->scratch);
    for (const TileOp *op = partitions->regions[0].first; op; op = op->next)
        tile_op_append(tile_op_clone(cut->context->module, op, &map), &partitions->regions[1]);
}

static void erase_copying(TileBlock *block) {
    for (TileOp *op = block->last, *previous; op; op = previous) {
        previous = op->previous;
        for (unsigned i = 0; i < op->region_count; i++) erase_copying(&op->regions[i]);
        if (is_copying(op)) tile_op_erase(op);
    }
}

static void clear_decisions(TileOp *op, void *state) {
    (void)state;
    tile_op_clear(op, TILE_ATTRIBUTE_PARTITION);
    tile_op_clear(op, TILE_ATTRIBUTE_LATENCY);
}

/* ---- tiles behind a loop ---- */

/* The most slots of a channel that the loop takes from; 0: it takes from none. */
static int64_t slots_of_loop(const TileOp *loop) {
    int64_t most = 0;
    for (const TileOp *op = loop->regions[0].first; op; op = op->next) {
        if (group_of_take(op) < 0) continue;
        int64_t slots = tile_op_integer(tile_op_operand(op, 0)->op, TILE_ATTRIBUTE_SLOTS, 1);
        if (slots > most) most = slots;
    }
    return most;
}

/* The last copy of a tile behind the loop, which is the last of its block; NULL: there is none. */
static TileOp *last_behind(const TileOp *loop) {
    TileOp *last = NULL;
    for (TileOp *op = loop->next; op; op = op->next) {
        if (op->region_count) return NULL;
        if (op->id == TILE_OP_CHANNEL_COMMIT) last = op;
    }
    return last;
}

/* What is computed with the sums of a loop comes while it runs: its copy begins behind one for each slot of the loop's, and one more. Its own slot is empty by then,
 * since whoever has read the first of the loop's tiles has read what was there for the program before. Where programs take turns another one's
 * warps may read it still, and copies of this one would wait for that. */
static bool begin_within(Cut *cut, TileOp *loop) {
    int64_t slots = slots_of_loop(loop);
    TileOp *last = last_behind(loop);
    if (!slots || !last || loop->result_count) return false;
    TileBuilder b = tile_builder_before(cut->context->module, loop);
    TileValue *begin = tile_op_named(loop, TILE_OPERAND_LO), *end = tile_op_named(loop, TILE_OPERAND_HI), *step = tile_op_named(loop, TILE_OPERAND_STEP);
    TileValue *some = tile_build_binary(&b, TILE_OP_MUL, step, tile_build_i64(&b, slots + 1));
    TileValue *middle = tile_build_binary(&b, TILE_OP_MIN, end, tile_build_binary(&b, TILE_OP_ADD, begin, some));
    TileMap map;
    tile_map_init(&map, cut->context->scratch);
    TileOp *rest = tile_op_clone(cut->context->module, loop, &map);
    tile_op_insert_before(rest, last->next);
    tile_op_set_operand(rest, 0, middle);
    tile_op_set_operand(loop, 1, middle);
    if (b.error) cut->error = b.error;
    return true;
}

static void begin_all_within(Cut *cut, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        if (op->id == TILE_OP_FOR && !tile_loop_is_of_programs(op) && begin_within(cut, op)) continue;
        for (unsigned i = 0; i < op->region_count; i++) begin_all_within(cut, &op->regions[i]);
    }
}

/* ---- counts ---- */

typedef struct Count {
    Cut *cut;
    int64_t group, slots;
    unsigned channels, taken; /* of the group; of these in the current round */
} Count;

static TileValue *count_takes(Count *count, TileBlock *block, TileValue *value);

/* Both regions yield their counts. */
static TileOp *count_branch(Count *count, TileOp *branch, TileValue *value) {
    TilePassContext *context = count->cut->context;
    TileOp *wider = gpu_branch_widen(context, branch, value->type);
    for (unsigned i = 0; i < 2; i++) {
        TileValue *end = count_takes(count, &wider->regions[i], value);
        tile_op_add_operand(context->module, wider->regions[i].last, end);
    }
    return wider;
}

/* Adds the count to the takes of the block, and returns the count after the block. */
static TileValue *count_takes(Count *count, TileBlock *block, TileValue *value) {
    TilePassContext *context = count->cut->context;
    for (TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_FOR && has_takes(op, count->group)) {
            op = gpu_loop_carry(context, op, &value, 1);
            TileBlock *body = &op->regions[0];
            TileValue *end = count_takes(count, body, body->arguments[body->argument_count - 1]);
            tile_op_add_operand(context->module, body->last, end);
            value = &op->results[op->result_count - 1];
        }
        if (op->id == TILE_OP_IF && has_takes(op, count->group)) {
            op = count_branch(count, op, value);
            value = &op->results[op->result_count - 1];
        }
        if (group_of_take(op) != count->group) continue;
        tile_op_add_operand(context->module, op, value);
        if (++count->taken < count->channels) continue;
        count->taken = 0;
        TileBuilder b = tile_builder_before(context->module, op->next);
        TileValue *next = tile_build_binary(&b, TILE_OP_ADD, value, tile_build_i64(&b, 1));
        TileValue *again = tile_build_binary(&b, TILE_OP_EQ, next, tile_build_i64(&b, 2 * count->slots));
        value = tile_build_ternary(&b, TILE_OP_SELECT, again, tile_build_i64(&b, 0), next);
        if (b.error) count->cut->error = b.error;
    }
    return value;
}

static void count_region(Cut *cut, TileBlock *region, int64_t group) {
    Count count = {.cut = cut, .group = group};
    for (size_t i = 0; i < cut->channels.count; i++) {
        const TileOp *channel = cut->channels.items[i];
        if (tile_op_integer(channel, TILE_ATTRIBUTE_GROUP, 0) != group) continue;
        count.channels++;
        count.slots = tile_op_integer(channel, TILE_ATTRIBUTE_SLOTS, 1);
    }
    TileBuilder b = tile_builder_before(cut->context->module, region->first);
    count_takes(&count, region, tile_build_i64(&b, 0));
}

TileResult tile_pass_gpu_cut(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    Cut cut = {.context = context, .func = func};
    tile_block_walk(&func->body, find_channel, &cut);
    if (!cut.channels.count) return TILE_RESULT_UNCHANGED;
    TileOp *partitions = build_partitions(&cut);
    if (!partitions) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-cut: %s", cut.error);
    for (size_t i = 0; i < cut.channels.count; i++) {
        tile_op_detach(cut.channels.items[i]);
        tile_op_insert_before(cut.channels.items[i], partitions);
    }
    clone_region(&cut, partitions);
    for (unsigned i = 0; i < 2; i++) end_region(&cut, &partitions->regions[i]);
    erase_copying(&partitions->regions[0]);
    tile_dce_slice(context, &partitions->regions[1], is_copying);
    tile_block_walk(&partitions->regions[1], clear_decisions, NULL);
    if (func->turns < 2) begin_all_within(&cut, &partitions->regions[1]);
    for (int64_t group = 0; group < cut.groups; group++)
        for (unsigned i = 0; i < 2; i++) count_region(&cut, &partitions->regions[i], group);
    if (cut.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-cut: %s", cut.error);
    return TILE_RESULT_CHANGED;
}
