/* Turns of programs: who asks or waits for one stands in a partition whose programs take turns, and a turn that begins ends
 * in the same block of ops, before another begins. */
#include "lang/ir/verify.h"

static bool is_order(const TileOp *op) { return op->id == TILE_OP_TURN_BEGIN || op->id == TILE_OP_TURN_END; }

static bool takes_turns(const TileBlock *block) {
    while (block->op && block->op->id != TILE_OP_PARTITIONS) block = block->op->block;
    return block->op && block == &block->op->regions[0] && tile_op_integer(block->op, TILE_ATTRIBUTE_TURNS, 1) > 1;
}

/* The next op that begins or ends a turn in the same block, or the one before. */
static const TileOp *next_order(const TileOp *op, bool forward) {
    do op = forward ? op->next : op->previous;
    while (op && !is_order(op));
    return op;
}

const char *tile_turn_misuse(const TileOp *op) {
    bool begins = op->id == TILE_OP_TURN_BEGIN;
    if (op->id != TILE_OP_TURN && !is_order(op)) return NULL;
    if (!takes_turns(op->block)) return "stands in no partition whose programs take turns";
    if (op->id == TILE_OP_TURN) return NULL;
    const TileOp *other = next_order(op, begins);
    bool fits = other && other->id == (begins ? TILE_OP_TURN_END : TILE_OP_TURN_BEGIN) &&
                tile_op_operand(op, 0) == tile_op_operand(other, 0);
    if (fits) return NULL;
    return begins ? "the turn does not end in its block of ops" : "no such turn has begun in its block of ops";
}
