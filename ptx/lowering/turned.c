/* Rows that do not consist of vectors, of tiles whose layout is not free to follow them: sums add in its order. Neighbours
 * that a thread has would be accessed one by one, each time far from those of other lanes; a store would then write a
 * piece of as many sectors as there are lanes. So the elements of a warp are exchanged: bits of the register's number with
 * bits of the lane's, until neighbouring lanes have neighbours. */
#include "ptx/lowering/access.h"
#include "lang/ir/operands.h"

/* Is the tensor accessed by such ops alone: loads, or one store? Other accesses of it, whose lanes would not exchange
 * elements, might meet the same ones in other threads. */
static bool is_alone(const TileOp *op) {
    for (const TileUse *use = tile_op_operand(op, 0)->first_use; use; use = use->next) {
        const TileOp *other = use->user;
        if (use->index || !tile_accessed_tile(other)) continue;
        if (other->id != op->id || (other != op && op->id == TILE_OP_STORE_TILE)) return false;
    }
    return true;
}

/* Are rows gone through in long tiles by a loop? Exchanges take the place of other instructions: where a row is one tile or few,
 * that costs more than what memory gains (measured: 1.1 to 1.5 times the time of rows of 1037; rows of 40009 take 0.5 to 0.7). */
static bool is_of_long_rows(const GpuAccess *access) {
    enum { LEAST_ELEMENTS = 4096 };
    if (access->type->extent[access->type->rank - 1] < LEAST_ELEMENTS) return false;
    for (const TileOp *outer = access->op->block->op; outer; outer = outer->block->op)
        if (outer->id == TILE_OP_FOR && !tile_loop_is_of_programs(outer)) return true;
    return false;
}

/* How many elements side by side rows consist of, as far as the function may assume it; 0: that is not known, or vectors of
 * 8 bytes do. Asks for the facts. */
static unsigned odd_width(const GpuAccess *access) {
    TileParameter *parameter = access->tensor->parameter;
    unsigned last = access->rank - 1, bytes = tile_scalar_bytes(access->type->scalar);
    if (access->rank == 1 || access->flat || parameter->facts.stride[last] != bytes) return 0;
    for (unsigned wanted = GPU_PREDICATED_BYTES; wanted > bytes; wanted /= 2) parameter->asked_multiple |= wanted / bytes;
    int64_t multiple = parameter->facts.multiple[last];
    return multiple == TILE_UNKNOWN || multiple * bytes >= GPU_PREDICATED_BYTES ? 0 : (unsigned)multiple;
}

bool gpu_is_turned(const GpuAccess *access, GpuTurned *turned) {
    unsigned last = access->type->rank - 1u, most = GPU_ACCESS_BYTES / tile_scalar_bytes(access->type->scalar);
    if (access->gathers || access->mask || gpu_is_scattered(access) || !is_alone(access->op) || !is_of_long_rows(access)) return false;
    if (tile_layout_vector(&access->layout, last, most) != most) return false;
    unsigned width = odd_width(access);
    if (!width) return false;
    turned->layout = access->layout;
    turned->count = 0;
    TileLayout *layout = &turned->layout;
    uint32_t along = (UINT32_C(1) << layout->log_extent[last]) - 1;
    unsigned lanes = tile_layout_first_bit(layout, TILE_LAYOUT_LANE), lane = layout->bits[TILE_LAYOUT_LANE];
    for (unsigned bit = gpu_floor_log2(most); bit-- > gpu_floor_log2(width);) {
        uint32_t *column = layout->map.column;
        while (lane && !(column[lanes + lane - 1] & along)) lane--;
        if (!lane) return false;
        lane--;
        uint32_t other = column[bit];
        column[bit] = column[lanes + lane];
        column[lanes + lane] = other;
        turned->bits[turned->count] = bit;
        turned->lanes[turned->count++] = lane;
    }
    return true;
}

/* Exchanges a register with that of the lane whose number differs in one bit: those of lanes without it in the first
 * register, those of lanes with it in the second one stay. */
static void exchange(Gpu *gpu, TileValue **low, TileValue **high, unsigned lane) {
    TileValue *bit = gpu_binary(gpu, TILE_OP_AND, gpu->thread, gpu_i64(gpu, INT64_C(1) << lane)),
              *with = gpu_binary(gpu, TILE_OP_NE, bit, gpu_i64(gpu, 0));
    TileValue *sent = tile_build_ternary(&gpu->b, TILE_OP_SELECT, with, *low, *high),
              *got = gpu_exchange(gpu, sent, UINT32_C(1) << lane);
    *low = tile_build_ternary(&gpu->b, TILE_OP_SELECT, with, got, *low);
    *high = tile_build_ternary(&gpu->b, TILE_OP_SELECT, with, *high, got);
}

TileValue *gpu_turn(Gpu *gpu, TileValue *value, const GpuTurned *turned) {
    uint32_t count = tile_layout_registers(&turned->layout);
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (uint32_t r = 0; r < count; r++) registers[r] = gpu_register(gpu, value, r);
    for (unsigned i = 0; i < turned->count; i++)
        for (uint32_t r = 0; r < count; r++)
            if (!(r >> turned->bits[i] & 1))
                exchange(gpu, &registers[r], &registers[r | UINT32_C(1) << turned->bits[i]], turned->lanes[i]);
    return gpu_join(gpu, registers, count);
}
