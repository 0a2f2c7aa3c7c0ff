/* Purpose: let loads that have a latency go through channels. Each gets a channel in front of its loop, with a slot more
 * than iterations that its copy is begun ahead. The copy is as yet begun and waited for at one place: gpu-stages and
 * gpu-expand take its beginning ahead, by the latency, which the acquire has now.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out>
 *                          {noalias}, %begin: i64, %end: i64) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %sum = for %begin, %end, %n, %acc : f32[16, 16] (%k: i64, %acc.1: f32[16, 16]) {
 *         %x = load_tile %a, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range], latency = 3} : f16[16,
 *             16]
 *         %y = load_tile %b, %k, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range], latency = 3} : f16[16,
 *             16]
 *         %acc.2 = dot %x, %y, %acc.1 {instruction = mma} : f32[16, 16]
 *         yield %acc.2
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %b: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out>
 *                          {noalias}, %begin: i64, %end: i64) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %0 = channel {slots = 4} : channel<f16[16, 16], swizzle 32 rows>
 *       %1 = channel {slots = 4} : channel<f16[16, 16], swizzle 32 rows>
 *       %sum = for %begin, %end, %n, %acc : f32[16, 16] (%k: i64, %acc.1: f32[16, 16]) {
 *         %2 = channel_acquire %0 {latency = 3} : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         copy_tile %a, %2, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range], types = [f16[16,
 *             16]]}
 *         channel_commit %2
 *         %3 = channel_wait %0 : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         %x = shared_tile %3 : f16[16, 16]
 *         %4 = channel_acquire %1 {latency = 3} : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         copy_tile %b, %4, %k, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range], types = [f16[16,
 *             16]]}
 *         channel_commit %4
 *         %5 = channel_wait %1 : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         %y = shared_tile %5 : f16[16, 16]
 *         %acc.2 = dot %x, %y, %acc.1 {instruction = mma} : f32[16, 16]
 *         channel_release %3
 *         channel_release %5
 *         yield %acc.2
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Needs: gpu-latencies. Keeps: tile form. Cost: loads (at most 8 in a loop) times ops of the
 * loops' bodies. */
#include "lowering/each.h"
#include "ptx/passes.h"
#include "ptx/pipeline/copies.h"
#include "ptx/target/map.h"

/* A load that has not gone through a channel yet. Fills behind one go with it, so that each search begins anew. */
static TileOp *find_load(const TileBlock *body) {
    for (TileOp *op = body->first; op; op = op->next)
        if (op->id == TILE_OP_LOAD_TILE && tile_op_get(op, TILE_ATTRIBUTE_LATENCY)) return op;
    return NULL;
}

static bool try_loop(TilePassContext *context, TileOp *loop, const char **error) {
    TileBuilder b = tile_builder_before(context->module, loop);
    bool changed = false;
    for (TileOp *load; !b.error && (load = find_load(&loop->regions[0])) != NULL; changed = true) {
        int64_t slots = tile_op_integer(load, TILE_ATTRIBUTE_LATENCY, 0) + 1;
        gpu_load_through_channel(&b, load, gpu_build_channel(&b, load, slots));
    }
    if (b.error) *error = b.error;
    return changed;
}

/* ---- loads by maps that no loop has begun ahead ---- */

typedef struct Loads {
    TileArena *arena;
    TileOp **items;
    unsigned count, room;
} Loads;

static void add_load(TileOp *op, void *state) {
    Loads *loads = state;
    if (op->id != TILE_OP_LOAD_TILE || !gpu_by_map(op)) return;
    if (loads->count == loads->room) {
        unsigned room = loads->room ? 2 * loads->room : 16;
        TileOp **items = TILE_NEW_ARRAY(loads->arena, TileOp *, room);
        for (unsigned i = 0; i < loads->count; i++) items[i] = loads->items[i];
        loads->items = items;
        loads->room = room;
    }
    loads->items[loads->count++] = op;
}

/* Outside of loops, or in one that copies enough others ahead: their channels have one slot. They are listed first, since
 * the fills and reshapes behind a load go with it. */
static TileResult take_loads(TilePassContext *context, TileFunc *func) {
    Loads loads = {.arena = context->scratch};
    tile_block_walk(&func->body, add_load, &loads);
    for (unsigned i = 0; i < loads.count; i++) {
        TileBuilder b = tile_builder_before(context->module, loads.items[i]);
        gpu_load_through_channel(&b, loads.items[i], gpu_build_channel(&b, loads.items[i], 1));
        if (b.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-channels: %s", b.error);
    }
    return loads.count ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}

TileResult tile_pass_gpu_channels(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    TileResult loops = tile_try_each(context, func, TILE_OP_FOR, try_loop, "gpu-channels");
    if (loops == TILE_RESULT_FAILED) return loops;
    TileResult loads = take_loads(context, func);
    return loads == TILE_RESULT_UNCHANGED ? loops : loads;
}
