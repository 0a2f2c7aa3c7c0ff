#include "lowering/memory.h"

#include "lang/ir/operands.h"

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

bool tile_memory_is_constant(const TileValue *tensor) {
    return !tensor->op && tensor->type->access == TILE_ACCESS_IN && is_noalias(tensor);
}

bool tile_memory_is_written(const TileOp *op, const TileValue *read) {
    if (op->id == TILE_OP_CLUSTER_REDUCE) return false; /* what blocks exchange no load reads */
    if ((tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_WRITES) && !op->region_count &&
        tile_memory_overlaps(tile_memory_tensor(op), read))
        return true;
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next)
            if (tile_memory_is_written(inner, read)) return true;
    return false;
}

/* Is the number one that the program loads, or computed of such a one? */
static bool is_loaded(const TileValue *value) {
    const TileOp *op = value->op;
    if (!op || tile_type_is_tile(value->type)) return false;
    if (op->id == TILE_OP_LOAD_TILE) return true;
    bool is = false;
    for (unsigned i = 0; tile_op_is_pure(op) && !op->region_count && i < op->operand_count; i++) is |= is_loaded(tile_op_operand(op, i));
    return is;
}

bool tile_goes_through_list(const TileOp *loop) {
    return loop->id == TILE_OP_FOR && is_loaded(tile_op_named(loop, TILE_OPERAND_LO)) && is_loaded(tile_op_named(loop, TILE_OPERAND_HI));
}
