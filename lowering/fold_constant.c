/* Folds of elementwise ops with constant operands, by the only definition of their meaning (lang/ir/eval.h). */
#include "lang/ir/eval.h"
#include "lowering/fold.h"

/* Approximations of the hardware have no defined bits to fold to, and `opaque` hides its operand. */
static bool is_foldable(const TileOp *op) {
    return tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE && op->id != TILE_OP_OPAQUE &&
           op->operand_count <= 3 && !tile_op_integer(op, TILE_ATTRIBUTE_APPROX, 0);
}

/* Bits of the mantissa, with the implicit one, and of the exponent. */
static const struct {
    unsigned mantissa, exponent;
} formats[TILE_SCALAR_COUNT] = {[TILE_F8E4M3] = {4, 4}, [TILE_F8E5M2] = {3, 5}, [TILE_F16] = {11, 5},
                                [TILE_BF16] = {8, 8},   [TILE_F32] = {24, 8},   [TILE_F64] = {53, 11}};

/* Is the conversion lossless: is every value of `from` a value of `to`? */
static bool is_lossless(TileScalar from, TileScalar to) {
    if (from == to) return true;
    unsigned bits = tile_scalar_bits(from);
    bool is_signed = tile_scalar_class(from) == TILE_CLASS_SIGNED;
    if (tile_scalar_is_float(to)) {
        if (tile_scalar_is_float(from))
            return formats[from].mantissa <= formats[to].mantissa && formats[from].exponent <= formats[to].exponent;
        /* f8 and f16 overflow before their mantissas lose integers. */
        return bits - is_signed <= formats[to].mantissa && tile_scalar_bits(to) >= 16;
    }
    if (to == TILE_BOOL || tile_scalar_is_float(from)) return false;
    if (tile_scalar_class(to) == TILE_CLASS_SIGNED) return bits < tile_scalar_bits(to);
    return !is_signed && bits <= tile_scalar_bits(to);
}

static uint64_t fraction_mask(TileScalar scalar) { return (UINT64_C(1) << (formats[scalar].mantissa - 1)) - 1; }

/* Two conversions are one if the first is lossless, or if both truncate or extend integers and the second keeps no
 * more bits than the first. */
static TileValue *fold_convert(TileBuilder *builder, const TileOp *op) {
    TileValue *x = tile_op_operand(op, 0);
    const TileType *type = op->results[0].type;
    if (x->type == type) return x;
    TileOp *inner = tile_value_def(x, TILE_OP_CONVERT);
    if (!inner) return NULL;
    TileValue *source = tile_op_operand(inner, 0);
    TileScalar from = source->type->scalar, middle = x->type->scalar, to = type->scalar;
    bool cuts = tile_scalar_is_int(from) && tile_scalar_is_int(middle) && tile_scalar_is_int(to) &&
                tile_scalar_bits(to) <= tile_scalar_bits(middle);
    /* A float that does not fit an integer saturates, an integer wraps. */
    bool saturates = tile_scalar_is_int(from) && tile_scalar_is_float(middle) && tile_scalar_is_int(to);
    if (from == TILE_F8E5M2 && to == from) return NULL; /* converted back, an infinity becomes the largest number */
    if (saturates ? !is_lossless(from, middle) || !is_lossless(from, to) : !is_lossless(from, middle) && !cuts)
        return NULL;
    return tile_build_convert(builder, source, to);
}

static TileValue *fold_bitcast(TileBuilder *builder, const TileOp *op) {
    TileValue *x = tile_op_operand(op, 0);
    const TileType *type = op->results[0].type;
    if (x->type == type) return x;
    TileOp *inner = tile_value_def(x, TILE_OP_BITCAST);
    return inner ? tile_build_bitcast(builder, tile_op_operand(inner, 0), type->scalar) : NULL;
}

/* x / 2^k is x * 2^-k, exactly, if both powers are normal numbers. */
static TileValue *fold_division(TileBuilder *builder, const TileOp *op) {
    TileValue *x = tile_op_operand(op, 0), *y = tile_op_operand(op, 1);
    TileScalar scalar = y->type->scalar;
    uint64_t divisor, one = tile_scalar_from_integer(scalar, 1), reciprocal, product;
    if (!tile_scalar_is_float(scalar) || tile_scalar_bits(scalar) < 16 || !tile_value_bits(y, &divisor)) return NULL;
    uint64_t fraction = fraction_mask(scalar);
    if (divisor & fraction || !tile_eval(TILE_OP_DIV, scalar, scalar, (uint64_t[]){one, divisor}, &reciprocal))
        return NULL;
    bool exact = !(reciprocal & fraction) &&
                 tile_eval(TILE_OP_MUL, scalar, scalar, (uint64_t[]){reciprocal, divisor}, &product) && product == one;
    return exact ? tile_build_binary(builder, TILE_OP_MUL, x, tile_build_bits(builder, y->type, reciprocal)) : NULL;
}

TileValue *tile_fold_constant(TileBuilder *builder, const TileOp *op) {
    if (!is_foldable(op)) return NULL;
    uint64_t bits[3], result;
    unsigned known = 0;
    while (known < op->operand_count && tile_value_bits(tile_op_operand(op, known), &bits[known])) known++;
    const TileType *type = op->results[0].type;
    TileScalar operand = tile_eval_operand_type(op);
    if (known == op->operand_count && tile_eval((TileOpId)op->id, operand, type->scalar, bits, &result))
        return tile_build_bits(builder, type, result);
    if (op->id == TILE_OP_CONVERT) return fold_convert(builder, op);
    if (op->id == TILE_OP_DIV) return fold_division(builder, op);
    return op->id == TILE_OP_BITCAST ? fold_bitcast(builder, op) : NULL;
}
