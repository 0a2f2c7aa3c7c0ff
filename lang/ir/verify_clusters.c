/* Clusters of blocks: ops that reach into other blocks of a cluster stand in a phase whose blocks are in one, and speak to all of
 * them; a grid has rows for clusters that its kernel asks for. */
#include "lang/ir/ir.h"
#include "lang/ir/verify.h"

static bool has_part_for_each(const TileOp *reduce, int64_t blocks) {
    const TileAttribute *axis = tile_op_get(reduce, TILE_ATTRIBUTE_AXIS);
    return !axis || reduce->results[0].type->extent[axis->integer] * blocks == tile_op_operand(reduce, 0)->type->extent[axis->integer];
}

/* Does the loop name the extent of a tensor that blocks of a cluster share? */
static const char *row_misuse(const TileOp *op) {
    const TileAttribute *row = tile_op_get(op, TILE_ATTRIBUTE_ROW);
    const TileFunc *func = tile_op_func(op);
    if (!func) return NULL;
    if (row->count != 2 || row->integers[0] < 0 || row->integers[0] >= (int64_t)func->body.argument_count) return "`row` is an argument and its dimension";
    const TileType *type = func->body.arguments[row->integers[0]]->type;
    if (type->kind != TILE_TYPE_TENSOR || row->integers[1] < 0 || row->integers[1] >= (int64_t)type->rank) return "`row` is an argument and its dimension";
    return func->cluster < 2 ? "the block is in no cluster" : NULL;
}

const char *tile_cluster_misuse(const TileOp *op) {
    const TileAttribute *multicast = tile_op_get(op, TILE_ATTRIBUTE_MULTICAST);
    bool reduces = op->id == TILE_OP_CLUSTER_REDUCE;
    if (tile_op_get(op, TILE_ATTRIBUTE_ROW)) return row_misuse(op);
    bool of_cluster = op->id == TILE_OP_CLUSTER_BARRIER || op->id == TILE_OP_CLUSTER_RANK || op->id == TILE_OP_LOAD_PEER || reduces || multicast;
    const TileFunc *func = of_cluster ? tile_op_func(op) : NULL;
    if (!func) return NULL;
    bool of_kernel = op->id == TILE_OP_GRID || (reduces && func->kind == TILE_FUNC_KERNEL);
    if (func->kind != (of_kernel ? TILE_FUNC_KERNEL : TILE_FUNC_PHASE) || func->cluster < 2) return "the block is in no cluster";
    if (op->id == TILE_OP_LOAD_PEER && tile_op_integer(op, TILE_ATTRIBUTE_RANK, 0) >= (int64_t)func->cluster) return "the cluster has fewer blocks";
    if (reduces && !has_part_for_each(op, func->cluster)) return "the cluster has not as many blocks as the tile has parts";
    return multicast && multicast->integer != (int64_t)func->cluster ? "the cluster has another number of blocks" : NULL;
}
