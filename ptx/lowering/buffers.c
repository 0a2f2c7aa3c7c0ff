#include "ptx/lowering/buffers.h"

#include <string.h>

static bool points_to_shared(const TileValue *value) {
    return value->type->kind == TILE_TYPE_POINTER && value->type->space == TILE_SPACE_SHARED;
}

static void visit(TileOp *op, void *state) {
    GpuBuffers *buffers = state;
    for (unsigned i = 0; i < op->region_count; i++)
        for (unsigned k = 0; k < op->regions[i].argument_count; k++)
            buffers->carried |= points_to_shared(op->regions[i].arguments[k]);
    for (unsigned i = 0; i < op->result_count; i++) {
        if (!points_to_shared(&op->results[i]) || op->id == TILE_OP_PTR_ADD) continue;
        buffers->carried |= op->id != TILE_OP_BUFFER;
        if (op->id != TILE_OP_BUFFER) continue;
        tile_list_push(buffers->arena, &buffers->ops, op);
        tile_map_set(&buffers->numbers, op, (void *)(uintptr_t)buffers->ops.count);
    }
}

/* A range of bytes, the buffers with exactly this range, and those that overlap it. */
typedef struct Range {
    int64_t begin, end;
    GpuSet owners, overlapping;
} Range;

static size_t range_of(const GpuBuffers *buffers, const TileOp *op, Range *ranges, size_t *count) {
    int64_t begin = tile_op_integer(op, TILE_ATTRIBUTE_OFFSET, -1);
    int64_t end = begin < 0 ? -1 : begin + tile_op_integer(op, TILE_ATTRIBUTE_BYTES, 0);
    for (size_t i = 0; i < *count; i++)
        if (ranges[i].begin == begin && ranges[i].end == end) return i;
    ranges[*count] = (Range){begin, end, gpu_set_create(buffers), gpu_set_create(buffers)};
    return (*count)++;
}

/* Buffers without `offset` have an empty range, which overlaps with none. */
static void find_overlapping(GpuBuffers *buffers) {
    size_t count = buffers->ops.count, range_count = 0;
    Range *ranges = TILE_NEW_ARRAY(buffers->arena, Range, count);
    buffers->overlapping = TILE_NEW_ARRAY(buffers->arena, GpuSet, count);
    for (size_t i = 0; i < count; i++) {
        Range *own = &ranges[range_of(buffers, buffers->ops.items[i], ranges, &range_count)];
        gpu_set_add(own->owners, i);
        buffers->overlapping[i] = own->overlapping;
    }
    for (size_t i = 0; i < range_count; i++)
        for (size_t k = 0; k < range_count; k++)
            if (ranges[i].begin < ranges[k].end && ranges[k].begin < ranges[i].end)
                gpu_set_join(buffers, ranges[i].overlapping, ranges[k].owners);
}

GpuBuffers gpu_find_buffers(TileFunc *func, TileArena *arena) {
    GpuBuffers buffers = {.arena = arena};
    tile_map_init(&buffers.numbers, arena);
    tile_block_walk(&func->body, visit, &buffers);
    buffers.words = (buffers.ops.count + 63) / 64;
    find_overlapping(&buffers);
    return buffers;
}

int64_t gpu_buffer_of(const GpuBuffers *buffers, const TileValue *pointer) {
    for (const TileOp *add; (add = tile_value_def(pointer, TILE_OP_PTR_ADD));) pointer = tile_op_operand(add, 0);
    return pointer->op ? (int64_t)(uintptr_t)tile_map_get(&buffers->numbers, pointer->op) - 1 : -1;
}

GpuBufferAccess gpu_buffer_access(const GpuBuffers *buffers, const TileOp *op, size_t *buffer) {
    GpuBufferAccess access = GPU_ACCESS_NONE;
    if (op->id == TILE_OP_LOAD || op->id == TILE_OP_LOAD_MATRIX) access = GPU_ACCESS_READ;
    bool stores = op->id == TILE_OP_STORE || op->id == TILE_OP_STORE_MATRIX;
    if (stores || op->id == TILE_OP_ATOMIC_UPDATE) access = GPU_ACCESS_WRITE;
    if (op->id == TILE_OP_COPY_ASYNC || op->id == TILE_OP_COPY_BULK || op->id == TILE_OP_COPY_TENSOR)
        access = GPU_ACCESS_COPY;
    /* An mbarrier is initialised before a barrier, and used by any thread after it; what else it orders is up to its
     * users. */
    if (op->id == TILE_OP_MBARRIER_INIT) access = GPU_ACCESS_WRITE;
    if (op->id == TILE_OP_MBARRIER_ARRIVE || op->id == TILE_OP_MBARRIER_EXPECT || op->id == TILE_OP_MBARRIER_WAIT) access = GPU_ACCESS_READ;
    bool boxes = op->id == TILE_OP_STORE_TENSOR; /* when it has read is up to its users, too */
    if (boxes) access = GPU_ACCESS_READ;
    if (access == GPU_ACCESS_NONE) return access;
    int64_t number = gpu_buffer_of(buffers, tile_op_operand(op, stores || boxes));
    if (number < 0) return GPU_ACCESS_NONE;
    *buffer = (size_t)number;
    return access;
}

/* ---- sets ---- */

GpuSet gpu_set_create(const GpuBuffers *buffers) { return TILE_NEW_ARRAY(buffers->arena, uint64_t, buffers->words); }

void gpu_set_clear(const GpuBuffers *buffers, GpuSet set) { memset(set, 0, buffers->words * sizeof *set); }

bool gpu_set_join(const GpuBuffers *buffers, GpuSet set, const uint64_t *more) {
    bool grown = false;
    for (size_t i = 0; i < buffers->words; i++) {
        grown |= (more[i] & ~set[i]) != 0;
        set[i] |= more[i];
    }
    return grown;
}

/* Has the set another buffer that overlaps with this one? */
static bool has_other(const GpuBuffers *buffers, const uint64_t *set, size_t number) {
    const uint64_t *overlapping = buffers->overlapping[number];
    for (size_t i = 0; i < buffers->words; i++) {
        uint64_t own = i == number / 64 ? UINT64_C(1) << number % 64 : 0;
        if (set[i] & overlapping[i] & ~own) return true;
    }
    return false;
}

/* ---- what is pending ---- */

GpuPending gpu_pending_create(const GpuBuffers *buffers) {
    return (GpuPending){gpu_set_create(buffers), gpu_set_create(buffers), gpu_set_create(buffers)};
}

bool gpu_pending_join(const GpuBuffers *buffers, GpuPending *pending, const GpuPending *more) {
    bool grown = gpu_set_join(buffers, pending->read, more->read);
    grown |= gpu_set_join(buffers, pending->written, more->written);
    return gpu_set_join(buffers, pending->copied, more->copied) || grown;
}

GpuPending gpu_pending_copy(const GpuBuffers *buffers, const GpuPending *pending) {
    GpuPending own = gpu_pending_create(buffers);
    gpu_pending_join(buffers, &own, pending);
    return own;
}

void gpu_pending_barrier(const GpuBuffers *buffers, GpuPending *pending) {
    gpu_set_clear(buffers, pending->read);
    gpu_set_clear(buffers, pending->written);
}

bool gpu_is_warpgroup_barrier(const TileOp *op) {
    return op->id == TILE_OP_BARRIER && tile_op_integer(op, TILE_ATTRIBUTE_THREADS, 0) == TILE_WARPGROUP_THREADS &&
           tile_op_integer(op, TILE_ATTRIBUTE_TURNS, 1) > 1;
}

void gpu_pending_apart(const GpuBuffers *buffers, GpuPending *pending) {
    for (size_t i = 0; i < buffers->ops.count; i++) {
        bool apart = tile_op_integer(buffers->ops.items[i], TILE_ATTRIBUTE_BY_GROUP, 0) > 0;
        if (!apart || has_other(buffers, buffers->overlapping[i], i)) continue;
        gpu_set_remove(pending->read, i);
        gpu_set_remove(pending->written, i);
    }
}

void gpu_pending_add(const GpuBuffers *buffers, const TileOp *op, GpuPending *pending) {
    size_t number;
    GpuBufferAccess access = gpu_buffer_access(buffers, op, &number);
    if (access == GPU_ACCESS_READ) gpu_set_add(pending->read, number);
    if (access == GPU_ACCESS_WRITE) gpu_set_add(pending->written, number);
    if (access == GPU_ACCESS_COPY) gpu_set_add(pending->copied, number);
}

bool gpu_needs_barrier(const GpuBuffers *buffers, const TileOp *op, const GpuPending *pending) {
    size_t number;
    GpuBufferAccess access = gpu_buffer_access(buffers, op, &number);
    if (access == GPU_ACCESS_NONE) return false;
    bool ring = tile_op_integer(buffers->ops.items[number], TILE_ATTRIBUTE_SLOTS, 1) > 1;
    if (has_other(buffers, pending->written, number)) return true;
    if (access == GPU_ACCESS_READ) return !ring && gpu_set_has(pending->written, number);
    return gpu_set_has(pending->read, number) || has_other(buffers, pending->read, number);
}
