/* Purpose: insert a barrier wherever threads of a block could race in shared memory: where one reads what another may
 * have written since the last barrier, or writes what another may still read. A barrier is inserted as late as
 * possible, and ahead of a loop if only the first iteration needs it. A block has one program (`one_program`), so no
 * access waits for those of another. Then buffers become addresses: no later pass distinguishes them.
 *
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %n: i64, %shared: ptr<shared>) threads = 64 {
 *       %0 = thread : i32
 *       %1 = convert %0 : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %bytes = const {value = 4} : i64
 *       %last = const {value = 63} : i64
 *       %from = mul %1, %bytes : i64
 *       %turned = sub %last, %1 : i64
 *       %to = mul %turned, %bytes : i64
 *       for %zero, %n, %one (%i: i64) {
 *         %place = buffer {offset = 0, bytes = 256, align = 16} : ptr<shared>
 *         %2 = ptr_add %x, %from : ptr<global>
 *         %v = load %2 : f32
 *         %3 = ptr_add %place, %from : ptr<shared>
 *         store %v, %3
 *         %4 = ptr_add %place, %to : ptr<shared>
 *         %w = load %4 : f32
 *         %5 = ptr_add %y, %from : ptr<global>
 *         store %w, %5
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %n: i64, %shared: ptr<shared>) threads = 64 {
 *       %0 = thread : i32
 *       %1 = convert %0 : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %bytes = const {value = 4} : i64
 *       %last = const {value = 63} : i64
 *       %from = mul %1, %bytes : i64
 *       %turned = sub %last, %1 : i64
 *       %to = mul %turned, %bytes : i64
 *       for %zero, %n, %one (%i: i64) {
 *         %2 = ptr_add %x, %from : ptr<global>
 *         %v = load %2 : f32
 *         %3 = ptr_add %shared, %from : ptr<shared>
 *         barrier
 *         store %v, %3
 *         %4 = ptr_add %shared, %to : ptr<shared>
 *         barrier
 *         %w = load %4 : f32
 *         %5 = ptr_add %y, %from : ptr<global>
 *         store %w, %5
 *         yield
 *       }
 *       return
 *     }
 * A buffer with `slots` is a ring: the slot that is read is never the slot that is written, and existing barriers order
 * the two, so a read waits for no write of the ring. A write waits for earlier reads as in any buffer.
 *
 * Needs: gpu-shared; no pass in between moves loads or stores, which are not ordered among threads without barriers.
 * Buffers without `offset` overlap with no other and stay buffers. Between two barriers no two threads write the same
 * byte of a buffer. A `divergent` op reads nothing that it writes. Keeps: machine form, existing barriers. Cost: linear
 * in the ops, times the depth of loops. */
#include "lang/ir/build.h"
#include "ptx/lowering/buffers.h"
#include "ptx/passes.h"

typedef struct Barriers {
    TilePassContext *context;
    GpuBuffers buffers;
    bool changed;
    const TileOp *divergent; /* the divergent op around the current op; NULL: none */
    const TileOp *broken;    /* a divergent op that would need a barrier inside; NULL: none */
    const char *error;
    int64_t part;    /* threads of a program, where programs take turns */
    TileValue *turn; /* i64: of the thread's program; NULL: nobody asked */
} Barriers;

/* ---- what is pending ---- */

/* Is the op a barrier or wait? It updates what is pending. */
static bool orders(const Barriers *p, const TileOp *op, GpuPending *pending) {
    if (tile_op_is_block_barrier(op)) {
        gpu_pending_barrier(&p->buffers, pending);
        return true;
    }
    if (gpu_is_warpgroup_barrier(op)) {
        gpu_pending_apart(&p->buffers, pending);
        return true;
    }
    if (op->id != TILE_OP_COPY_WAIT || tile_op_integer(op, TILE_ATTRIBUTE_PENDING, 0) != 0) return false;
    gpu_set_join(&p->buffers, pending->written, pending->copied);
    gpu_set_clear(&p->buffers, pending->copied);
    return true;
}

/* Does any op of the block need a barrier because of what was pending before the block? Accesses of the block itself
 * are not added. */
static bool needs_barrier(const Barriers *p, const TileBlock *block, GpuPending *pending) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (orders(p, op, pending)) continue;
        for (unsigned i = 0; i < op->region_count; i++) {
            GpuPending inner = gpu_pending_copy(&p->buffers, pending);
            if (needs_barrier(p, &op->regions[i], &inner)) return true;
            gpu_pending_join(&p->buffers, pending, &inner);
        }
        if (gpu_needs_barrier(&p->buffers, op, pending)) return true;
    }
    return false;
}

/* ---- placing ---- */

static void place_in_block(Barriers *p, TileBlock *block, GpuPending *pending);

static void build_barrier(Barriers *p, TileOp *before, GpuPending *pending) {
    if (p->divergent) p->broken = p->divergent;
    if (p->broken) return;
    TileBuilder b = tile_builder_before(p->context->module, before);
    b.location = before->location;
    tile_build_op(&b, TILE_OP_BARRIER, NULL, 0, NULL, 0, NULL, 0);
    if (b.error) p->error = b.error;
    p->changed = true;
    gpu_pending_barrier(&p->buffers, pending);
}

/* In a divergent op, where a barrier is impossible: it is inserted before the op or not at all. */
static void place_before_divergent(Barriers *p, TileOp *op, GpuPending *pending) {
    bool needs = false;
    for (unsigned i = 0; i < op->region_count; i++) {
        GpuPending entry = gpu_pending_copy(&p->buffers, pending);
        needs |= needs_barrier(p, &op->regions[i], &entry);
    }
    if (needs) build_barrier(p, op, pending);
    const TileOp *outer = p->divergent;
    p->divergent = op;
    for (unsigned i = 0; i < op->region_count; i++) {
        GpuPending own = gpu_pending_create(&p->buffers);
        place_in_block(p, &op->regions[i], &own);
        gpu_pending_join(&p->buffers, pending, &own);
    }
    p->divergent = outer;
}

/* If all branches would begin with a barrier, it is inserted before them. A single region may be left out. */
static void place_in_branches(Barriers *p, TileOp *op, GpuPending *pending) {
    unsigned needing = 0;
    for (unsigned i = 0; i < op->region_count; i++) {
        GpuPending entry = gpu_pending_copy(&p->buffers, pending);
        needing += needs_barrier(p, &op->regions[i], &entry);
    }
    if (needing == op->region_count) build_barrier(p, op, pending);
    GpuPending end = op->region_count == 1 ? gpu_pending_copy(&p->buffers, pending) : gpu_pending_create(&p->buffers);
    for (unsigned i = 0; i < op->region_count; i++) {
        GpuPending own = gpu_pending_copy(&p->buffers, pending);
        place_in_block(p, &op->regions[i], &own);
        gpu_pending_join(&p->buffers, &end, &own);
    }
    *pending = end;
}

/* First the barriers between iterations, up to a fixpoint of what is pending. A barrier that is needed only because
 * of accesses before the loop is inserted ahead of it. The trip count may be 0. */
static void place_in_loop(Barriers *p, TileOp *op, GpuPending *pending) {
    GpuPending iterations = gpu_pending_create(&p->buffers);
    for (bool grown = true; grown;) {
        GpuPending iteration = gpu_pending_copy(&p->buffers, &iterations);
        grown = false;
        for (unsigned i = 0; i < op->region_count; i++) {
            place_in_block(p, &op->regions[i], &iteration);
            grown |= gpu_pending_join(&p->buffers, &iterations, &iteration);
        }
    }
    bool needs = false;
    GpuPending entry = gpu_pending_copy(&p->buffers, pending);
    for (unsigned i = 0; i < op->region_count; i++) needs |= needs_barrier(p, &op->regions[i], &entry);
    if (needs) build_barrier(p, op, pending);
    gpu_pending_join(&p->buffers, pending, &iterations);
}

static void place_in_block(Barriers *p, TileBlock *block, GpuPending *pending) {
    for (TileOp *op = block->first; op; op = op->next) {
        if (orders(p, op, pending)) continue;
        if (op->region_count) {
            if (tile_op_integer(op, TILE_ATTRIBUTE_DIVERGENT, 0))
                place_before_divergent(p, op, pending);
            else if (!gpu_repeats(op))
                place_in_branches(p, op, pending);
            else
                place_in_loop(p, op, pending);
            continue;
        }
        if (gpu_needs_barrier(&p->buffers, op, pending)) build_barrier(p, op, pending);
        gpu_pending_add(&p->buffers, op, pending);
    }
}

/* ---- partitions ---- */

typedef struct Partition {
    TileModule *module;
    int64_t number, threads, turns;
} Partition;

static void name_barrier(TileOp *op, void *state) {
    const Partition *partition = state;
    if (op->id != TILE_OP_BARRIER || tile_op_get(op, TILE_ATTRIBUTE_NUMBER)) return;
    tile_op_set_integer(partition->module, op, TILE_ATTRIBUTE_NUMBER, partition->number);
    tile_op_set_integer(partition->module, op, TILE_ATTRIBUTE_THREADS, partition->threads / partition->turns);
    if (partition->turns > 1) tile_op_set_integer(partition->module, op, TILE_ATTRIBUTE_TURNS, partition->turns);
}

/* Threads of other partitions, or of programs that take turns with this one, do not come to the barriers of one. */
static void name_barriers(TileOp *op, void *state) {
    Barriers *p = state;
    if (op->id != TILE_OP_PARTITIONS) return;
    const int64_t *warps = tile_op_get(op, TILE_ATTRIBUTE_WARPS)->integers;
    int64_t turns = tile_op_integer(op, TILE_ATTRIBUTE_TURNS, 1);
    Partition first = {p->context->module, 1, warps[0] * TILE_WARP_THREADS, turns},
              second = {p->context->module, 1 + turns, warps[1] * TILE_WARP_THREADS, 1};
    p->part = first.threads / turns;
    tile_block_walk(&op->regions[0], name_barrier, &first);
    tile_block_walk(&op->regions[1], name_barrier, &second);
}

/* ---- addresses ---- */

/* Where the buffer's part of the programs that take turns begins. */
static TileValue *own_part(Barriers *p, TileBuilder *b, const TileOp *op, TileValue *address) {
    int64_t turns = tile_op_integer(op, TILE_ATTRIBUTE_TURNS, 1), stride = tile_op_integer(op, TILE_ATTRIBUTE_STRIDE, 0);
    if (turns < 2) return address;
    if (!p->turn) {
        TileValue *thread = tile_op_result(tile_build_op(b, TILE_OP_THREAD, NULL, 0, NULL, 0, NULL, 1), 0);
        p->turn = tile_build_binary(b, TILE_OP_DIV, tile_build_convert(b, thread, TILE_I64), tile_build_i64(b, p->part));
    }
    return tile_build_ptr_add(b, address, tile_build_binary(b, TILE_OP_MUL, p->turn, tile_build_i64(b, stride)));
}

/* Replaces buffers by addresses, each computed once at the start of the function. */
static void replace_buffers(Barriers *p, TileFunc *func) {
    TileValue *shared = func->body.arguments[func->body.argument_count - 1];
    TileBuilder b = tile_builder_before(p->context->module, func->body.first);
    size_t count = p->buffers.ops.count;
    TileValue **addresses = TILE_NEW_ARRAY(p->context->scratch, TileValue *, count);
    int64_t *offsets = TILE_NEW_ARRAY(p->context->scratch, int64_t, count);
    for (size_t i = 0; i < count; i++) {
        TileOp *op = p->buffers.ops.items[i];
        offsets[i] = tile_op_integer(op, TILE_ATTRIBUTE_OFFSET, -1);
        if (offsets[i] < 0) continue;
        addresses[i] = offsets[i] ? NULL : shared;
        for (size_t k = 0; k < i && !addresses[i]; k++)
            if (offsets[k] == offsets[i]) addresses[i] = addresses[k];
        if (!addresses[i]) addresses[i] = tile_build_ptr_add(&b, shared, tile_build_i64(&b, offsets[i]));
        tile_value_replace(&op->results[0], own_part(p, &b, op, addresses[i]));
        p->changed = true;
    }
    for (size_t i = 0; i < count; i++) /* not earlier: addresses are built in front of the first buffer */
        if (addresses[i]) tile_op_erase(p->buffers.ops.items[i]);
    if (b.error) p->error = b.error;
}

TileResult tile_pass_gpu_barriers(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !func->threads) return TILE_RESULT_UNCHANGED;
    Barriers p = {.context = context, .buffers = gpu_find_buffers(func, context->scratch)};
    if (!p.buffers.ops.count) return TILE_RESULT_UNCHANGED;
    if (p.buffers.carried)
        return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-barriers: a place in shared memory is carried");
    GpuPending pending = gpu_pending_create(&p.buffers);
    place_in_block(&p, &func->body, &pending);
    tile_block_walk(&func->body, name_barriers, &p);
    replace_buffers(&p, func);
    if (p.broken) return tile_pass_fail(context, TILE_INTERNAL, p.broken, "gpu-barriers: threads would part in it");
    if (p.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-barriers: %s", p.error);
    return p.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
