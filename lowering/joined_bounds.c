/* Bounds of lanes, and first places of ranges, where these become longer. */
#include "lang/ir/operands.h"
#include "lowering/joined.h"

/* Numbers that exclude no lane of one's range exclude none of all. */
static TileValue *widened(const TileJoin *join, int64_t factor, TileBuilder *b, TileValue *value) {
    int64_t number;
    const TileOp *chosen = tile_value_def(value, TILE_OP_SELECT);
    if (chosen && tile_joined_part(join, value) == TILE_JOIN_SAME) {
        TileValue *x = widened(join, factor, b, tile_op_named(chosen, TILE_OPERAND_X)),
                  *y = widened(join, factor, b, tile_op_named(chosen, TILE_OPERAND_Y));
        return tile_build_ternary(b, TILE_OP_SELECT, tile_op_operand(chosen, 0), x, y);
    }
    bool lanes = tile_value_integer(value, &number) && number >= join->size;
    return lanes ? tile_build_i64(b, number * factor) : value;
}

void tile_widen_number(const TileJoin *join, int64_t factor, TileOp *op, unsigned operand) {
    TileBuilder b = tile_builder_before(join->context->module, op);
    TileValue *value = tile_op_operand(op, operand), *wider = widened(join, factor, &b, value);
    if (wider != value) tile_op_set_operand(op, operand, wider);
}

typedef struct Widening {
    const TileJoin *join;
    int64_t factor;
} Widening;

static void widen_scalar(TileOp *op, void *state) {
    const Widening *widening = state;
    const TileJoin *join = widening->join;
    int64_t factor = widening->factor;
    if (op->result_count != 1 || tile_type_is_tile(op->results[0].type)) return;
    TileJoinPart part = tile_joined_part(join, &op->results[0]);
    if (part == TILE_JOIN_FIRST && op->id == TILE_OP_MUL && tile_op_operand(op, 0) == join->number && join->around->id == TILE_OP_GRID) {
        TileBuilder b = tile_builder_before(join->context->module, op);
        tile_op_set_operand(op, 1, tile_build_i64(&b, join->size * factor));
    }
    for (unsigned i = op->id == TILE_OP_SELECT; part == TILE_JOIN_BOUND && i < op->operand_count; i++)
        tile_widen_number(join, factor, op, i);
}

void tile_widen_joined(TileJoin *join, int64_t factor) {
    Widening widening = {join, factor};
    tile_block_walk(&join->around->regions[0], widen_scalar, &widening);
}
