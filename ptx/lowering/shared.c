/* Purpose: allocate shared memory: assign an offset to each buffer. The live range of a buffer is from its op to its
 * last use in the block of its op; buffers that are live at the same time must not overlap. Two buffers without a
 * barrier between an access to the first and a write to the second should not overlap either, since that would need a
 * barrier; this holds as far as it does not lower occupancy. First fit, the largest buffer first.
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
 * Needs: gpu-machine. Copies into a buffer are complete by its last use. The first scratch_bytes are already allocated, though not to buffers that end (`ends`) before those are used.
 * Keeps: machine form. Cost: linear in the ops, times the depth of loops, and in the interfering pairs of buffers; for
 * each buffer and each write the words of a set of buffers. */
#include <stdlib.h>

#include "ptx/lowering/buffers.h"
#include "ptx/passes.h"
#include "ptx/target/target.h"

enum { PLACE_ALIGN = 16, LARGEST_ALIGN = 1024 };

typedef struct Shared {
    GpuBuffers buffers;
    const TileOp **last; /* of each buffer: the op of its block with its last use */
    TileMap ending;      /* such an op to the first buffer that it ends, index + 1 */
    size_t *next_ending; /* of each buffer: the next that the same op ends, index + 1 */
    GpuSet live;
    GpuSet *together, *following; /* of each buffer: those live at the same time; those with no barrier between */
    uint64_t *offset, *size, *align;
    uint64_t bytes;  /* of all buffers */
    uint64_t stride; /* from a buffer of one program to that of the next one that takes turns */
    bool unsettled; /* in a loop, before what is pending has reached its fixpoint */
} Shared;

/* ---- interference ---- */

/* The op of the block that is, or contains, this op. */
static const TileOp *op_of_block(const TileOp *op, const TileBlock *block) {
    while (op->block != block) op = op->block->op;
    return op;
}

/* Called in order, so that the last use is the one that stays. */
static void note_uses(TileOp *op, void *state) {
    Shared *s = state;
    for (unsigned i = 0; i < op->operand_count; i++) {
        int64_t number = gpu_buffer_of(&s->buffers, tile_op_operand(op, i));
        if (number >= 0) s->last[number] = op_of_block(op, s->buffers.ops.items[number]->block);
    }
}

static void note_ends(Shared *s) {
    for (size_t i = 0; i < s->buffers.ops.count; i++) {
        s->next_ending[i] = (size_t)(uintptr_t)tile_map_get(&s->ending, s->last[i]);
        tile_map_set(&s->ending, s->last[i], (void *)(uintptr_t)(i + 1));
    }
}

/* Records that the buffer interferes with each of 64 others, of which `first` is the lowest. */
static void add_interference(GpuSet *sets, size_t number, size_t first, uint64_t others) {
    for (; others; others &= others - 1) {
        size_t other = first + (size_t)__builtin_ctzll(others);
        if (other == number) continue;
        gpu_set_add(sets[other], number);
        gpu_set_add(sets[number], other);
    }
}

static void write_buffer(Shared *s, size_t number, const GpuPending *pending) {
    for (size_t i = 0; i < s->buffers.words && !s->unsettled; i++) {
        add_interference(s->together, number, i * 64, s->live[i]);
        add_interference(s->following, number, i * 64, pending->read[i] | pending->written[i] | pending->copied[i]);
    }
}

static void end_uses(Shared *s, const TileOp *op) {
    for (size_t i = (size_t)(uintptr_t)tile_map_get(&s->ending, op); i; i = s->next_ending[i - 1])
        gpu_set_remove(s->live, i - 1);
}

static void visit_block(Shared *s, const TileBlock *block, GpuPending *pending);

/* Returns whether another iteration of the loop would begin with more pending accesses. */
static bool visit_regions(Shared *s, const TileOp *op, GpuPending *pending) {
    GpuPending entry = gpu_pending_copy(&s->buffers, pending);
    bool grown = false;
    for (unsigned i = 0; i < op->region_count; i++) {
        GpuPending own = gpu_pending_copy(&s->buffers, gpu_repeats(op) ? pending : &entry);
        visit_block(s, &op->regions[i], &own);
        grown |= gpu_pending_join(&s->buffers, pending, &own);
    }
    return grown && gpu_repeats(op);
}

static void visit_control(Shared *s, const TileOp *op, GpuPending *pending) {
    bool outer = s->unsettled;
    s->unsettled = gpu_repeats(op) || outer;
    while (gpu_repeats(op) && visit_regions(s, op, pending)) {
    }
    s->unsettled = outer;
    visit_regions(s, op, pending);
}

/* Where an access to a buffer needs a barrier for accesses of the same buffer, gpu-barriers will insert one. */
static void visit_block(Shared *s, const TileBlock *block, GpuPending *pending) {
    for (const TileOp *op = block->first; op; op = op->next) {
        size_t number;
        if (op->region_count) visit_control(s, op, pending);
        if (tile_op_is_block_barrier(op) || gpu_needs_barrier(&s->buffers, op, pending))
            gpu_pending_barrier(&s->buffers, pending);
        if (gpu_is_warpgroup_barrier(op)) gpu_pending_apart(&s->buffers, pending);
        if (op->result_count && tile_map_get(&s->buffers.numbers, op))
            gpu_set_add(s->live, (size_t)gpu_buffer_of(&s->buffers, &op->results[0]));
        GpuBufferAccess access = gpu_buffer_access(&s->buffers, op, &number);
        if (access == GPU_ACCESS_WRITE || access == GPU_ACCESS_COPY) write_buffer(s, number, pending);
        gpu_pending_add(&s->buffers, op, pending);
        end_uses(s, op);
    }
}

/* ---- offsets ---- */

static uint64_t round_up(uint64_t bytes, uint64_t align) { return (bytes + align - 1) / align * align; }

/* The end of a buffer of the set that overlaps with this one at the offset `at`; 0: none does. */
static uint64_t end_of_other(const Shared *s, size_t number, const uint64_t *set, uint64_t at) {
    for (size_t i = 0; i < s->buffers.words; i++)
        for (uint64_t others = set[i]; others; others &= others - 1) {
            size_t other = i * 64 + (size_t)__builtin_ctzll(others);
            uint64_t end = s->offset[other] + s->size[other];
            if (at < end && s->offset[other] < at + s->size[number]) return end;
        }
    return 0;
}

/* The lowest offset from `from` on where the buffer overlaps with none of the set. */
static uint64_t find_bytes(const Shared *s, size_t number, const uint64_t *set, uint64_t from) {
    uint64_t at = round_up(from, s->align[number]);
    for (uint64_t end; (end = end_of_other(s, number, set, at));) at = round_up(end, s->align[number]);
    return at;
}

typedef struct Sized {
    size_t number;
    uint64_t size;
    bool own; /* each program that takes turns has one */
} Sized;

/* It may lie where others that are allocated already do, which begin when it has ended. */
static bool ends_before(const TileOp *buffer) { return tile_op_integer(buffer, TILE_ATTRIBUTE_ENDS, 0) != 0; }

static bool has_own(const TileOp *buffer) { return tile_op_integer(buffer, TILE_ATTRIBUTE_TURNS, 1) > 1; }

/* Those of programs that take turns come last. */
static int compare_sizes(const void *a, const void *b) {
    const Sized *x = a, *y = b;
    if (x->own != y->own) return x->own ? 1 : -1;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Offsets of so many buffers. Those without a barrier between them do not overlap while there is `room`. */
static void assign_offsets(Shared *s, const Sized *order, size_t count, uint64_t from, uint64_t room) {
    GpuSet placed = gpu_set_create(&s->buffers), together = gpu_set_create(&s->buffers),
           disjoint = gpu_set_create(&s->buffers);
    s->bytes = from;
    for (size_t i = 0; i < count; i++) {
        size_t next = order[i].number;
        for (size_t k = 0; k < s->buffers.words; k++) {
            together[k] = placed[k] & s->together[next][k];
            disjoint[k] = together[k] | (placed[k] & s->following[next][k]);
        }
        uint64_t begin = ends_before(s->buffers.ops.items[next]) ? 0 : from, at = find_bytes(s, next, disjoint, begin);
        if (at + s->size[next] > room) at = find_bytes(s, next, together, begin);
        s->offset[next] = at;
        if (at + s->size[next] > s->bytes) s->bytes = at + s->size[next];
        gpu_set_add(placed, next);
    }
}

/* The most shared memory of a block with the same occupancy as `bytes`, which the number of threads limits too. */
static uint64_t room_at_occupancy(const TilePassContext *context, const TileFunc *func, uint64_t bytes) {
    const TilePtxTarget *target = tile_ptx_target_of(context->target);
    uint64_t blocks = target->shared_core_bytes / (bytes + target->shared_reserved_bytes);
    if (blocks > target->blocks_core) blocks = target->blocks_core;
    if (blocks > target->threads_core / func->threads) blocks = target->threads_core / func->threads;
    uint64_t room = blocks ? target->shared_core_bytes / blocks - target->shared_reserved_bytes : bytes;
    return room < target->shared_block_bytes ? room : target->shared_block_bytes;
}

/* Buffers of which each program that takes turns has one lie in a part of shared memory for each program: at one
 * time one program may use the one buffer and another program another one. `stride` is a part's bytes. */
static void assign_all(Shared *s, const Sized *order, uint64_t from, uint64_t room) {
    size_t count = s->buffers.ops.count, shared = 0;
    while (shared < count && !order[shared].own) shared++;
    assign_offsets(s, order, shared, from, room);
    if (shared == count) return;
    uint64_t begin = round_up(s->bytes, LARGEST_ALIGN);
    assign_offsets(s, order + shared, count - shared, begin, 0);
    s->stride = round_up(s->bytes - begin, LARGEST_ALIGN);
    int64_t turns = tile_op_integer(s->buffers.ops.items[order[shared].number], TILE_ATTRIBUTE_TURNS, 1);
    s->bytes += s->stride * (uint64_t)(turns - 1);
}

static void choose_offsets(Shared *s, const TilePassContext *context, const TileFunc *func) {
    size_t count = s->buffers.ops.count;
    Sized *order = TILE_NEW_ARRAY(context->scratch, Sized, count);
    for (size_t i = 0; i < count; i++) order[i] = (Sized){i, s->size[i], has_own(s->buffers.ops.items[i])};
    qsort(order, count, sizeof *order, compare_sizes);
    assign_all(s, order, func->scratch_bytes, 0);
    uint64_t least = s->bytes, room = room_at_occupancy(context, func, least);
    if (room <= least) return;
    assign_all(s, order, func->scratch_bytes, room);
    if (s->bytes > room) assign_all(s, order, func->scratch_bytes, 0);
}

static void create_tables(Shared *s, TileArena *arena) {
    size_t count = s->buffers.ops.count;
    s->last = TILE_NEW_ARRAY(arena, const TileOp *, count);
    s->next_ending = TILE_NEW_ARRAY(arena, size_t, count);
    s->together = TILE_NEW_ARRAY(arena, GpuSet, count);
    s->following = TILE_NEW_ARRAY(arena, GpuSet, count);
    s->offset = TILE_NEW_ARRAY(arena, uint64_t, count);
    s->size = TILE_NEW_ARRAY(arena, uint64_t, count);
    s->align = TILE_NEW_ARRAY(arena, uint64_t, count);
    s->live = gpu_set_create(&s->buffers);
    tile_map_init(&s->ending, arena);
    for (size_t i = 0; i < count; i++) {
        const TileOp *op = s->last[i] = s->buffers.ops.items[i];
        uint64_t align = (uint64_t)tile_op_integer(op, TILE_ATTRIBUTE_ALIGN, PLACE_ALIGN);
        s->together[i] = gpu_set_create(&s->buffers);
        s->following[i] = gpu_set_create(&s->buffers);
        s->size[i] = (uint64_t)tile_op_integer(op, TILE_ATTRIBUTE_BYTES, 0);
        s->align[i] = align < PLACE_ALIGN ? PLACE_ALIGN : align;
    }
}

TileResult tile_pass_gpu_shared(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !func->threads) return TILE_RESULT_UNCHANGED;
    Shared s = {.buffers = gpu_find_buffers(func, context->scratch)};
    size_t count = s.buffers.ops.count;
    if (!count) return TILE_RESULT_UNCHANGED;
    if (s.buffers.carried)
        return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-shared: a place in shared memory is carried");
    create_tables(&s, context->scratch);
    tile_block_walk(&func->body, note_uses, &s);
    note_ends(&s);
    GpuPending pending = gpu_pending_create(&s.buffers);
    visit_block(&s, &func->body, &pending);
    choose_offsets(&s, context, func);
    for (size_t i = 0; i < count; i++) {
        TileOp *op = s.buffers.ops.items[i];
        tile_op_set_integer(context->module, op, TILE_ATTRIBUTE_OFFSET, (int64_t)s.offset[i]);
        if (has_own(op)) tile_op_set_integer(context->module, op, TILE_ATTRIBUTE_STRIDE, (int64_t)s.stride);
    }
    func->scratch_bytes = round_up(s.bytes, PLACE_ALIGN);
    return TILE_RESULT_CHANGED;
}
