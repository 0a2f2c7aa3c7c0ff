/* Folds of ops that create and reshape values. Uniform computations move towards scalars: an op on splats becomes the
 * splat of the op, and an op on broadcasts of one shape the broadcast of the op. */
#include <string.h>

#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "lowering/fold.h"

static TileValue *build_shape(TileBuilder *builder, TileOpId id, TileValue *x, const TileType *type) {
    if (x->type == type) return x;
    return tile_build_op(builder, id, &x, 1, NULL, 0, &type, 1)->results;
}

/* A uniform value as a splat or constant of another shape; NULL: it is not known to be uniform. */
static TileValue *build_uniform(TileBuilder *builder, TileValue *x, const TileType *type) {
    uint64_t bits;
    if (tile_value_bits(x, &bits)) return tile_build_bits(builder, type, bits);
    TileOp *splat = tile_value_def(x, TILE_OP_SPLAT);
    return splat ? tile_build_splat(builder, tile_op_operand(splat, 0), type) : NULL;
}

static TileValue *fold_splat(TileBuilder *builder, const TileOp *op) {
    uint64_t bits;
    return tile_value_bits(tile_op_operand(op, 0), &bits) ? tile_build_bits(builder, op->results[0].type, bits) : NULL;
}

static TileValue *fold_broadcast(TileBuilder *builder, const TileOp *op) {
    TileValue *x = tile_op_operand(op, 0);
    const TileType *type = op->results[0].type;
    if (x->type == type) return x;
    TileOp *inner = tile_value_def(x, TILE_OP_BROADCAST);
    if (inner) return build_shape(builder, TILE_OP_BROADCAST, tile_op_operand(inner, 0), type);
    return build_uniform(builder, x, type);
}

static TileValue *fold_reshape(TileBuilder *builder, const TileOp *op) {
    TileValue *x = tile_op_operand(op, 0);
    const TileType *type = op->results[0].type;
    if (x->type == type) return x;
    TileOp *inner = tile_value_def(x, TILE_OP_RESHAPE);
    if (inner) return build_shape(builder, TILE_OP_RESHAPE, tile_op_operand(inner, 0), type);
    if (tile_type_is_scalar(x->type)) return tile_build_splat(builder, x, type);
    TileOp *splat = tile_value_def(x, TILE_OP_SPLAT);
    if (splat && tile_type_is_scalar(type)) return tile_op_operand(splat, 0);
    return build_uniform(builder, x, type);
}

static TileValue *fold_permute(TileBuilder *builder, const TileOp *op) {
    TileValue *x = tile_op_operand(op, 0);
    const int64_t *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES)->integers;
    unsigned rank = x->type->rank;
    bool identity = true;
    for (unsigned i = 0; i < rank; i++) identity &= axes[i] == (int64_t)i;
    if (identity) return x;
    TileOp *inner = tile_value_def(x, TILE_OP_PERMUTE);
    if (inner) {
        const int64_t *first = tile_op_get(inner, TILE_ATTRIBUTE_AXES)->integers;
        int64_t both[TILE_MAX_TILE_RANK];
        for (unsigned i = 0; i < rank; i++) both[i] = first[axes[i]];
        return tile_build_permute(builder, tile_op_operand(inner, 0), both);
    }
    return build_uniform(builder, x, op->results[0].type);
}

/* A slice within one operand of a cat is a slice of that operand. */
static TileValue *fold_slice(TileBuilder *builder, const TileOp *op) {
    TileValue *x = tile_op_operand(op, 0);
    const TileType *type = op->results[0].type;
    int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), offset = tile_op_integer(op, TILE_ATTRIBUTE_OFFSET, 0);
    if (x->type == type) return x;
    TileOp *cat = tile_value_def(x, TILE_OP_CAT), *slice = tile_value_def(x, TILE_OP_SLICE);
    if (slice && tile_op_integer(slice, TILE_ATTRIBUTE_AXIS, 0) == axis)
        return tile_build_slice(builder, tile_op_operand(slice, 0), axis,
                                offset + tile_op_integer(slice, TILE_ATTRIBUTE_OFFSET, 0), type->extent[axis]);
    if (!cat || tile_op_integer(cat, TILE_ATTRIBUTE_AXIS, 0) != axis) return build_uniform(builder, x, type);
    TileValue *first = tile_op_operand(cat, 0), *second = tile_op_operand(cat, 1);
    int64_t middle = first->type->extent[axis];
    if (offset + type->extent[axis] <= middle)
        return first->type == type ? first : tile_build_slice(builder, first, axis, offset, type->extent[axis]);
    if (offset < middle) return NULL;
    return second->type == type ? second : tile_build_slice(builder, second, axis, offset - middle, type->extent[axis]);
}

/* ---- fill ---- */

static bool covers_axis(const TileOp *fill, unsigned i) {
    int64_t lo, hi, axis = tile_op_get(fill, TILE_ATTRIBUTE_AXES)->integers[i];
    return tile_value_integer(tile_fill_lo(fill, i), &lo) && lo <= 0 &&
           tile_value_integer(tile_fill_hi(fill, i), &hi) &&
           hi >= tile_op_operand(fill, 0)->type->extent[axis];
}

static bool is_empty_axis(const TileOp *fill, unsigned i) {
    int64_t lo, hi;
    return tile_value_integer(tile_fill_lo(fill, i), &lo) &&
           tile_value_integer(tile_fill_hi(fill, i), &hi) && hi <= lo;
}

/* Has the other fill the axis with the same bounds? */
static bool has_axis(const TileOp *fill, int64_t axis, const TileValue *lo, const TileValue *hi) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    for (unsigned i = 0; i < axes->count; i++)
        if (axes->integers[i] == axis && tile_value_is_same(tile_fill_lo(fill, i), lo) &&
            tile_value_is_same(tile_fill_hi(fill, i), hi))
            return true;
    return false;
}

static TileValue *fold_fill(TileBuilder *builder, const TileOp *op) {
    TileValue *x = tile_op_operand(op, 0), *value = tile_op_operand(op, 1);
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    TileOp *inner = tile_value_def(x, TILE_OP_FILL);
    bool same_value = inner && tile_value_is_same(value, tile_op_operand(inner, 1));
    int64_t kept[TILE_MAX_TILE_RANK];
    TileValue *bounds[2 * TILE_MAX_TILE_RANK];
    unsigned count = 0;
    for (unsigned i = 0; i < axes->count; i++) {
        TileValue *lo = tile_fill_lo(op, i), *hi = tile_fill_hi(op, i);
        if (is_empty_axis(op, i)) return tile_build_splat(builder, value, op->results[0].type);
        if (covers_axis(op, i) || (same_value && has_axis(inner, axes->integers[i], lo, hi))) continue;
        kept[count] = axes->integers[i];
        bounds[2 * count] = lo;
        bounds[2 * count++ + 1] = hi;
    }
    uint64_t bits, fill_bits;
    TileOp *splat = tile_value_def(x, TILE_OP_SPLAT);
    if (count == 0 || (splat && tile_value_is_same(tile_op_operand(splat, 0), value))) return x;
    if (tile_value_bits(x, &bits) && tile_value_bits(value, &fill_bits) && bits == fill_bits) return x;
    return count < axes->count ? tile_build_fill(builder, x, value, kept, bounds, count) : NULL;
}

/* ---- reductions of one element ---- */

/* A sum of floats is not folded: +0 + -0 is +0. */
static TileValue *fold_reduce(TileBuilder *builder, const TileOp *op) {
    TileValue *x = tile_op_operand(op, 0);
    const TileType *type = op->results[0].type;
    int64_t kind = tile_op_integer(op, TILE_ATTRIBUTE_KIND, TILE_KIND_SUM);
    if (x->type->extent[tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0)] == 1 &&
        !(kind == TILE_KIND_SUM && tile_scalar_is_float(type->scalar)))
        return build_shape(builder, TILE_OP_RESHAPE, x, type);
    return tile_reduction_is_idempotent(tile_eval_reduction(kind)) ? build_uniform(builder, x, type) : NULL;
}

static TileValue *fold_iota(TileBuilder *builder, const TileOp *op) {
    const TileType *type = op->results[0].type;
    bool single = !type->scalable && type->extent[tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0)] == 1;
    return single ? tile_build_integer(builder, type, 0) : NULL;
}

/* ---- elementwise ops on uniform operands ---- */

/* A smaller shape for the elementwise op: scalar if all operands are uniform, the common source shape if they are
 * uniform or broadcasts; NULL: there is none. */
static const TileType *narrower_shape(TileBuilder *builder, const TileOp *op) {
    const TileType *narrow = NULL;
    bool varies = false; /* there is an operand that is not constant; else fold_constant applies */
    for (unsigned i = 0; i < op->operand_count; i++) {
        const TileValue *x = tile_op_operand(op, i);
        if (tile_type_is_scalar(x->type)) continue; /* the condition of a select */
        if (!x->op) return NULL;
        if (x->op->id == TILE_OP_CONST) continue;
        varies = true;
        if (x->op->id == TILE_OP_SPLAT) continue;
        if (x->op->id != TILE_OP_BROADCAST) return NULL;
        const TileType *from = tile_op_operand(x->op, 0)->type;
        if (narrow && !tile_type_same_shape(narrow, from)) return NULL;
        narrow = from;
    }
    if (!varies) return NULL;
    return narrow ? narrow : tile_type_scalar(builder->module->context, op->results[0].type->scalar);
}

/* The operand at the narrower shape. */
static TileValue *narrow(TileBuilder *builder, TileValue *x, const TileType *shape) {
    if (tile_type_is_scalar(x->type)) return x;
    TileOp *broadcast = tile_value_def(x, TILE_OP_BROADCAST);
    if (broadcast) return tile_op_operand(broadcast, 0);
    return build_uniform(builder, x, tile_type_with_scalar(builder->module->context, shape, x->type->scalar));
}

static TileValue *fold_elementwise(TileBuilder *builder, const TileOp *op) {
    const TileType *wide = op->results[0].type;
    if (tile_type_is_scalar(wide) || op->id == TILE_OP_OPAQUE || op->operand_count > 3) return NULL;
    const TileType *shape = narrower_shape(builder, op);
    if (!shape) return NULL;
    TileValue *operands[3];
    for (unsigned i = 0; i < op->operand_count; i++) operands[i] = narrow(builder, tile_op_operand(op, i), shape);
    const TileType *type = tile_type_with_scalar(builder->module->context, shape, wide->scalar);
    TileOp *made = tile_build_op(builder, (TileOpId)op->id, operands, op->operand_count, op->attributes,
                                 op->attribute_count, &type, 1);
    return build_shape(builder, tile_type_is_scalar(type) ? TILE_OP_SPLAT : TILE_OP_BROADCAST, made->results, wide);
}

TileValue *tile_fold_shape(TileBuilder *builder, const TileOp *op) {
    switch (op->id) {
    case TILE_OP_SPLAT: return fold_splat(builder, op);
    case TILE_OP_BROADCAST: return fold_broadcast(builder, op);
    case TILE_OP_RESHAPE: return fold_reshape(builder, op);
    case TILE_OP_PERMUTE: return fold_permute(builder, op);
    case TILE_OP_SLICE: return fold_slice(builder, op);
    case TILE_OP_FILL: return fold_fill(builder, op);
    case TILE_OP_REDUCE: return fold_reduce(builder, op);
    case TILE_OP_IOTA: return fold_iota(builder, op);
    default: break;
    }
    return tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE ? fold_elementwise(builder, op) : NULL;
}
