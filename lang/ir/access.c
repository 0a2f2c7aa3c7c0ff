#include "lang/ir/access.h"

#include "lang/ir/build.h"
#include "lang/ir/operands.h"

bool tile_access_is_apart(const TileOp *op, const TileOp *loop) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    int64_t loop_step;
    if (loop->id != TILE_OP_FOR || !tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &loop_step)) return false;
    const TileType *type = op->id == TILE_OP_STORE_TILE ? tile_op_named(op, TILE_OPERAND_VALUE)->type : op->results[0].type;
    unsigned rank = tile_access_read(op, indices);
    for (unsigned d = 0; d < rank; d++) {
        const TileAccessIndex *index = &indices[d];
        if (index->kind == TILE_ACCESS_GATHER || index->first != loop->regions[0].arguments[0]) continue;
        if (index->kind == TILE_ACCESS_INDEX) return true;
        if (tile_value_is_integer(index->step, 1) && type->extent[index->axis] <= loop_step) return true;
    }
    return false;
}
