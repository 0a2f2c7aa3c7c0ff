#include "ptx/layouts/beside.h"

#include "lang/ir/operands.h"
#include "lang/ir/build.h"

#include <stdlib.h>

bool gpu_lies_beside(TileIndices *indices, const TileOp *load, const TileOp *other, int64_t *distance) {
    TileAccessIndex a[TILE_MAX_TENSOR_RANK], b[TILE_MAX_TENSOR_RANK];
    if (other->id != TILE_OP_LOAD_TILE || tile_op_operand(load, 0) != tile_op_operand(other, 0)) return false;
    if (!tile_type_is_tile(load->results[0].type) || load->results[0].type != other->results[0].type) return false;
    unsigned last = tile_access_read(load, a) - 1;
    if (tile_access_read(other, b) != last + 1 || a[last].kind != TILE_ACCESS_RANGE || b[last].kind != TILE_ACCESS_RANGE) return false;
    if (a[last].axis != b[last].axis || a[last].step != b[last].step) return false;
    for (unsigned d = 0; d < last; d++)
        if (a[d].kind != b[d].kind || a[d].first != b[d].first || a[d].axis != b[d].axis || a[d].step != b[d].step) return false;
    return tile_index_offset(indices, b[last].first, a[last].first, distance);
}

bool gpu_has_beside(TileIndices *indices, const TileOp *load, int64_t within) {
    int64_t distance;
    for (const TileOp *other = load->block->first; other; other = other->next)
        if (other != load && gpu_lies_beside(indices, load, other, &distance) && llabs(distance) < within) return true;
    return false;
}

static bool is_constant_behind(TileIndices *indices, const TileValue *number, int64_t width, unsigned depth, int64_t sign, int64_t *distance) {
    enum { DEEPEST = 4 };
    int64_t constant;
    const TileOp *op = number->op;
    TileIndexRange range = tile_index_range(indices, number);
    if (!range.because && range.multiple % width == 0) return true;
    if (tile_value_integer(number, &constant)) return *distance += sign * (constant & (width - 1)), true;
    if (!op || depth == DEEPEST || (op->id != TILE_OP_ADD && op->id != TILE_OP_SUB)) return false;
    int64_t other = op->id == TILE_OP_SUB ? -sign : sign;
    return is_constant_behind(indices, tile_op_operand(op, 0), width, depth + 1, sign, distance) &&
           is_constant_behind(indices, tile_op_operand(op, 1), width, depth + 1, other, distance);
}

bool gpu_begins_behind(TileIndices *indices, const TileValue *number, int64_t width, int64_t *distance) {
    *distance = 0;
    bool known = is_constant_behind(indices, number, width, 0, 1, distance);
    *distance &= width - 1;
    return known;
}
