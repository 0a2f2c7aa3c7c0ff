/* Shared memory for what lives for one op: written, a barrier, read. Two places take turns. What was read at one of
 * them is safe from the use after the next, because the barrier of the next one stands between; so a use costs one
 * barrier where the other place is free, and another one where loops and branches meet. */
#include "ptx/lower.h"

enum { PLACE_ALIGN = 16 };

void gpu_barrier(Gpu *gpu) {
    tile_build_op(&gpu->b, TILE_OP_BARRIER, NULL, 0, NULL, 0, NULL, 0);
    gpu->turns.reading = -1;
}

void gpu_reserve_shared(Gpu *gpu, uint64_t bytes) {
    if (bytes > gpu->shared_bytes) gpu->shared_bytes = bytes;
}

/* The second place lies behind the first one, whose size is known at the end. */
static void add_second_place(Gpu *gpu) {
    TileBuilder b = gpu->b;
    b.block = &gpu->func->body;
    b.before = b.block->first;
    TileValue *distance = tile_build_i64(&b, PLACE_ALIGN);
    gpu->turns.distance = distance->op;
    gpu->turns.place[1] = tile_build_ptr_add(&b, gpu->shared_parameter, distance);
}

void gpu_open_shared(Gpu *gpu, uint64_t bytes) {
    GpuTurns *turns = &gpu->turns;
    if (turns->reading == (int)turns->turn) gpu_barrier(gpu);
    if (turns->first < 0) turns->first = (int)turns->turn;
    if (turns->turn == 0) {
        gpu_reserve_shared(gpu, bytes);
        return;
    }
    if (!turns->place[1]) add_second_place(gpu);
    if (bytes > turns->bytes) turns->bytes = bytes;
    turns->place[0] = gpu->shared;
    gpu->shared = turns->place[1];
}

void gpu_close_shared(Gpu *gpu) {
    GpuTurns *turns = &gpu->turns;
    turns->reading = (int)turns->turn;
    if (turns->turn == 1) gpu->shared = turns->place[0];
    turns->turn = 1 - turns->turn;
}

void gpu_settle_shared(Gpu *gpu) {
    if (gpu->turns.reading >= 0) gpu_barrier(gpu);
}

GpuTurns gpu_enter_region(Gpu *gpu) {
    GpuTurns outer = gpu->turns;
    gpu->turns.turn = 0;
    gpu->turns.first = gpu->turns.reading = -1;
    gpu->turns.nests = false;
    return outer;
}

/* The next run begins at the first place: that is free where the last use was at the other one. */
void gpu_end_region(Gpu *gpu, bool again) {
    const GpuTurns *turns = &gpu->turns;
    if (!again || turns->nests || turns->first == turns->reading) gpu_settle_shared(gpu);
}

void gpu_leave_region(Gpu *gpu, const GpuTurns *outer) {
    GpuTurns *turns = &gpu->turns;
    turns->nests = outer->nests || turns->nests || turns->first >= 0;
    turns->first = outer->first;
    if (turns->reading >= 0) turns->turn = 1 - (unsigned)turns->reading;
}

uint64_t gpu_shared_size(Gpu *gpu) {
    const GpuTurns *turns = &gpu->turns;
    uint64_t first = (gpu->shared_bytes + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN;
    if (!turns->distance) return first;
    tile_op_set(gpu->module, turns->distance,
                (TileAttribute){.key = TILE_ATTRIBUTE_VALUE, .bits = gpu->buffer_bytes + first});
    return first + (turns->bytes + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN;
}
