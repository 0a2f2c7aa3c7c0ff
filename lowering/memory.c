#include "lowering/memory.h"

TileValue *tile_memory_tensor(const TileOp *op) {
    if (op->id != TILE_OP_LOAD_TILE && op->id != TILE_OP_STORE_TILE && op->id != TILE_OP_ATOMIC_TILE) return NULL;
    return tile_op_operand(op, 0);
}

static bool is_noalias(const TileValue *tensor) {
    if (tensor->op) return tensor->op->id == TILE_OP_TEMP;
    const TileBlock *block = tensor->block;
    if (block->op || !block->func) return false;
    return block->func->parameters[tensor->index].noalias;
}

bool tile_memory_overlaps(const TileValue *written, const TileValue *read) {
    if (!written || !read || written == read) return true;
    return !is_noalias(written) && !is_noalias(read);
}

bool tile_memory_is_written(const TileOp *op, const TileValue *read) {
    if ((tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_WRITES) && !op->region_count &&
        tile_memory_overlaps(tile_memory_tensor(op), read))
        return true;
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next)
            if (tile_memory_is_written(inner, read)) return true;
    return false;
}

bool tile_access_bounds(const TileOp *op, unsigned axis, TileValue **lo, TileValue **hi) {
    const TileAttribute *access = tile_op_get(op, TILE_ATTRIBUTE_ACCESS);
    unsigned operand = tile_access_first(op), kept = 0;
    bool gathered = false;
    for (unsigned i = 0; i < access->count; i++) {
        switch (access->integers[i]) {
        case TILE_ACCESS_RANGE:
            if (kept++ == axis) {
                *lo = tile_op_operand(op, operand + 2);
                *hi = tile_op_operand(op, operand + 3);
                return true;
            }
            operand += 4;
            break;
        case TILE_ACCESS_GATHER:
            if (!gathered && kept++ == axis) return false;
            gathered = true;
            operand++;
            break;
        default: operand++; break;
        }
    }
    return false;
}

unsigned tile_access_end(const TileOp *op) {
    const TileAttribute *access = tile_op_get(op, TILE_ATTRIBUTE_ACCESS);
    unsigned operand = tile_access_first(op);
    for (unsigned i = 0; i < access->count; i++) operand += access->integers[i] == TILE_ACCESS_RANGE ? 4 : 1;
    return operand;
}
