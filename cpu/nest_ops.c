/* Scalar ops of a nest. Each op is emitted in the outermost open loop in which its operands are defined, so that
 * loop-invariant ones are computed once; constants are at the front. */
#include "cpu/nest.h"
#include "lang/ir/operands.h"

TileValue *nest_constant(Nest *n, int64_t value) {
    const void *key = (const void *)(uintptr_t)(uint64_t)value;
    TileValue *known = tile_map_get(&n->constants, key);
    if (known) return known;
    TileBuilder b = tile_builder_at_end(n->module, &n->entry);
    TileValue *constant = tile_build_i64(&b, value);
    tile_map_set(&n->constants, key, constant);
    return constant;
}

TileValue *nest_bits(Nest *n, TileScalar scalar, uint64_t bits) {
    TileBuilder b = tile_builder_at_end(n->module, &n->entry);
    return tile_build_bits(&b, tile_type_scalar(n->module->context, scalar), bits);
}

unsigned nest_level(const Nest *n, const TileValue *value) {
    const TileBlock *block = tile_value_block(value);
    for (unsigned i = n->open_count; i-- > 1;)
        if (n->open[i].block == block) return i;
    return 0;
}

TileBuilder nest_builder_at(Nest *n, unsigned level, const TileOp *like) {
    TileBuilder b = tile_builder_at_end(n->module, n->open[level].block);
    if (level + 1 < n->open_count) b.before = n->open[level + 1].loop;
    if (like) b.location = like->location;
    return b;
}

TileBuilder nest_builder(Nest *n, TileValue *const *values, unsigned count, const TileOp *like) {
    unsigned level = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned own = nest_level(n, values[i]);
        if (own > level) level = own;
    }
    return nest_builder_at(n, level, like);
}

TileValue *nest_op(Nest *n, TileOpId id, TileValue *const *operands, unsigned count, TileScalar result,
                   const TileOp *like) {
    TileBuilder b = nest_builder(n, operands, count, like);
    const TileType *type = tile_type_scalar(n->module->context, result);
    bool same = like && like->id == id;
    TileOp *op = tile_build_op(&b, id, operands, count, same ? like->attributes : NULL,
                               same ? like->attribute_count : 0, &type, 1);
    return tile_op_result(op, 0);
}

static bool folds(TileOpId id, TileValue *x, TileValue *y, int64_t *result) {
    int64_t a, b;
    if (!tile_value_integer(x, &a) || !tile_value_integer(y, &b)) return false;
    if (id == TILE_OP_ADD)
        *result = (int64_t)((uint64_t)a + (uint64_t)b);
    else if (id == TILE_OP_SUB)
        *result = (int64_t)((uint64_t)a - (uint64_t)b);
    else if (id == TILE_OP_MUL)
        *result = (int64_t)((uint64_t)a * (uint64_t)b);
    else if (id == TILE_OP_MIN)
        *result = a < b ? a : b;
    else if (id == TILE_OP_MAX)
        *result = a > b ? a : b;
    else
        return false;
    return true;
}

TileValue *nest_binary(Nest *n, TileOpId id, TileValue *x, TileValue *y) {
    int64_t result;
    if (folds(id, x, y, &result)) return nest_constant(n, result);
    if (id == TILE_OP_ADD && tile_value_is_integer(x, 0)) return y;
    if ((id == TILE_OP_ADD || id == TILE_OP_SUB) && tile_value_is_integer(y, 0)) return x;
    if (id == TILE_OP_MUL && (tile_value_is_integer(x, 1) || tile_value_is_integer(y, 0))) return y;
    if (id == TILE_OP_MUL && (tile_value_is_integer(y, 1) || tile_value_is_integer(x, 0))) return x;
    if ((id == TILE_OP_MIN || id == TILE_OP_MAX) && x == y) return x;
    TileValue *operands[] = {x, y};
    return nest_op(n, id, operands, 2, TILE_I64, NULL);
}

TileValue *nest_offset(Nest *n, TileValue *pointer, TileValue *bytes) {
    if (tile_value_is_integer(bytes, 0)) return pointer;
    TileValue *operands[] = {pointer, bytes};
    TileBuilder b = nest_builder(n, operands, 2, NULL);
    return tile_build_ptr_add(&b, pointer, bytes);
}

/* A bound that is needed ahead of its op, which computes it again at its own place. */
static TileValue *early(Nest *n, const TileValue *value) {
    const TileOp *op = value->op;
    TileValue *operands[4];
    for (unsigned i = 0; i < op->operand_count; i++) operands[i] = nest_scalar(n, tile_op_operand(op, i));
    return nest_op(n, (TileOpId)op->id, operands, op->operand_count, value->type->scalar, op);
}

TileValue *nest_scalar(Nest *n, TileValue *value) {
    NestInfo *info = nest_info(n, value);
    uint64_t bits;
    int64_t number;
    if (info->mapped) return info->mapped;
    if (value->op && tile_op_info((TileOpId)value->op->id)->class == TILE_CLASS_ELEMENTWISE && value->op->operand_count)
        return early(n, value);
    if (value->type->scalar == TILE_I64 && tile_value_integer(value, &number))
        info->mapped = nest_constant(n, number);
    else if (tile_value_bits(value, &bits))
        info->mapped = nest_bits(n, value->type->scalar, bits);
    else
        n->failure = "a scalar is used before it is computed";
    return info->mapped ? info->mapped : nest_bits(n, value->type->scalar, 0);
}
