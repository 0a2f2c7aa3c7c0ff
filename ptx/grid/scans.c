#include "ptx/grid/scans.h"

#include "lang/scalar/scalar.h"

TileOpId gpu_scan_op(const TileOp *fold, uint64_t *identity) {
    const TileBlock *body = &fold->regions[0];
    const TileOp *op = body->first;
    if (fold->result_count != 1 || !op || op->operand_count != 2 || !op->next || op->next->id != TILE_OP_YIELD)
        return TILE_OP_COUNT;
    const TileValue *x = tile_op_operand(op, 0), *y = tile_op_operand(op, 1);
    if (x == y || x->block != body || y->block != body || tile_op_operand(op->next, 0) != &op->results[0])
        return TILE_OP_COUNT;
    TileScalar scalar = x->type->scalar;
    if (op->id == TILE_OP_ADD)
        *identity = tile_scalar_is_float(scalar) ? UINT64_C(1) << (tile_scalar_bits(scalar) - 1) : 0;
    else if (op->id == TILE_OP_MUL)
        *identity = tile_scalar_from_integer(scalar, 1);
    else if (op->id == TILE_OP_MAX || op->id == TILE_OP_MIN)
        *identity = op->id == TILE_OP_MAX ? tile_scalar_least(scalar) : tile_scalar_greatest(scalar);
    else
        return TILE_OP_COUNT;
    return (TileOpId)op->id;
}

/* A tile, and the fill that replaced its elements outside of a range. */
typedef struct Filled {
    const TileValue *tile;
    const TileOp *fill; /* NULL: none */
} Filled;

/* The fill that defines the value, also where gpu-whole has put it into a branch. */
static const TileOp *find_fill(const TileValue *value) {
    const TileOp *op = value->op;
    if (!op || op->id != TILE_OP_IF || op->result_count != 1) return tile_value_def(value, TILE_OP_FILL);
    const TileValue *kept = tile_op_operand(op->regions[0].last, 0);
    const TileOp *fill = tile_value_def(tile_op_operand(op->regions[1].last, 0), TILE_OP_FILL);
    return fill && tile_op_operand(fill, 0) == kept ? fill : NULL;
}

/* Does the fill write the identity element, or a zero of either sign in a sum? */
static bool fills_identity(const TileOp *fill, TileOpId id, uint64_t identity) {
    const TileOp *with = tile_value_def(tile_op_operand(fill, 1), TILE_OP_CONST);
    if (!with) return false;
    uint64_t bits = tile_op_get(with, TILE_ATTRIBUTE_VALUE)->bits;
    return bits == identity || (id == TILE_OP_ADD && bits == 0);
}

/* Do two fills keep the same elements? */
static bool keep_same(const TileOp *fill, const TileOp *other) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES), *its = tile_op_get(other, TILE_ATTRIBUTE_AXES);
    if (axes->count != its->count) return false;
    for (unsigned i = 0; i < axes->count; i++)
        if (axes->integers[i] != its->integers[i]) return false;
    for (unsigned i = 2; i < fill->operand_count; i++)
        if (!tile_value_is_same(tile_op_operand(fill, i), tile_op_operand(other, i))) return false;
    return true;
}

/* Looks through all fills that keep the same elements. */
static Filled without_fills(const TileValue *value, TileOpId id, uint64_t identity) {
    Filled result = {value, NULL};
    for (const TileOp *fill = find_fill(value); fill; fill = find_fill(result.tile)) {
        if (!fills_identity(fill, id, identity) || (result.fill && !keep_same(fill, result.fill))) break;
        result = (Filled){tile_op_operand(fill, 0), fill};
    }
    return result;
}

bool gpu_scan_matches_reduce(const TileOp *scan, const TileOp *reduce, TileOpId id) {
    uint64_t identity;
    if (gpu_scan_op(scan, &identity) != id || scan->block != reduce->block) return false;
    if (tile_op_integer(scan, TILE_ATTRIBUTE_AXIS, 0) != tile_op_integer(reduce, TILE_ATTRIBUTE_AXIS, 0)) return false;
    Filled mine = without_fills(tile_op_operand(scan, 0), id, identity),
           other = without_fills(tile_op_operand(reduce, 0), id, identity);
    if (mine.tile != other.tile || !mine.fill != !other.fill) return false;
    return !mine.fill || keep_same(mine.fill, other.fill);
}

bool gpu_scan_matches_fold(const TileOp *scan, const TileOp *fold, TileArena *scratch) {
    if (scan->id != TILE_OP_SCAN || fold->id != TILE_OP_FOLD || scan->block != fold->block) return false;
    if (tile_op_integer(scan, TILE_ATTRIBUTE_REVERSE, 0) || scan->operand_count != fold->operand_count) return false;
    if (tile_op_integer(scan, TILE_ATTRIBUTE_AXIS, 0) != tile_op_integer(fold, TILE_ATTRIBUTE_AXIS, 0)) return false;
    if (tile_op_has_part(scan, TILE_PARTS_MASK) != tile_op_has_part(fold, TILE_PARTS_MASK)) return false;
    if (tile_op_has_part(scan, TILE_PARTS_INIT) != tile_op_has_part(fold, TILE_PARTS_INIT)) return false;
    for (unsigned i = 0; i < scan->operand_count; i++)
        if (!tile_value_is_same(tile_op_operand(scan, i), tile_op_operand(fold, i))) return false;
    return tile_combiner_is_same(&scan->regions[0], &fold->regions[0], scratch);
}
