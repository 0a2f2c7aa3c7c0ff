/* Purpose: decide which ops of a loop run ahead of the others. Copies into a channel belong to stage 0, all else to the
 * last stage, which comes as many iterations later as the copies' latency says: while the products of an iteration run,
 * copies of the next ones are under way. In an iteration of the staged loop the slot that is read is waited for first,
 * since who waits for it knows that the slot of the iteration before is free; then its copies are begun, then all else
 * comes.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %end: i64) threads = 64
 *                          {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %channel = channel {slots = 2} : channel<f16[16, 16], swizzle 32 rows>
 *       %sum = for %zero, %end, %n, %acc : f32[16, 16] (%k: i64, %acc.1: f32[16, 16]) {
 *         %free = channel_acquire %channel {latency = 1} : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         copy_tile %a, %free, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range], types = [f16[16,
 *             16]]}
 *         channel_commit %free
 *         %full = channel_wait %channel : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         %x = shared_tile %full : f16[16, 16]
 *         %y = permute %x {axes = [1, 0]} : f16[16, 16]
 *         %acc.2 = dot %x, %y, %acc.1 {instruction = mma} : f32[16, 16]
 *         channel_release %full
 *         yield %acc.2
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %end: i64) threads = 64
 *                          {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %channel = channel {slots = 2} : channel<f16[16, 16], swizzle 32 rows>
 *       %sum = for %zero, %end, %n, %acc : f32[16, 16] (%k: i64, %acc.1: f32[16, 16]) {
 *         %free = channel_acquire %channel {stage = 0, cluster = 1} : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         copy_tile %a, %free, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range], types = [f16[16,
 *             16]], stage = 0, cluster = 2}
 *         channel_commit %free {stage = 0, cluster = 3}
 *         %full = channel_wait %channel {stage = 1, cluster = 0} : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         %x = shared_tile %full : f16[16, 16]
 *         %y = permute %x {axes = [1, 0]} : f16[16, 16]
 *         %acc.2 = dot %x, %y, %acc.1 {instruction = mma} : f32[16, 16]
 *         channel_release %full
 *         yield %acc.2
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Ops that have no effect get no stage: they are computed wherever they are needed.
 *
 * Needs: gpu-channels; one latency for all copies of a loop. Keeps: tile form. Cost: linear. */
#include "lang/ir/build.h"
#include "lowering/each.h"
#include "ptx/passes.h"

/* In an iteration of the pipelined loop, from the first to the last. */
enum { CLUSTER_WAIT, CLUSTER_ACQUIRE, CLUSTER_COPY, CLUSTER_COMMIT };

typedef struct Staged {
    TilePassContext *context;
    TileOp *loop;
    int64_t last; /* stage; 0: there is none ahead of it */
} Staged;

/* The channel, from outside of the loop, that an op of the body acquires a slot of or waits for, NULL otherwise. */
static const TileValue *channel_of(const TileOp *op, const TileOp *loop) {
    bool takes = op->id == TILE_OP_CHANNEL_ACQUIRE || op->id == TILE_OP_CHANNEL_WAIT;
    return takes && tile_value_outside(tile_op_operand(op, 0), loop) ? tile_op_operand(op, 0) : NULL;
}

/* By how many iterations copies into the channel may be begun ahead; 0: by none. */
static int64_t latency_of(const TileValue *channel) {
    int64_t latency = 0;
    for (const TileUse *use = channel->first_use; use && !latency; use = use->next)
        latency = tile_op_integer(use->user, TILE_ATTRIBUTE_LATENCY, 0);
    return latency;
}

/* The least latency: all copies are begun in one stage. */
static int64_t find_last_stage(const TileOp *loop) {
    int64_t last = 0;
    for (const TileOp *op = loop->regions[0].first; op; op = op->next) {
        const TileValue *channel = channel_of(op, loop);
        int64_t latency = channel ? latency_of(channel) : 0;
        if (latency && (!last || latency < last)) last = latency;
    }
    return last;
}

static void set_stage(Staged *s, TileOp *op, int64_t stage, int64_t cluster) {
    tile_op_set_integer(s->context->module, op, TILE_ATTRIBUTE_STAGE, stage);
    tile_op_set_integer(s->context->module, op, TILE_ATTRIBUTE_CLUSTER, cluster);
}

static void stage_acquire(Staged *s, TileOp *acquire) {
    set_stage(s, acquire, 0, CLUSTER_ACQUIRE);
    for (TileUse *use = acquire->results[0].first_use; use; use = use->next)
        set_stage(s, use->user, 0, use->user->id == TILE_OP_CHANNEL_COMMIT ? CLUSTER_COMMIT : CLUSTER_COPY);
}

static bool try_loop(TilePassContext *context, TileOp *loop, const char **error) {
    (void)error;
    Staged s = {context, loop, find_last_stage(loop)};
    if (!s.last) return false;
    for (TileOp *op = loop->regions[0].first; op; op = op->next) {
        const TileValue *channel = channel_of(op, loop);
        if (!channel || !latency_of(channel)) continue;
        if (op->id == TILE_OP_CHANNEL_ACQUIRE)
            stage_acquire(&s, op);
        else
            set_stage(&s, op, s.last, CLUSTER_WAIT);
    }
    for (TileOp *op = loop->regions[0].first; op; op = op->next)
        if (op->id == TILE_OP_CHANNEL_ACQUIRE) tile_op_clear(op, TILE_ATTRIBUTE_LATENCY);
    return true;
}

TileResult tile_pass_gpu_stages(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    return tile_try_each(context, func, TILE_OP_FOR, try_loop, "gpu-stages");
}
