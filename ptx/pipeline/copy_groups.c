/* Purpose: lower channels to groups of asynchronous copies, which each thread counts, and barriers. A channel becomes a
 * buffer, and its slots parts of it. Adjacent commits close one group, adjacent waits become one wait. If a channel has
 * several slots, a barrier follows the wait: after it the copies of all threads are complete, and all threads have
 * released the slot of the iteration before, so an acquire needs no barrier. With a single slot gpu-barriers inserts
 * both barriers.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %end: i64) threads = 64
 *                          {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %acc = const {value = 0.0} : f32[16, 16]
 *       %channel = channel {slots = 2} : channel<f16[16, 16], swizzle 32 rows>
 *       %0 = const {value = 1} : i64
 *       %1 = const {value = 1} : i64
 *       %2 = const {value = 0} : i64
 *       for %2, %1, %0 (%3: i64) {
 *         %4 = const {value = 16} : i64
 *         %5 = mul %3, %4 : i64
 *         %6 = sub %end, %zero : i64
 *         %7 = bitcast %6 : u64
 *         %8 = bitcast %5 : u64
 *         %9 = gt %7, %8 : bool
 *         %10 = lt %zero, %end : bool
 *         %11 = and %10, %9 : bool
 *         %12 = add %zero, %5 : i64
 *         %free = channel_acquire %channel, %3 : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         if %11 {
 *           copy_tile %a, %free, %zero, %one, %zero, %n, %12, %one, %zero, %n {access = [range, range], types =
 *               [f16[16, 16]]}
 *           yield
 *         } {
 *           yield
 *         }
 *         channel_commit %free
 *         yield
 *       }
 *       %13 = const {value = 0} : i64
 *       %sum, %14 = for %zero, %end, %n, %acc, %13 : f32[16, 16], i64 (%k: i64, %acc.1: f32[16, 16], %15: i64) {
 *         %16 = const {value = 0} : i64
 *         %17 = const {value = 1} : i64
 *         %18 = const {value = 1} : i64
 *         %19 = sub %15, %18 : i64
 *         %20 = eq %15, %16 : bool
 *         %21 = select %20, %17, %19 : i64
 *         %22 = const {value = 1} : i64
 *         %23 = eq %15, %22 : bool
 *         %24 = const {value = 1} : i64
 *         %25 = add %15, %24 : i64
 *         %26 = const {value = 0} : i64
 *         %27 = select %23, %26, %25 : i64
 *         %full = channel_wait %channel, %15 {pending = 0} : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         %28 = const {value = 16} : i64
 *         %29 = sub %end, %k : i64
 *         %30 = bitcast %29 : u64
 *         %31 = bitcast %28 : u64
 *         %32 = gt %30, %31 : bool
 *         %33 = add %k, %28 : i64
 *         %free.1 = channel_acquire %channel, %21 {ahead = 1} : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         if %32 {ahead = 1} {
 *           copy_tile %a, %free.1, %zero, %one, %zero, %n, %33, %one, %zero, %n {access = [range, range], types =
 *               [f16[16, 16]]}
 *           yield
 *         } {
 *           yield
 *         }
 *         channel_commit %free.1 {ahead = 1}
 *         %x = shared_tile %full : f16[16, 16]
 *         %y = permute %x {axes = [1, 0]} : f16[16, 16]
 *         %acc.2 = dot %x, %y, %acc.1 {instruction = mma} : f32[16, 16]
 *         channel_release %full
 *         yield %acc.2, %27
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
 *       %0 = buffer {bytes = 1024, align = 128, slots = 2} : ptr<shared, f16[16, 16], swizzle 32 rows>
 *       %1 = const {value = 1} : i64
 *       %2 = const {value = 1} : i64
 *       %3 = const {value = 0} : i64
 *       for %3, %2, %1 (%4: i64) {
 *         %5 = const {value = 16} : i64
 *         %6 = mul %4, %5 : i64
 *         %7 = sub %end, %zero : i64
 *         %8 = bitcast %7 : u64
 *         %9 = bitcast %6 : u64
 *         %10 = gt %8, %9 : bool
 *         %11 = lt %zero, %end : bool
 *         %12 = and %11, %10 : bool
 *         %13 = add %zero, %6 : i64
 *         if %12 {
 *           %14 = const {value = 512} : i64
 *           %15 = mul %4, %14 : i64
 *           %16 = ptr_add %0, %15 : ptr<shared, f16[16, 16], swizzle 32 rows>
 *           copy_tile %a, %16, %zero, %one, %zero, %n, %13, %one, %zero, %n {access = [range, range], types = [f16[16,
 *               16]]}
 *           yield
 *         } {
 *           yield
 *         }
 *         copy_commit
 *         yield
 *       }
 *       %17 = const {value = 0} : i64
 *       %sum, %18 = for %zero, %end, %n, %acc, %17 : f32[16, 16], i64 (%k: i64, %acc.1: f32[16, 16], %19: i64) {
 *         %20 = const {value = 0} : i64
 *         %21 = const {value = 1} : i64
 *         %22 = const {value = 1} : i64
 *         %23 = sub %19, %22 : i64
 *         %24 = eq %19, %20 : bool
 *         %25 = select %24, %21, %23 : i64
 *         %26 = const {value = 1} : i64
 *         %27 = eq %19, %26 : bool
 *         %28 = const {value = 1} : i64
 *         %29 = add %19, %28 : i64
 *         %30 = const {value = 0} : i64
 *         %31 = select %27, %30, %29 : i64
 *         copy_wait {pending = 0}
 *         barrier
 *         %32 = const {value = 16} : i64
 *         %33 = sub %end, %k : i64
 *         %34 = bitcast %33 : u64
 *         %35 = bitcast %32 : u64
 *         %36 = gt %34, %35 : bool
 *         %37 = add %k, %32 : i64
 *         if %36 {ahead = 1} {
 *           %38 = const {value = 512} : i64
 *           %39 = mul %25, %38 : i64
 *           %40 = ptr_add %0, %39 : ptr<shared, f16[16, 16], swizzle 32 rows>
 *           copy_tile %a, %40, %zero, %one, %zero, %n, %37, %one, %zero, %n {access = [range, range], types = [f16[16,
 *               16]]}
 *           yield
 *         } {
 *           yield
 *         }
 *         copy_commit {ahead = 1}
 *         %41 = const {value = 512} : i64
 *         %42 = mul %19, %41 : i64
 *         %43 = ptr_add %0, %42 : ptr<shared, f16[16, 16], swizzle 32 rows>
 *         %x = shared_tile %43 : f16[16, 16]
 *         %y = permute %x {axes = [1, 0]} : f16[16, 16]
 *         %acc.2 = dot %x, %y, %acc.1 {instruction = mma} : f32[16, 16]
 *         yield %acc.2, %31
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Needs: gpu-expand, where loops have stages. Keeps: tile form. Cost: linear. */
#include "ptx/pipeline/copies.h"
#include "ptx/passes.h"

typedef struct Lowering {
    TilePassContext *context;
    const char *error;
} Lowering;

/* Is it an op of a channel between partitions, which gpu-machine lowers? */
static bool crosses(const TileOp *op) {
    const TileOp *take = op->operand_count ? tile_op_operand(op, 0)->op : NULL;
    if (op->id == TILE_OP_CHANNEL_COMMIT || op->id == TILE_OP_CHANNEL_RELEASE) op = take;
    if (op && op->id != TILE_OP_CHANNEL) op = op->operand_count ? tile_op_operand(op, 0)->op : NULL;
    return op && tile_op_get(op, TILE_ATTRIBUTE_GROUP);
}

/* The next op with effects. */
static TileOp *next_effect(TileOp *op) {
    do op = op->next;
    while (op && tile_op_is_pure(op));
    return op;
}

static void fail_of(Lowering *l, const TileBuilder *b) {
    if (b->error) l->error = b->error;
}

/* Replaces uses of a slot by its address. Slots without an index are the first one, since only one is in use at a
 * time. */
static void place_uses(Lowering *l, TileOp *take, TileValue *buffer) {
    while (take->results[0].first_use) {
        TileUse *use = take->results[0].first_use;
        TileBuilder b = tile_builder_before(l->context->module, use->user);
        TileValue *place = buffer;
        if (take->operand_count > 1) {
            TileValue *bytes = tile_build_i64(&b, gpu_shared_bytes(buffer->type));
            TileValue *offset = tile_build_binary(&b, TILE_OP_MUL, tile_op_operand(take, 1), bytes);
            place = tile_build_ptr_add(&b, buffer, offset);
        }
        fail_of(l, &b);
        if (!place) return;
        tile_op_set_operand(use->user, use->index, place);
    }
}

static void copy_ahead(Lowering *l, const TileOp *from, TileOp *to) {
    const TileAttribute *ahead = tile_op_get(from, TILE_ATTRIBUTE_AHEAD);
    if (ahead) tile_op_set(l->context->module, to, *ahead);
}

static void lower_commit(Lowering *l, TileOp *commit) {
    TileOp *next = next_effect(commit);
    if (tile_op_is(next, TILE_OP_CHANNEL_COMMIT)) return;
    TileBuilder b = tile_builder_before(l->context->module, commit);
    copy_ahead(l, commit, tile_build_op(&b, TILE_OP_COPY_COMMIT, NULL, 0, NULL, 0, NULL, 0));
    fail_of(l, &b);
}

/* The first of adjacent waits waits for all: no more groups may be pending than after any of them. */
static void lower_wait(Lowering *l, TileOp *wait) {
    TileOp *previous = wait->previous;
    while (previous && tile_op_is_pure(previous)) previous = previous->previous;
    if (tile_op_is(previous, TILE_OP_CHANNEL_WAIT)) return;
    int64_t pending = tile_op_integer(wait, TILE_ATTRIBUTE_PENDING, 0);
    bool circular = false;
    for (const TileOp *op = wait; tile_op_is(op, TILE_OP_CHANNEL_WAIT); op = next_effect((TileOp *)op)) {
        int64_t own = tile_op_integer(op, TILE_ATTRIBUTE_PENDING, 0);
        if (own < pending) pending = own;
        circular |= tile_op_integer(tile_op_operand(op, 0)->op, TILE_ATTRIBUTE_SLOTS, 1) > 1;
    }
    TileBuilder b = tile_builder_before(l->context->module, wait);
    gpu_build_wait(&b, pending);
    if (circular) gpu_build_plain(&b, TILE_OP_BARRIER);
    fail_of(l, &b);
}

/* Lowering inspects adjacent ops, so all of them stay until it is done. */
static void build_groups(Lowering *l, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_CHANNEL_COMMIT && !crosses(op)) lower_commit(l, op);
        if (op->id == TILE_OP_CHANNEL_WAIT && !crosses(op)) lower_wait(l, op);
        for (unsigned i = 0; i < op->region_count; i++) build_groups(l, &op->regions[i]);
    }
}

/* Erases commits and releases first, since they use the slots. */
static void erase_ends(TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) erase_ends(&op->regions[i]);
        bool ends = op->id == TILE_OP_CHANNEL_COMMIT || op->id == TILE_OP_CHANNEL_RELEASE;
        if (ends && !crosses(op)) tile_op_erase(op);
    }
}

static void lower_channel(Lowering *l, TileOp *channel) {
    TileBuilder b = tile_builder_before(l->context->module, channel);
    const TileType *type = tile_type_slot(l->context->module->context, channel->results[0].type);
    TileValue *buffer = gpu_build_buffer(&b, type, gpu_shared_bytes(type), GPU_TILE_ALIGN,
                                         tile_op_integer(channel, TILE_ATTRIBUTE_SLOTS, 1));
    fail_of(l, &b);
    while (channel->results[0].first_use && !l->error) {
        TileOp *take = channel->results[0].first_use->user;
        place_uses(l, take, buffer);
        tile_op_erase(take);
    }
    if (!l->error) tile_op_erase(channel);
}

typedef TILE_LIST(TileOp *) Channels;

typedef struct Search {
    TileArena *arena;
    Channels found;
} Search;

static void find_channel(TileOp *op, void *state) {
    Search *search = state;
    if (op->id == TILE_OP_CHANNEL && !crosses(op)) tile_list_push(search->arena, &search->found, op);
}

TileResult tile_pass_gpu_copy_groups(TilePassContext *context, TileFunc *func) {
    Lowering l = {context, NULL};
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    build_groups(&l, &func->body);
    erase_ends(&func->body);
    Search channels = {.arena = context->scratch};
    tile_block_walk(&func->body, find_channel, &channels);
    for (size_t i = 0; i < channels.found.count && !l.error; i++) lower_channel(&l, channels.found.items[i]);
    if (l.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-copy-groups: %s", l.error);
    return channels.found.count ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
