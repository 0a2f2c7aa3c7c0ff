/* Turns of programs: who asks or waits for one stands in a partition whose programs take turns, and a turn that begins ends
 * in the same block of ops, before another begins. */
#include "lang/ir/verify.h"

static bool is_order(const TileOp *op) { return op->id == TILE_OP_TURN_BEGIN || op->id == TILE_OP_TURN_END; }

/* Warpgroups of a program, where the op says so; else programs. */
static const char *why_no_turns(const TileOp *op) {
    enum { GROUP_WARPS = 4 };
    const TileBlock *block = op->block;
    int64_t groups = tile_op_integer(op, TILE_ATTRIBUTE_TURNS, 0);
    while (block->op && block->op->id != TILE_OP_PARTITIONS) block = block->op->block;
    bool first = block->op && block == &block->op->regions[0];
    int64_t turns = first ? tile_op_integer(block->op, TILE_ATTRIBUTE_TURNS, 1) : 1;
    if (!groups) return turns > 1 ? NULL : "stands in no partition whose programs take turns";
    bool fits = first && turns == 1 && groups > 1 && tile_op_get(block->op, TILE_ATTRIBUTE_WARPS)->integers[0] == groups * GROUP_WARPS;
    return fits ? NULL : "stands in no partition of so many warpgroups with one program";
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
    const char *why = why_no_turns(op);
    if (why) return why;
    if (op->id == TILE_OP_TURN) return NULL;
    const TileOp *other = next_order(op, begins);
    bool fits = other && other->id == (begins ? TILE_OP_TURN_END : TILE_OP_TURN_BEGIN) &&
                tile_op_operand(op, 0) == tile_op_operand(other, 0);
    if (fits) return NULL;
    return begins ? "the turn does not end in its block of ops" : "no such turn has begun in its block of ops";
}
