/* Are lanes of a tile certainly equal? For the warning that they access one element. */
#include "lang/scalar/scalar.h"
#include "parser/check/meet.h"

enum { MOST_VALUES = 64 };

/* The number of steps is limited, since values may be reached on several paths. */
typedef struct Search {
    unsigned left;
} Search;

static bool agrees(Search *search, const TileValue *value, unsigned axis);

static unsigned axes_before(const TileType *type, unsigned axis) {
    unsigned count = 0;
    for (unsigned i = 0; i < axis; i++) count += type->extent[i] != 1;
    return count;
}

/* For a reshape that only adds and drops axes of extent 1: the operand's axis that becomes this one. */
static bool reshaped_axis(const TileType *from, const TileType *to, unsigned axis, unsigned *source) {
    unsigned k = 0;
    for (unsigned i = 0; i < from->rank; i++) {
        if (from->extent[i] == 1) continue;
        while (k < to->rank && to->extent[k] == 1) k++;
        if (k == to->rank || to->extent[k] != from->extent[i]) return false;
        if (k++ == axis) *source = i;
    }
    return axes_before(from, from->rank) == axes_before(to, to->rank);
}

static bool is_zero(const TileValue *value) {
    const TileOp *op = value->op;
    if (tile_op_is(op, TILE_OP_SPLAT)) return is_zero(op->operands[0].value);
    return tile_op_is(op, TILE_OP_CONST) && tile_scalar_is_int(value->type->scalar) &&
           tile_op_get(op, TILE_ATTRIBUTE_VALUE)->bits == 0;
}

static bool operands_agree(Search *search, const TileOp *op, unsigned axis) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (op->id == TILE_OP_MUL && is_zero(op->operands[i].value)) return true;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!agrees(search, op->operands[i].value, axis)) return false;
    return true;
}

static bool agrees(Search *search, const TileValue *value, unsigned axis) {
    const TileOp *op = value->op;
    if (!tile_type_is_tile(value->type) || value->type->extent[axis] == 1) return true;
    if (!op || !search->left--) return search->left = 0, false;
    const TileType *from = op->operand_count ? op->operands[0].value->type : NULL;
    unsigned source = 0;
    switch ((TileOpId)op->id) {
    case TILE_OP_CONST:
    case TILE_OP_SPLAT: return true;
    case TILE_OP_IOTA: return tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) != axis;
    case TILE_OP_BROADCAST: return agrees(search, op->operands[0].value, axis);
    case TILE_OP_PERMUTE:
        source = (unsigned)tile_op_get(op, TILE_ATTRIBUTE_AXES)->integers[axis];
        return agrees(search, op->operands[0].value, source);
    case TILE_OP_RESHAPE:
        return tile_type_is_tile(from) && reshaped_axis(from, value->type, axis, &source) &&
               agrees(search, op->operands[0].value, source);
    default: break;
    }
    return tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE && operands_agree(search, op, axis);
}

bool tile_lanes_agree(const TileMeaning *m, unsigned axis) {
    Search search = {MOST_VALUES};
    return m->rank == 0 || (m->value && agrees(&search, m->value, axis));
}
