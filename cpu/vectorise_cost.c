/* The kind of a loop of a nest, and the cost of its accesses in each iteration. */
#include "cpu/vectorise.h"
#include "lang/ir/operands.h"

enum { UNKNOWN_EXTENT = 1 << 20, GATHER_COST = 8, SCATTER_COST = 10, GROUP_COST = 3 };

TileName tile_loop_kind(const TileOp *loop) { return (TileName)tile_op_integer(loop, TILE_ATTRIBUTE_LOOP_KIND, 0); }

int64_t tile_loop_extent(const TileOp *loop) {
    int64_t extent = tile_op_integer(loop, TILE_ATTRIBUTE_EXTENT, 0);
    return extent > 0 ? extent : UNKNOWN_EXTENT;
}

bool tile_loop_in_stripes(const TileOp *loop) {
    return tile_loop_kind(loop) == TILE_LOOP_KIND_REDUCE &&
           tile_op_integer(loop, TILE_ATTRIBUTE_ORDER, TILE_ORDER_SERIAL) == TILE_ORDER_STRIPES;
}

/* The accesses of the block that are members of groups, and those of blocks inside of it. */
static void find_groups(TileStrides *strides, const TileBlock *block, TileMap *grouped) {
    for (TileOp *op = block->first; op; op = op->next) {
        TileGroup group;
        for (unsigned i = 0; i < op->region_count; i++) find_groups(strides, &op->regions[i], grouped);
        if ((op->id != TILE_OP_LOAD && op->id != TILE_OP_STORE) || tile_map_get(grouped, op)) continue;
        if (!tile_group_find(strides, op, &group)) continue;
        for (unsigned i = 0; i < group.count; i++) tile_map_set(grouped, group.members[i], group.members[i]);
    }
}

bool tile_has_groups(TileStrides *strides, const TileBlock *block) {
    TileMap grouped;
    tile_map_init(&grouped, strides->arena);
    find_groups(strides, block, &grouped);
    return grouped.count != 0;
}

static int64_t cost_of_block(TileStrides *strides, const TileBlock *block, TileMap *grouped, bool *far);

int64_t tile_access_cost(TileStrides *strides, const TileBlock *block, bool *far) {
    TileMap grouped;
    tile_map_init(&grouped, strides->arena);
    find_groups(strides, block, &grouped);
    return cost_of_block(strides, block, &grouped, far);
}

static int64_t cost_of_block(TileStrides *strides, const TileBlock *block, TileMap *grouped, bool *far) {
    int64_t cost = 0;
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->region_count; i++) cost += cost_of_block(strides, &op->regions[i], grouped, far);
        bool load = op->id == TILE_OP_LOAD;
        if (!load && op->id != TILE_OP_STORE) continue;
        TileSlope stride = tile_stride_of(strides, tile_op_named(op, TILE_OPERAND_ADDRESS));
        TileScalar scalar = load ? op->results[0].type->scalar : tile_op_operand(op, 0)->type->scalar;
        bool near =
            stride.kind == TILE_SLOPE_AFFINE && !stride.factor && stride.step == (int64_t)tile_scalar_bytes(scalar);
        if (near || (load && stride.kind == TILE_SLOPE_UNIFORM)) {
            cost += 1;
        } else if (tile_map_get(grouped, op) || (load && tile_stride_is_short(strides->target, stride, scalar))) {
            cost += GROUP_COST;
            *far = true;
        } else {
            cost += load ? GATHER_COST : SCATTER_COST;
            *far = true;
        }
    }
    return cost;
}
