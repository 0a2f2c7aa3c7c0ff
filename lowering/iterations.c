#include "lowering/iterations.h"

#include "lang/ir/build.h"
#include "lang/ir/operands.h"

enum { MOST_DEPTH = 8 };

/* The least distance of bounds hi and lo that is a positive constant: hi is at most each operand of its `min`, lo at least each operand
 * of its `max`. If lo + distance wraps, hi is below lo, and there is no iteration. */
static void find_distance(TileIndices *indices, const TileValue *hi, const TileValue *lo, unsigned depth, int64_t *least) {
    const TileOp *min = tile_value_def(hi, TILE_OP_MIN), *max = tile_value_def(lo, TILE_OP_MAX);
    int64_t distance;
    if (depth && min) {
        for (unsigned i = 0; i < 2; i++) find_distance(indices, tile_op_operand(min, i), lo, depth - 1, least);
    } else if (depth && max) {
        for (unsigned i = 0; i < 2; i++) find_distance(indices, hi, tile_op_operand(max, i), depth - 1, least);
    } else if (tile_index_offset(indices, hi, lo, &distance) && distance > 0 && distance < *least) {
        *least = distance;
    }
}

int64_t tile_most_iterations(TileIndices *indices, const TileOp *loop, int64_t limit) {
    int64_t step, least = limit + 1;
    if (!tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &step) || step != 1) return 0;
    find_distance(indices, tile_op_named(loop, TILE_OPERAND_HI), tile_op_named(loop, TILE_OPERAND_LO), MOST_DEPTH, &least);
    return least > limit ? 0 : least;
}
