/* Programs of a block that take turns. The warps of the first partition are so many equal parts, each of which executes
 * programs of its own: thread numbers, barriers and buffers are those of a part. For each part there is an mbarrier that
 * completes a phase when the part before it has ended its turn; the first part begins without waiting. Where the warpgroups of one program
 * take turns, each has such an mbarrier, unless they exchange something through shared memory meanwhile: all of them come to the barriers of
 * that, and none could while another waits for its turn. */
#include "ptx/lowering/machine.h"
#include "ptx/pipeline/copies.h"

static void find_groups(TileOp *op, void *groups) {
    if (op->id == TILE_OP_TURN_BEGIN) *(int64_t *)groups = tile_op_integer(op, TILE_ATTRIBUTE_TURNS, 0);
}

void gpu_open_turns(Gpu *gpu, const TileOp *partitions) {
    const TileType *shared = tile_type_pointer(gpu->module->context, TILE_SPACE_SHARED);
    gpu->groups_in_turn = 0;
    gpu->orders.count = 0;
    tile_block_walk((TileBlock *)&partitions->regions[0], find_groups, &gpu->groups_in_turn);
    int64_t count = gpu_count_orders(gpu);
    if (count) gpu->order = gpu_build_buffer(&gpu->b, shared, count * GPU_MBARRIER_BYTES, GPU_MBARRIER_BYTES, 1);
}

/* The same in all lanes of a warp. */
static TileValue *uniform_quotient(Gpu *gpu, unsigned log) {
    TileValue *quotient = gpu_binary(gpu, TILE_OP_SHR, gpu->thread, gpu_i64(gpu, log));
    return tile_build_convert(&gpu->b, gpu_uniform(gpu, quotient), TILE_I64);
}

void gpu_number_turns(Gpu *gpu) {
    enum { LOG_WARPGROUP = 7 };
    unsigned log = gpu_floor_log2(gpu->func->threads);
    if (gpu->turns > 1) {
        gpu->turn = uniform_quotient(gpu, log);
        gpu->thread = gpu_binary(gpu, TILE_OP_AND, gpu->thread, gpu_i64(gpu, gpu->func->threads - 1));
    }
    bool alone = gpu->turns > 1 && log == LOG_WARPGROUP;
    gpu->warpgroup = alone ? gpu_i64(gpu, 0) : uniform_quotient(gpu, LOG_WARPGROUP);
}

static TileValue *mbarrier_of(Gpu *gpu, TileValue *turn) {
    return tile_build_ptr_add(&gpu->b, gpu->order, gpu_binary(gpu, TILE_OP_MUL, turn, gpu_i64(gpu, GPU_MBARRIER_BYTES)));
}

static TileValue *is_odd(Gpu *gpu, TileValue *place) { return gpu_binary(gpu, TILE_OP_GE, place, gpu_i64(gpu, gpu->turns)); }

static void lower_is_own(Gpu *gpu, const TileOp *op, TileValue *place) {
    TileValue *later = gpu_binary(gpu, TILE_OP_ADD, gpu->turn, gpu_i64(gpu, gpu->turns));
    TileValue *own = gpu_binary(gpu, TILE_OP_OR, gpu_binary(gpu, TILE_OP_EQ, place, gpu->turn),
                                gpu_binary(gpu, TILE_OP_EQ, place, later));
    tile_map_set(&gpu->values, &op->results[0], own);
}

static TileValue *own_number(const Gpu *gpu) { return gpu->groups_in_turn ? gpu->warpgroup : gpu->turn; }

/* The first part's n-th turn comes behind the last part's turn before that, of which there is none at first. */
static void lower_begin(Gpu *gpu, TileValue *place) {
    TileValue *first = gpu_binary(gpu, TILE_OP_EQ, own_number(gpu), gpu_i64(gpu, 0)), *bit = gpu_binary(gpu, TILE_OP_AND, place, gpu_i64(gpu, 1));
    TileValue *odd = gpu->groups_in_turn ? gpu_binary(gpu, TILE_OP_NE, bit, gpu_i64(gpu, 0)) : is_odd(gpu, place);
    gpu_build_phase_wait(gpu, mbarrier_of(gpu, own_number(gpu)), gpu_binary(gpu, TILE_OP_NE, odd, first), false);
}

static void lower_end(Gpu *gpu) {
    TileValue *next = gpu_binary(gpu, TILE_OP_ADD, own_number(gpu), gpu_i64(gpu, 1));
    TileValue *last = gpu_binary(gpu, TILE_OP_EQ, next, gpu_i64(gpu, gpu_count_orders(gpu)));
    next = tile_build_ternary(&gpu->b, TILE_OP_SELECT, last, gpu_i64(gpu, 0), next);
    gpu_arrive_by_warp(gpu, mbarrier_of(gpu, next));
}

static TileOp *last_built(const Gpu *gpu) { return gpu->b.before ? gpu->b.before->previous : gpu->b.block->last; }

void gpu_lower_turn(Gpu *gpu, const TileOp *op) {
    TileValue *place = gpu_value(gpu, tile_op_operand(op, 0));
    if (!gpu->turn && !gpu->groups_in_turn) {
        gpu_refuse(gpu, op, "stands in no partition with turns");
        return;
    }
    if (op->id == TILE_OP_TURN)
        lower_is_own(gpu, op, place);
    else if (op->id == TILE_OP_TURN_BEGIN)
        lower_begin(gpu, place);
    else
        lower_end(gpu);
    if (gpu->groups_in_turn) tile_list_push(gpu->arena, &gpu->orders, last_built(gpu));
}

/* ---- what warpgroups exchange ---- */

/* What threads exchange has a buffer of its own, where they do; slots of channels are made in front of the partitions. */
static void find_exchange(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_BUFFER; }

/* Do threads exchange something within the turn, or in an iteration of the loop that has it? What a program does beside its loop does not
 * count, such as storing its result. */
static bool exchanges(TileOp *begin, const TileOp *end) {
    const TileOp *loop = begin->block->op;
    bool found = false;
    if (tile_op_is(loop, TILE_OP_FOR) && !tile_op_integer(loop, TILE_ATTRIBUTE_RESIDENT, 0))
        tile_block_walk(begin->block, find_exchange, &found);
    else
        for (TileOp *op = begin; op != end && !found; op = op->next) {
            find_exchange(op, &found);
            for (unsigned r = 0; r < op->region_count; r++) tile_block_walk(&op->regions[r], find_exchange, &found);
        }
    return found;
}

void gpu_close_turns(Gpu *gpu) {
    bool found = false;
    for (size_t i = 0; i + 1 < gpu->orders.count && !found; i += 2) found = exchanges(gpu->orders.items[i], gpu->orders.items[i + 1]);
    for (size_t i = 0; i < gpu->orders.count && found; i++) tile_op_erase(gpu->orders.items[i]);
    gpu->orders.count = 0;
}
