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
