/* Purpose: give each buffer of shared memory its place. A buffer is in use from its op to its last use in the block of
 * ops where it stands; those in use at one time lie apart. Buffers that follow one another lie apart as well, as far as
 * there is room, since a thread that writes the one while others still read the other would have to wait for them:
 * there is room where no block more would fit on a multiprocessor if they shared. The largest come first, each to the
 * lowest bytes that are free for it.
 *
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %shared: ptr<shared>) threads = 64 {
 *       %a = buffer {bytes = 512, align = 16} : ptr<shared>
 *       %0 = const {value = 1.0} : f32
 *       store %0, %a
 *       %1 = load %a : f32
 *       %b = buffer {bytes = 256, align = 16} : ptr<shared>
 *       store %1, %b
 *       %2 = load %b : f32
 *       %c = buffer {bytes = 1024, align = 1024} : ptr<shared>
 *       store %2, %c
 *       %3 = load %c : f32
 *       store %3, %x
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %shared: ptr<shared>) threads = 64 scratch_bytes = 1280 {
 *       %a = buffer {offset = 0, bytes = 512, align = 16} : ptr<shared>
 *       %0 = const {value = 1.0} : f32
 *       store %0, %a
 *       %1 = load %a : f32
 *       %b = buffer {offset = 1024, bytes = 256, align = 16} : ptr<shared>
 *       store %1, %b
 *       %2 = load %b : f32
 *       %c = buffer {offset = 0, bytes = 1024, align = 1024} : ptr<shared>
 *       store %2, %c
 *       %3 = load %c : f32
 *       store %3, %x
 *       return
 *     }
 * Needs: gpu-machine. Copies into a buffer have arrived by its last use. What scratch_bytes holds already stays where
 * it is. Keeps: machine form. Cost: linear in the ops, times the depth of loops; quadratic in the buffers. */
#include "ptx/buffers.h"
#include "ptx/passes.h"
#include "ptx/target.h"

enum { PLACE_ALIGN = 16 };

typedef struct Shared {
    GpuBuffers buffers;
    const TileOp **last; /* of each buffer: the op of its block in or behind which nothing uses it */
    GpuSet live;
    GpuSet *together, *following; /* of each buffer: those in use at the same time, and those with no barrier between */
    uint64_t *offset;
    uint64_t bytes; /* of all */
    bool passing;   /* a turn of a loop before which more may be pending than is known yet */
} Shared;

/* ---- who meets whom ---- */

/* The op itself, or the one that it stands in, among the ops of the block. */
static const TileOp *op_of_block(const TileOp *op, const TileBlock *block) {
    while (op->block != block) op = op->block->op;
    return op;
}

/* Called in order, so that the last use stays. */
static void note_uses(TileOp *op, void *state) {
    Shared *s = state;
    for (unsigned i = 0; i < op->operand_count; i++) {
        int64_t number = gpu_buffer_of(&s->buffers, tile_op_operand(op, i));
        if (number >= 0) s->last[number] = op_of_block(op, s->buffers.ops.items[number]->block);
    }
}

static void pair(GpuSet *sets, size_t a, size_t b) {
    gpu_set_add(sets[a], b);
    gpu_set_add(sets[b], a);
}

static void write_buffer(Shared *s, size_t number, const GpuPending *pending) {
    for (size_t i = 0; i < s->buffers.ops.count; i++) {
        if (i == number || s->passing) continue;
        if (gpu_set_has(s->live, i)) pair(s->together, i, number);
        if (gpu_set_has(pending->read, i) || gpu_set_has(pending->written, i) || gpu_set_has(pending->copied, i))
            pair(s->following, i, number);
    }
}

static void end_uses(Shared *s, const TileOp *op) {
    for (size_t i = 0; i < s->buffers.ops.count; i++)
        if (s->last[i] == op) gpu_set_remove(s->live, i);
}

static void visit_block(Shared *s, const TileBlock *block, GpuPending *pending);

/* True where another turn of the loop would begin with more. */
static bool visit_regions(Shared *s, const TileOp *op, GpuPending *pending) {
    GpuPending entry = gpu_pending_copy(&s->buffers, pending);
    bool grown = false;
    for (unsigned i = 0; i < op->region_count; i++) {
        GpuPending own = gpu_pending_copy(&s->buffers, op->id == TILE_OP_IF ? &entry : pending);
        visit_block(s, &op->regions[i], &own);
        grown |= gpu_pending_join(&s->buffers, pending, &own);
    }
    return grown && op->id != TILE_OP_IF;
}

static void visit_control(Shared *s, const TileOp *op, GpuPending *pending) {
    bool outer = s->passing;
    s->passing = op->id != TILE_OP_IF || outer;
    while (op->id != TILE_OP_IF && visit_regions(s, op, pending)) {
    }
    s->passing = outer;
    visit_regions(s, op, pending);
}

/* Where an access waits for others of the same buffer a barrier will stand. */
static void visit_block(Shared *s, const TileBlock *block, GpuPending *pending) {
    for (const TileOp *op = block->first; op; op = op->next) {
        size_t number;
        if (op->region_count) visit_control(s, op, pending);
        if (op->id == TILE_OP_BARRIER || gpu_waits(&s->buffers, op, pending)) gpu_pending_meet(&s->buffers, pending);
        if (op->result_count && tile_map_get(&s->buffers.numbers, op))
            gpu_set_add(s->live, (size_t)gpu_buffer_of(&s->buffers, &op->results[0]));
        GpuReach reach = gpu_reach(&s->buffers, op, &number);
        if (reach == GPU_REACH_WRITE || reach == GPU_REACH_COPY) write_buffer(s, number, pending);
        gpu_pending_add(&s->buffers, op, pending);
        end_uses(s, op);
    }
}

/* ---- places ---- */

static uint64_t bytes_of(const Shared *s, size_t number) {
    return (uint64_t)tile_op_integer(s->buffers.ops.items[number], TILE_ATTRIBUTE_BYTES, 0);
}

static uint64_t round_up(uint64_t bytes, uint64_t align) { return (bytes + align - 1) / align * align; }

/* The lowest bytes from `from` on that none has that is placed and among `apart`. */
static uint64_t find_bytes(const Shared *s, size_t number, const uint64_t *placed, const uint64_t *apart,
                           uint64_t from) {
    uint64_t align = (uint64_t)tile_op_integer(s->buffers.ops.items[number], TILE_ATTRIBUTE_ALIGN, PLACE_ALIGN);
    if (align < PLACE_ALIGN) align = PLACE_ALIGN;
    uint64_t at = round_up(from, align);
    for (size_t i = 0; i < s->buffers.ops.count;) {
        uint64_t end = s->offset[i] + bytes_of(s, i);
        bool meets = gpu_set_has(placed, i) && at < end && s->offset[i] < at + bytes_of(s, number);
        if (meets && gpu_set_has(apart, i)) {
            at = round_up(end, align);
            i = 0;
        } else {
            i++;
        }
    }
    return at;
}

/* Those that follow one another lie apart as far as `room` lasts. */
static void place_buffers(Shared *s, uint64_t from, uint64_t room) {
    GpuSet placed = gpu_set_create(&s->buffers), apart = gpu_set_create(&s->buffers);
    size_t count = s->buffers.ops.count;
    s->bytes = from;
    for (size_t i = 0; i < count; i++) {
        size_t next = count;
        for (size_t k = 0; k < count; k++)
            if (!gpu_set_has(placed, k) && (next == count || bytes_of(s, k) > bytes_of(s, next))) next = k;
        gpu_set_clear(&s->buffers, apart);
        gpu_set_join(&s->buffers, apart, s->together[next]);
        gpu_set_join(&s->buffers, apart, s->following[next]);
        uint64_t at = find_bytes(s, next, placed, apart, from);
        if (at + bytes_of(s, next) > room) at = find_bytes(s, next, placed, s->together[next], from);
        s->offset[next] = at;
        if (at + bytes_of(s, next) > s->bytes) s->bytes = at + bytes_of(s, next);
        gpu_set_add(placed, next);
    }
}

/* The most with which as many blocks fit on a multiprocessor as with so many bytes, and as have threads there. */
static uint64_t room_beside(const TilePassContext *context, const TileFunc *func, uint64_t bytes) {
    const TilePtxTarget *target = tile_ptx_target_of(context->target);
    uint64_t blocks = target->shared_core_bytes / (bytes + target->shared_reserved_bytes);
    if (blocks > target->blocks_core) blocks = target->blocks_core;
    if (blocks > target->threads_core / func->threads) blocks = target->threads_core / func->threads;
    uint64_t room = blocks ? target->shared_core_bytes / blocks - target->shared_reserved_bytes : bytes;
    return room < target->shared_block_bytes ? room : target->shared_block_bytes;
}

static void choose_places(Shared *s, const TilePassContext *context, const TileFunc *func) {
    place_buffers(s, func->scratch_bytes, 0);
    uint64_t least = s->bytes, room = room_beside(context, func, least);
    if (room <= least) return;
    place_buffers(s, func->scratch_bytes, room);
    if (s->bytes > room) place_buffers(s, func->scratch_bytes, 0);
}

TileResult tile_pass_gpu_shared(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !func->threads) return TILE_RESULT_UNCHANGED;
    Shared s = {.buffers = gpu_find_buffers(func, context->scratch)};
    size_t count = s.buffers.ops.count;
    if (!count) return TILE_RESULT_UNCHANGED;
    if (s.buffers.carried)
        return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-shared: a place in shared memory is carried");
    s.last = TILE_NEW_ARRAY(context->scratch, const TileOp *, count);
    s.together = TILE_NEW_ARRAY(context->scratch, GpuSet, count);
    s.following = TILE_NEW_ARRAY(context->scratch, GpuSet, count);
    s.offset = TILE_NEW_ARRAY(context->scratch, uint64_t, count);
    s.live = gpu_set_create(&s.buffers);
    for (size_t i = 0; i < count; i++) {
        s.together[i] = gpu_set_create(&s.buffers);
        s.following[i] = gpu_set_create(&s.buffers);
        s.last[i] = s.buffers.ops.items[i];
    }
    tile_block_walk(&func->body, note_uses, &s);
    GpuPending pending = gpu_pending_create(&s.buffers);
    visit_block(&s, &func->body, &pending);
    choose_places(&s, context, func);
    for (size_t i = 0; i < count; i++)
        tile_op_set_integer(context->module, s.buffers.ops.items[i], TILE_ATTRIBUTE_OFFSET, (int64_t)s.offset[i]);
    func->scratch_bytes = round_up(s.bytes, PLACE_ALIGN);
    return TILE_RESULT_CHANGED;
}
