/* Purpose: decide which ops of a loop run ahead of the others. Copies into a channel belong to stage 0, all else to the
 * last stage, which comes as many trips later as the channel has slots but one: while the products of a trip run,
 * copies of the next trips are under way. In a trip of the staged loop the slot that is read is waited for first, since
 * who waits for it knows that the slot of the trip before is free; then its copies are begun, then all else comes.
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
 *         %free = channel_acquire %channel : ptr<shared, f16[16, 16], swizzle 32 rows>
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
 * Needs: gpu-channels. Keeps: tile form. Cost: linear. */
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

/* A slot that an op of the body acquires in a channel from outside of the loop, NULL otherwise. */
static const TileOp *find_channel(const TileOp *op, const TileOp *loop) {
    bool takes = op->id == TILE_OP_CHANNEL_ACQUIRE || op->id == TILE_OP_CHANNEL_WAIT;
    const TileOp *channel = takes ? tile_value_def(tile_op_operand(op, 0), TILE_OP_CHANNEL) : NULL;
    return channel && tile_value_outside(&channel->results[0], loop) ? channel : NULL;
}

static int64_t find_last_stage(const TileOp *loop) {
    int64_t last = 0;
    for (const TileOp *op = loop->regions[0].first; op; op = op->next) {
        const TileOp *channel = find_channel(op, loop);
        int64_t ahead = channel ? tile_op_integer(channel, TILE_ATTRIBUTE_SLOTS, 1) - 1 : 0;
        if (channel && (!last || ahead < last)) last = ahead;
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
        if (!find_channel(op, loop)) continue;
        if (op->id == TILE_OP_CHANNEL_ACQUIRE)
            stage_acquire(&s, op);
        else
            set_stage(&s, op, s.last, CLUSTER_WAIT);
    }
    return true;
}

TileResult tile_pass_gpu_stages(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    return tile_try_each(context, func, TILE_OP_FOR, try_loop, "gpu-stages");
}
