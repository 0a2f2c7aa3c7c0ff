/* Purpose: decide which ops warps of their own execute (`partition`), and which channels move together (`group`).
 * Copies by tensor maps belong to partition 1, whose warps have nothing else to do; all else belongs to partition 0.
 * Channels of one group carry the operands of one product: they are filled and emptied in turn, so that one wait is
 * enough for all.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %0 = channel {slots = 2} : channel<f16[64, 64], swizzle 128 panels>
 *       %1 = channel_acquire %0 : ptr<shared, f16[64, 64], swizzle 128 panels>
 *       copy_tile %a, %1, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range], types = [f16[64,
 *           64]], tensor_map = 1}
 *       channel_commit %1
 *       %2 = channel_wait %0 : ptr<shared, f16[64, 64], swizzle 128 panels>
 *       %x = shared_tile %2 : f16[64, 64]
 *       %s = dot %x, %x, %acc {instruction = wgmma} : f32[64, 64]
 *       %3 = dot_wait %s {pending = 0} : f32[64, 64]
 *       store_tile %c, %3, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       channel_release %2
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[64, 64]
 *       %0 = channel {slots = 2, group = 0} : channel<f16[64, 64], swizzle 128 panels>
 *       %1 = channel_acquire %0 {partition = 1} : ptr<shared, f16[64, 64], swizzle 128 panels>
 *       copy_tile %a, %1, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range], types = [f16[64,
 *           64]], tensor_map = 1, partition = 1}
 *       channel_commit %1 {partition = 1}
 *       %2 = channel_wait %0 : ptr<shared, f16[64, 64], swizzle 128 panels>
 *       %x = shared_tile %2 : f16[64, 64]
 *       %s = dot %x, %x, %acc {instruction = wgmma} : f32[64, 64]
 *       %3 = dot_wait %s {pending = 0} : f32[64, 64]
 *       store_tile %c, %3, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       channel_release %2
 *       return
 *     }
 * Needs: gpu-channels. Keeps: tile form. Cost: the square of the number of channels. */
#include "ptx/passes.h"
#include "ptx/pipeline/copies.h"
#include "ptx/target/map.h"

typedef TILE_LIST(TileOp *) Channels;

typedef struct Partitioning {
    TilePassContext *context;
    Channels channels; /* that tensor maps fill */
} Partitioning;

/* ---- channels ---- */

/* The only op that takes slots of the channel to fill them (or to read them); NULL: there are several. */
static TileOp *only_take(const TileOp *channel, TileOpId id) {
    TileOp *found = NULL;
    for (const TileUse *use = channel->results[0].first_use; use; use = use->next) {
        if (use->user->id != id) continue;
        if (found) return NULL;
        found = use->user;
    }
    return found;
}

/* Are all copies into the slot by tensor maps? */
static bool is_filled_by_maps(const TileOp *acquire) {
    bool any = false;
    for (const TileUse *use = acquire->results[0].first_use; use; use = use->next) {
        if (use->user->id != TILE_OP_COPY_TILE) continue;
        if (!gpu_by_map(use->user)) return false;
        any = true;
    }
    return any;
}

static void find_channel(TileOp *op, void *state) {
    Partitioning *p = state;
    const TileOp *acquire = op->id == TILE_OP_CHANNEL ? only_take(op, TILE_OP_CHANNEL_ACQUIRE) : NULL;
    if (acquire && only_take(op, TILE_OP_CHANNEL_WAIT) && is_filled_by_maps(acquire))
        tile_list_push(p->context->scratch, &p->channels, op);
}

static void set_partition(Partitioning *p, TileOp *acquire) {
    tile_op_set_integer(p->context->module, acquire, TILE_ATTRIBUTE_PARTITION, 1);
    for (TileUse *use = acquire->results[0].first_use; use; use = use->next)
        tile_op_set_integer(p->context->module, use->user, TILE_ATTRIBUTE_PARTITION, 1);
}

/* ---- groups ---- */

static bool is_behind_product(const TileOp *op) {
    while (op && op->id != TILE_OP_DOT) op = op->previous;
    return op;
}

/* Is what the op gives as large as what it takes, and part of what a product takes? What is computed behind another product, as weights are of scores and a
 * bias, is taken in an iteration of its own (gpu-dot-stages), and what it is computed of before. */
static bool passes_on(const TileOp *op) {
    bool computes = tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE || op->id == TILE_OP_FILL || op->id == TILE_OP_RESHAPE;
    return op->id == TILE_OP_PERMUTE || (computes && op->result_count == 1 && !is_behind_product(op));
}

static bool is_multiplied_by(const TileValue *value, const TileOp *dot) {
    for (const TileUse *use = value->first_use; use; use = use->next)
        if (use->user == dot || (passes_on(use->user) && is_multiplied_by(&use->user->results[0], dot)))
            return true;
    return false;
}

/* Does a product take the value together with the other one? */
static bool meet_in_product(const TileValue *value, const TileValue *other) {
    for (const TileUse *use = value->first_use; use; use = use->next) {
        const TileOp *user = use->user;
        bool passes = user->id == TILE_OP_SHARED_TILE || passes_on(user);
        if (passes && meet_in_product(&user->results[0], other)) return true;
        for (const TileUse *read = user->id == TILE_OP_DOT ? other->first_use : NULL; read; read = read->next)
            if (read->user->id == TILE_OP_SHARED_TILE && is_multiplied_by(&read->user->results[0], user)) return true;
    }
    return false;
}

static int64_t pending_of(const TileOp *take) {
    for (const TileUse *use = take->results[0].first_use; use; use = use->next)
        if (use->user->id == TILE_OP_CHANNEL_RELEASE) return tile_op_integer(use->user, TILE_ATTRIBUTE_PENDING, 0);
    return 0;
}

static bool move_together(const TileOp *channel, const TileOp *other) {
    const TileOp *fill = only_take(channel, TILE_OP_CHANNEL_ACQUIRE), *fill2 = only_take(other, TILE_OP_CHANNEL_ACQUIRE),
                 *read = only_take(channel, TILE_OP_CHANNEL_WAIT), *read2 = only_take(other, TILE_OP_CHANNEL_WAIT);
    return fill->block == fill2->block && read->block == read2->block &&
           tile_op_integer(channel, TILE_ATTRIBUTE_SLOTS, 1) == tile_op_integer(other, TILE_ATTRIBUTE_SLOTS, 1) &&
           pending_of(read) == pending_of(read2) && meet_in_product(&read->results[0], &read2->results[0]);
}

static void set_groups(Partitioning *p) {
    int64_t groups = 0;
    for (size_t i = 0; i < p->channels.count; i++) {
        TileOp *channel = p->channels.items[i];
        if (tile_op_get(channel, TILE_ATTRIBUTE_GROUP)) continue;
        tile_op_set_integer(p->context->module, channel, TILE_ATTRIBUTE_GROUP, groups);
        for (size_t k = i + 1; k < p->channels.count; k++)
            if (!tile_op_get(p->channels.items[k], TILE_ATTRIBUTE_GROUP) && move_together(channel, p->channels.items[k]))
                tile_op_set_integer(p->context->module, p->channels.items[k], TILE_ATTRIBUTE_GROUP, groups);
        groups++;
    }
}

TileResult tile_pass_gpu_partitions(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    Partitioning p = {.context = context};
    tile_block_walk(&func->body, find_channel, &p);
    if (!p.channels.count) return TILE_RESULT_UNCHANGED;
    for (size_t i = 0; i < p.channels.count; i++) set_partition(&p, only_take(p.channels.items[i], TILE_OP_CHANNEL_ACQUIRE));
    set_groups(&p);
    return TILE_RESULT_CHANGED;
}
