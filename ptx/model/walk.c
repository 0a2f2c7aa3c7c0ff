/* The elements, registers and cycles of ops in the walk over a phase. */
#include "ptx/model/walk.h"

#include "ptx/pipeline/copies.h"

/* ---- tiles ---- */

double gpu_walk_lanes(const TileType *type) { return tile_type_is_tile(type) ? (double)tile_type_lanes(type) : 1; }

double gpu_walk_elements(const GpuWalk *walk, const TileType *type) {
    double lanes = gpu_walk_lanes(type), threads = walk->warps * TILE_WARP_THREADS;
    return lanes > threads ? lanes / threads : 1;
}

/* A vector that is loaded as the only row of a tile, for one op: as where it is one of several rows, it is loaded piece by piece. */
static bool is_row_of_all(const TileOp *reshape) {
    const TileValue *vector = tile_op_operand(reshape, 0), *row = &reshape->results[0];
    bool loaded = vector->op && vector->op->id == TILE_OP_LOAD_TILE && tile_value_has_one_use(vector) && tile_value_has_one_use(row);
    return loaded && row->type->rank == vector->type->rank + 1 && row->type->extent[0] == 1;
}

bool gpu_walk_takes_no_registers(const TileValue *value) {
    const TileOp *op = value->op;
    if (!tile_type_is_tile(value->type)) return true;
    if (!op) return false;
    switch (op->id) {
    case TILE_OP_CONST:
    case TILE_OP_IOTA:
    case TILE_OP_SPLAT:
    case TILE_OP_BROADCAST: return true;
    case TILE_OP_LOAD_TILE: return gpu_load_is_copied(op);
    case TILE_OP_RESHAPE:
        if (is_row_of_all(op)) return true;
        return gpu_walk_takes_no_registers(tile_op_operand(op, 0));
    case TILE_OP_FILL:
    case TILE_OP_PERMUTE: return gpu_walk_takes_no_registers(tile_op_operand(op, 0));
    }
    return false;
}

double gpu_walk_registers(GpuWalk *walk, const TileValue *value) {
    if (gpu_walk_takes_no_registers(value)) return 0;
    double elements = gpu_walk_elements(walk, value->type);
    if (elements > walk->target->registers_thread) walk->fits = false;
    return elements * (double)tile_scalar_bytes(value->type->scalar) / 4;
}

/* What a loop carries is counted with the loop, and takes the place of what it was before. */
static bool is_carried(const TileValue *value) {
    bool next = tile_value_has_one_use(value) && value->first_use->user->id == TILE_OP_YIELD;
    return !value->op || next;
}

/* Is the operand an earlier one of the op, too? */
static bool is_counted(const TileOp *op, unsigned index) {
    for (unsigned i = 0; i < index; i++)
        if (tile_op_operand(op, i) == tile_op_operand(op, index)) return true;
    return false;
}

/* Does the op alone use the value, which is not kept for other iterations? */
static bool is_used_by_one(const TileValue *value, const TileOp *op) {
    for (const TileUse *use = value->first_use; use; use = use->next)
        if (use->user != op) return false;
    return value->op && value->op->block == op->block;
}

void gpu_walk_count_registers(GpuWalk *walk, const TileOp *op) {
    double live = walk->carried, most_live = walk->target->registers_thread - GPU_OTHER_REGISTERS;
    double last = 0, made = 0; /* a result takes the registers of what is used last */
    for (unsigned i = 0; i < op->operand_count; i++) {
        const TileValue *operand = tile_op_operand(op, i);
        if (is_carried(operand) || is_counted(op, i)) continue;
        double held = gpu_walk_registers(walk, operand);
        live += held;
        if (is_used_by_one(operand, op)) last += held;
    }
    for (unsigned i = 0; i < op->result_count; i++)
        if (!is_carried(&op->results[i])) made += gpu_walk_registers(walk, &op->results[i]);
    live += gpu_most(0, made - last);
    if (walk->work->multiplies && walk->loops == 0 && live > most_live) live = most_live; /* behind products sums are stored and loaded once */
    walk->work->registers = gpu_most(walk->work->registers, live);
}

/* ---- time ---- */

double gpu_walk_ready(const GpuWalk *walk, const TileOp *op, double begin) {
    for (unsigned i = 0; i < op->operand_count; i++) begin = gpu_most(begin, walk->ready[tile_op_operand(op, i)->number]);
    return begin;
}

double gpu_walk_issue(GpuWalk *walk, const TileOp *op, double begin, double instructions, double latency) {
    walk->work->instructions += walk->times * walk->warps * instructions;
    walk->work->code += instructions;
    if (walk->loops > 0) walk->work->looped += instructions;
    if (walk->loops == 0) walk->work->beside += instructions * walk->busy;
    double end = gpu_walk_ready(walk, op, begin) + instructions * walk->busy + latency;
    for (unsigned i = 0; i < op->result_count; i++) walk->ready[op->results[i].number] = end;
    return end;
}

bool gpu_walk_feeds_products(const TileValue *value) {
    for (const TileUse *use = value->first_use; use; use = use->next)
        if (use->user->id != TILE_OP_DOT && !((use->user->id == TILE_OP_FILL || use->user->id == TILE_OP_RESHAPE) &&
                                              gpu_walk_feeds_products(&use->user->results[0])))
            return false;
    return true;
}
