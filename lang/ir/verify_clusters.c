/* Clusters of blocks: ops that reach into other blocks of a cluster stand in a phase whose blocks are in one, and speak to all of
 * them; a grid has rows for clusters that its kernel asks for. */
#include "lang/ir/ir.h"
#include "lang/ir/verify.h"

static bool has_part_for_each(const TileOp *reduce, int64_t blocks) {
    const TileAttribute *axis = tile_op_get(reduce, TILE_ATTRIBUTE_AXIS);
    return !axis || reduce->results[0].type->extent[axis->integer] * blocks == tile_op_operand(reduce, 0)->type->extent[axis->integer];
}

const char *tile_cluster_misuse(const TileOp *op) {
    const TileAttribute *multicast = tile_op_get(op, TILE_ATTRIBUTE_MULTICAST);
    bool reduces = op->id == TILE_OP_CLUSTER_REDUCE;
    bool of_cluster = op->id == TILE_OP_CLUSTER_BARRIER || op->id == TILE_OP_CLUSTER_RANK || op->id == TILE_OP_LOAD_PEER || reduces || multicast;
    const TileFunc *func = of_cluster ? tile_op_func(op) : NULL;
    if (!func) return NULL;
    bool of_kernel = op->id == TILE_OP_GRID || (reduces && func->kind == TILE_FUNC_KERNEL);
    if (func->kind != (of_kernel ? TILE_FUNC_KERNEL : TILE_FUNC_PHASE) || func->cluster < 2) return "the block is in no cluster";
    if (op->id == TILE_OP_LOAD_PEER && tile_op_integer(op, TILE_ATTRIBUTE_RANK, 0) >= (int64_t)func->cluster) return "the cluster has fewer blocks";
    if (reduces && !has_part_for_each(op, func->cluster)) return "the cluster has not as many blocks as the tile has parts";
    return multicast && multicast->integer != (int64_t)func->cluster ? "the cluster has another number of blocks" : NULL;
}
