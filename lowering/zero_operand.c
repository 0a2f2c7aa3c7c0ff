#include "lowering/zero_operand.h"

#include "lang/ir/build.h"
#include "lang/ir/operands.h"

enum { DEEPEST = 24 }; /* ops that a condition or an operand is looked for behind */

static bool is_false(const TileValue *value) { return tile_value_is_integer(value, 0); }

/* A bool from outside of the loop that is the same for all lanes, and without which the mask is false; NULL: there is none. */
static TileValue *part_of_mask(TileValue *mask, const TileOp *loop, unsigned depth) {
    const TileOp *op = mask->op;
    if (tile_type_is_scalar(mask->type) && tile_value_outside(mask, loop)) return op && op->id == TILE_OP_CONST ? NULL : mask;
    if (!op || depth == DEEPEST) return NULL;
    if (op->id == TILE_OP_IF) {
        unsigned r = 0;
        while (&op->results[r] != mask) r++;
        TileValue *condition = tile_op_operand(op, 0);
        return is_false(tile_op_operand(op->regions[1].last, r)) ? part_of_mask(condition, loop, depth + 1) : NULL;
    }
    bool moves = op->id == TILE_OP_BROADCAST || op->id == TILE_OP_RESHAPE || op->id == TILE_OP_SPLAT || op->id == TILE_OP_PERMUTE;
    if (moves) return part_of_mask(tile_op_operand(op, 0), loop, depth + 1);
    bool both = op->id == TILE_OP_AND || (op->id == TILE_OP_SELECT && is_false(tile_op_named(op, TILE_OPERAND_Y)));
    if (!both) return NULL;
    TileValue *found = part_of_mask(tile_op_operand(op, 0), loop, depth + 1);
    return found ? found : part_of_mask(tile_op_operand(op, 1), loop, depth + 1);
}

static bool is_zero(const TileValue *value) {
    uint64_t bits;
    return tile_value_bits(value, &bits) && bits == 0;
}

TileValue *tile_zero_unless(TileValue *a, const TileOp *loop) {
    for (unsigned depth = 0; depth < DEEPEST && a->op; depth++) {
        const TileOp *op = a->op;
        if (op->id == TILE_OP_FILL) {
            a = tile_op_operand(op, 0);
            continue;
        }
        if (op->id != TILE_OP_SELECT || !is_zero(tile_op_named(op, TILE_OPERAND_Y))) return NULL;
        TileValue *found = part_of_mask(tile_op_operand(op, 0), loop, 0);
        if (found) return found;
        a = tile_op_operand(op, 1);
    }
    return NULL;
}

/* ---- loops that add ---- */

/* Does the loop only pass on what `sum` makes of what it carries? */
static bool only_adds(const TileOp *loop, const TileValue *sum, const TileValue *start) {
    const TileBlock *body = &loop->regions[0];
    return loop->id == TILE_OP_FOR && loop->result_count == 1 && body->arguments[1] == start && tile_value_has_one_use(start) &&
           tile_value_has_one_use(sum) && tile_op_operand(body->last, 0) == sum;
}

unsigned tile_adding_loops(const TileOp *dot, TileOp **loops, unsigned most) {
    const TileValue *sum = tile_op_result(dot, 0), *start = tile_op_named(dot, TILE_OPERAND_SUM);
    unsigned count = 0;
    for (TileOp *loop = dot->block->op; loop && count < most && only_adds(loop, sum, start); loop = loop->block->op) {
        loops[count++] = loop;
        sum = tile_op_result(loop, 0);
        start = tile_loop_carried(loop, 0);
    }
    return count;
}
