/* What masks depend on, found in the machine form: whether they tell lanes that exist from such that do not. */
#include "lang/execute/execute.h"
#include "lang/execute/state.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"

enum { MOST_STEPS = 256, MOST_OPERANDS = 3, MOST_DEPTH = 64 };

/* ---- threads ---- */

/* The bits of a scalar that is computed from this thread's number and constants only; false if it is not, or if that
 * takes too many steps. */
static bool evaluate_at(const TileValue *value, uint64_t thread, unsigned *steps, uint64_t *bits) {
    const TileOp *op = value->op;
    if (!op || value->type->kind != TILE_TYPE_SCALAR || ++*steps > MOST_STEPS) return false;
    TileScalar to = value->type->scalar;
    if (op->id == TILE_OP_THREAD) return *bits = thread, true;
    if (op->id == TILE_OP_CONST)
        return *bits = tile_op_get(op, TILE_ATTRIBUTE_VALUE)->bits & tile_scalar_mask(to), true;
    if (tile_op_info(op->id)->class != TILE_CLASS_ELEMENTWISE || op->operand_count > MOST_OPERANDS) return false;
    uint64_t operands[MOST_OPERANDS];
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!evaluate_at(op->operands[i].value, thread, steps, &operands[i])) return false;
    return tile_eval(op->id, tile_eval_operand_type(op), to, operands, bits);
}

/* Is it true for the same threads of every block, and false for others: not for all? */
static bool chooses_threads(const TileFunc *func, const TileValue *mask) {
    uint32_t chosen = 0;
    for (uint32_t thread = 0; thread < func->threads; thread++) {
        unsigned steps = 0;
        uint64_t bits;
        if (!evaluate_at(mask, thread, &steps, &bits)) return false;
        chosen += bits != 0;
    }
    return chosen > 0 && chosen < func->threads;
}

/* ---- data ---- */

/* Does the op read memory that kernels see? Buffers of the compiler's own may hold anything, masks too. */
static bool reads_data(const TileOp *op) {
    if (!tile_op_reads(op) || op->region_count || !op->operand_count) return false;
    const TileType *from = tile_op_operand(op, 0)->type;
    return from->kind == TILE_TYPE_POINTER && from->space == TILE_SPACE_GLOBAL;
}

static bool comes_of_data(TileMap *seen, TileValue *value);

/* What a region yields, or a loop begins with, at a place. */
static bool yields_data(TileMap *seen, const TileOp *op, unsigned place) {
    for (unsigned r = 0; r < op->region_count; r++) {
        const TileOp *end = op->regions[r].last;
        if (end && place < end->operand_count && comes_of_data(seen, tile_op_operand(end, place))) return true;
    }
    return false;
}

/* Is it computed from what the op, or an op around it, has read? */
static bool comes_of_data(TileMap *seen, TileValue *value) {
    if (tile_map_get(seen, value)) return false;
    tile_map_set(seen, value, value);
    const TileOp *op = value->op;
    if (!op) { /* the index of a loop is none; what a loop carries is what it begins with, or what an iteration gives it */
        const TileOp *loop = value->block->op;
        unsigned first = loop ? loop->operand_count - loop->result_count : 0;
        if (!loop || loop->region_count != 1 || value->index == 0 || value->index > loop->result_count) return false;
        return comes_of_data(seen, tile_op_operand(loop, first + value->index - 1)) || yields_data(seen, loop, value->index - 1);
    }
    if (reads_data(op)) return true;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (comes_of_data(seen, tile_op_operand(op, i))) return true;
    return op->region_count && yields_data(seen, op, value->index);
}

/* ---- conjunctions ---- */

static bool is_conjunction(const TileOp *op) {
    if (op->id == TILE_OP_SELECT) return tile_value_is_integer(tile_op_named(op, TILE_OPERAND_Y), 0);
    return op->id == TILE_OP_AND;
}

/* Do all that it is a conjunction of depend on data, or choose among threads? */
static bool is_decided(TileExecutor *e, const TileFunc *func, TileValue *mask, bool *data, unsigned depth) {
    const TileOp *op = mask->op;
    if (op && depth < MOST_DEPTH) {
        if (is_conjunction(op))
            return is_decided(e, func, tile_op_operand(op, 0), data, depth + 1) &&
                   is_decided(e, func, tile_op_operand(op, 1), data, depth + 1);
        bool moves = tile_op_info((TileOpId)op->id)->class == TILE_CLASS_SHAPE || op->id == TILE_OP_SPLAT;
        if (moves && op->operand_count == 1) return is_decided(e, func, tile_op_operand(op, 0), data, depth + 1);
    }
    if (mask->type->kind == TILE_TYPE_SCALAR && chooses_threads(func, mask)) return true;
    TileMap seen;
    tile_map_init(&seen, e->arena);
    return comes_of_data(&seen, mask) ? *data = true : false;
}

ExecMask tile_exec_mask_of(TileExecutor *e, const TileFunc *func, TileValue *mask) {
    bool data = false;
    if (!is_decided(e, func, mask, &data, 0)) return EXEC_MASK_LANES;
    return data ? EXEC_MASK_DATA : EXEC_MASK_THREADS;
}

void tile_exec_count_mask(TileExecutor *e, const ExecInstruction *in) {
    if (!e->options.masked) return;
    e->options.masked->lanes += in->reason == EXEC_MASK_LANES;
    e->options.masked->data += in->reason == EXEC_MASK_DATA;
}
