/* Buffers in scratch memory, by the pointers into them. */
#include "cpu/buffers.h"

const TileValue *tile_buffer_of(const TileValue *pointer) {
    while (pointer->op && pointer->op->id == TILE_OP_PTR_ADD) pointer = tile_op_operand(pointer->op, 0);
    return pointer->op && pointer->op->id == TILE_OP_BUFFER ? pointer : NULL;
}

bool tile_op_inside(const TileOp *op, const TileOp *around) {
    for (; op; op = op->block->op)
        if (op == around) return true;
    return false;
}

unsigned tile_buffer_uses(const TileValue *pointer, const TileOp *loop) {
    unsigned count = 0;
    for (const TileUse *use = pointer->first_use; use; use = use->next) {
        if (use->user->id == TILE_OP_PTR_ADD)
            count += tile_buffer_uses(&use->user->results[0], loop);
        else
            count += tile_op_inside(use->user, loop);
    }
    return count;
}
