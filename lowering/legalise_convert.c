/* Conversions of the pass legalise. The back end has exact conversions among integers, between f32, f64 and integers,
 * between f16 and f32, and on some GPUs from f8 to f16 and from f32 to f8. The others are expanded into integer arithmetic:
 *
 *   bf16 -> f32      the upper half of the bits
 *   f32 -> bf16, f8  added half a unit (ties to even), then shifted
 *   wide -> narrow   through an f32 rounded to odd, which a second rounding cannot tell from the exact value
 */
#include <math.h>
#include <string.h>

#include "lang/scalar/scalar.h"
#include "lowering/emit.h"

enum { DEEPEST = 4 /* of ops below one another */ };

static bool is_narrow(TileScalar scalar) { return tile_scalar_is_float(scalar) && tile_scalar_bits(scalar) <= 16; }

static TileValue *cast(TileEmitter *e, TileValue *x, TileScalar to) { return tile_build_bitcast(&e->builder, x, to); }
static TileValue *convert(TileEmitter *e, TileValue *x, TileScalar to) {
    return tile_build_convert(&e->builder, x, to);
}

static TileValue *number(TileEmitter *e, const TileType *like, TileScalar scalar, double value) {
    return tile_emit_bits_like(e, like, scalar, tile_scalar_from_double(scalar, value));
}

/* ---- from narrow floats to f32, exactly ---- */

/* The exponent is moved to its position in an f32 and corrected by a product; the largest magnitude is the NaN. */
static TileValue *widen_e4m3(TileEmitter *e, TileValue *x) {
    TileValue *bits = convert(e, cast(e, x, TILE_U8), TILE_U32);
    TileValue *magnitude = tile_emit_with_bits(e, TILE_OP_AND, bits, 0x7f);
    TileValue *sign = tile_emit_with_bits(e, TILE_OP_SHL, tile_emit_binary(e, TILE_OP_XOR, bits, magnitude), 24);
    TileValue *small = cast(e, tile_emit_with_bits(e, TILE_OP_SHL, magnitude, 20), TILE_F32);
    TileValue *scaled = tile_emit_binary(e, TILE_OP_MUL, small, number(e, x->type, TILE_F32, 0x1p120));
    TileValue *is_nan = tile_emit_with_bits(e, TILE_OP_EQ, magnitude, 0x7f);
    TileValue *value = tile_emit_select(e, is_nan, number(e, x->type, TILE_F32, NAN), scaled);
    return cast(e, tile_emit_binary(e, TILE_OP_OR, cast(e, value, TILE_U32), sign), TILE_F32);
}

static TileValue *widen(TileEmitter *e, TileValue *x) {
    TileValue *bits;
    bool f8 = is_narrow(x->type->scalar) && tile_scalar_bits(x->type->scalar) == 8;
    if (e->target.has_f8 && f8) return convert(e, convert(e, x, TILE_F16), TILE_F32);
    switch (x->type->scalar) {
    case TILE_BF16:
        bits = convert(e, cast(e, x, TILE_U16), TILE_U32);
        return cast(e, tile_emit_with_bits(e, TILE_OP_SHL, bits, 16), TILE_F32);
    case TILE_F8E5M2:
        bits = convert(e, cast(e, x, TILE_U8), TILE_U16);
        return convert(e, cast(e, tile_emit_with_bits(e, TILE_OP_SHL, bits, 8), TILE_F16), TILE_F32);
    case TILE_F8E4M3: return widen_e4m3(e, x);
    default: return convert(e, x, TILE_F32);
    }
}

/* ---- from f32 to narrow floats ---- */

/* bits >> shift, rounded to nearest, ties to even. */
static TileValue *shift_to_even(TileEmitter *e, TileValue *bits, unsigned shift) {
    TileValue *odd = tile_emit_with_bits(e, TILE_OP_AND, tile_emit_with_bits(e, TILE_OP_SHR, bits, shift), 1);
    TileValue *up = tile_emit_with_bits(e, TILE_OP_ADD, bits, (1u << (shift - 1)) - 1);
    return tile_emit_with_bits(e, TILE_OP_SHR, tile_emit_binary(e, TILE_OP_ADD, up, odd), shift);
}

/* Is the f32 one that bf16 has: widened, a constant, or one of such, as the greater of two is? */
static bool is_short(const TileValue *x, unsigned depth) {
    const TileOp *op = x->op;
    uint64_t bits;
    int64_t shift;
    if (!op || !depth) return false;
    if (op->id == TILE_OP_BITCAST) {
        const TileOp *moved = tile_value_def(tile_op_operand(op, 0), TILE_OP_SHL);
        return moved && tile_value_integer(tile_op_operand(moved, 1), &shift) && shift == 16;
    }
    if (op->id == TILE_OP_CONST) return tile_value_bits(x, &bits) && (bits & 0xffff) == 0;
    unsigned first = op->id == TILE_OP_SELECT;
    if (op->id != TILE_OP_MIN && op->id != TILE_OP_MAX && op->id != TILE_OP_ABS && op->id != TILE_OP_NEG && !first) return false;
    for (unsigned i = first; i < op->operand_count; i++)
        if (!is_short(tile_op_operand(op, i), depth - 1)) return false;
    return true;
}

/* With half a unit, ties to even, or as a quiet NaN; of what bf16 has, the upper half as it is. Where lanes have masks, two sums and a choice between them are fewer
 * instructions than the last bit that stays as a number. */
static TileValue *narrow_bf16(TileEmitter *e, TileValue *x) {
    TileValue *bits = cast(e, x, TILE_U32), *up;
    if (is_short(x, DEEPEST)) return cast(e, convert(e, tile_emit_with_bits(e, TILE_OP_SHR, bits, 16), TILE_U16), TILE_BF16);
    if (e->target.has_masks) {
        TileValue *last = tile_emit_with_bits(e, TILE_OP_AND, bits, 0x10000);
        TileValue *odd = tile_emit_with_bits(e, TILE_OP_NE, last, 0);
        up = tile_emit_select(e, odd, tile_emit_with_bits(e, TILE_OP_ADD, bits, 0x8000), tile_emit_with_bits(e, TILE_OP_ADD, bits, 0x7fff));
    } else {
        TileValue *odd = tile_emit_with_bits(e, TILE_OP_AND, tile_emit_with_bits(e, TILE_OP_SHR, bits, 16), 1);
        up = tile_emit_binary(e, TILE_OP_ADD, tile_emit_with_bits(e, TILE_OP_ADD, bits, 0x7fff), odd);
    }
    TileValue *quiet = tile_emit_with_bits(e, TILE_OP_OR, bits, 0x400000);
    TileValue *result = tile_emit_select(e, tile_emit_unary(e, TILE_OP_ISNAN, x), quiet, up);
    return cast(e, convert(e, tile_emit_with_bits(e, TILE_OP_SHR, result, 16), TILE_U16), TILE_BF16);
}

/* Saturates. Subnormal numbers are rounded by adding a number with the same unit in the last place. */
static TileValue *narrow_f8(TileEmitter *e, TileValue *x, TileScalar to) {
    bool e4m3 = to == TILE_F8E4M3;
    unsigned mantissa = e4m3 ? 3 : 2;
    int bias = e4m3 ? 7 : 15;
    TileValue *largest = number(e, x->type, TILE_F32, e4m3 ? 448 : 57344);
    TileValue *bits = cast(e, x, TILE_U32);
    TileValue *a = tile_emit_unary(e, TILE_OP_ABS, x);
    a = tile_emit_select(e, tile_emit_binary(e, TILE_OP_LT, largest, a), largest, a);
    TileValue *normal = shift_to_even(e, cast(e, a, TILE_U32), 23 - mantissa);
    normal = tile_emit_with_bits(e, TILE_OP_SUB, normal, (uint64_t)(127 - bias) << mantissa);
    TileValue *unit = number(e, x->type, TILE_F32, ldexp(1, 24 - bias - (int)mantissa));
    TileValue *small = cast(e, tile_emit_binary(e, TILE_OP_ADD, a, unit), TILE_U32);
    small = tile_emit_binary(e, TILE_OP_SUB, small, cast(e, unit, TILE_U32));
    TileValue *is_small = tile_emit_binary(e, TILE_OP_LT, a, number(e, x->type, TILE_F32, ldexp(1, 1 - bias)));
    TileValue *nan = tile_emit_bits_like(e, x->type, TILE_U32, e4m3 ? 0x7f : 0x7e);
    TileValue *result = tile_emit_select(e, is_small, small, normal);
    result = tile_emit_select(e, tile_emit_unary(e, TILE_OP_ISNAN, x), nan, result);
    TileValue *sign = tile_emit_with_bits(e, TILE_OP_AND, tile_emit_with_bits(e, TILE_OP_SHR, bits, 24), 0x80);
    result = tile_emit_binary(e, TILE_OP_OR, result, sign);
    return cast(e, convert(e, result, TILE_U8), to);
}

static TileValue *narrow(TileEmitter *e, TileValue *x, TileScalar to) {
    if (to == TILE_BF16) return e->target.has_bf16_rounding ? convert(e, x, to) : narrow_bf16(e, x);
    return to == TILE_F16 || e->target.has_f8 ? convert(e, x, to) : narrow_f8(e, x, to);
}

/* ---- from wide types to narrow floats ---- */

/* f64 to f32, rounded to odd: an inexact result has its last bit set. f32 has at least two bits more than any narrow
 * float, so a second rounding is right. The nearest f32 is decremented if it is beyond x. */
static TileValue *round_to_odd(TileEmitter *e, TileValue *x) {
    TileValue *near = convert(e, x, TILE_F32), *back = convert(e, near, TILE_F64);
    TileValue *bits = cast(e, near, TILE_U32);
    TileValue *beyond =
        tile_emit_binary(e, TILE_OP_GT, tile_emit_unary(e, TILE_OP_ABS, back), tile_emit_unary(e, TILE_OP_ABS, x));
    TileValue *inexact = tile_emit_binary(e, TILE_OP_AND, tile_emit_binary(e, TILE_OP_NE, back, x),
                                          tile_emit_binary(e, TILE_OP_EQ, x, x));
    TileValue *odd = tile_emit_binary(e, TILE_OP_SUB, bits, convert(e, beyond, TILE_U32));
    return cast(e, tile_emit_binary(e, TILE_OP_OR, odd, convert(e, inexact, TILE_U32)), TILE_F32);
}

/* A 64-bit integer as an f64 that rounds to a narrow float like the integer: above 2^53 the lower bits are replaced
 * by one sticky bit. */
static TileValue *double_of_integer(TileEmitter *e, TileValue *x) {
    TileValue *lower = tile_emit_with_bits(e, TILE_OP_AND, x, 0x7ff);
    TileValue *some = tile_emit_with_bits(e, TILE_OP_AND, tile_emit_with_bits(e, TILE_OP_ADD, lower, 0x7ff), 0x800);
    TileValue *cut = tile_emit_with_bits(e, TILE_OP_AND, tile_emit_binary(e, TILE_OP_OR, x, some), ~(uint64_t)0x7ff);
    TileValue *magnitude = tile_emit_unary(e, TILE_OP_ABS, x);
    TileValue *is_large = tile_emit_with_bits(e, TILE_OP_GT, cast(e, magnitude, TILE_U64), (uint64_t)1 << 53);
    return convert(e, tile_emit_select(e, is_large, cut, x), TILE_F64);
}

/* The same of a 32-bit integer as an f32, above 2^24. Whether it lies above is asked by one comparison without a sign,
 * which the back end decides where it knows the upper bits. */
static TileValue *float_of_word(TileEmitter *e, TileValue *x) {
    uint32_t most = UINT32_C(1) << 24;
    TileValue *lower = tile_emit_with_bits(e, TILE_OP_AND, x, 0xff);
    TileValue *some = tile_emit_with_bits(e, TILE_OP_AND, tile_emit_with_bits(e, TILE_OP_ADD, lower, 0xff), 0x100);
    TileValue *cut = tile_emit_with_bits(e, TILE_OP_AND, tile_emit_binary(e, TILE_OP_OR, x, some), ~UINT32_C(0xff));
    TileValue *above = cast(e, x, TILE_U32);
    bool is_signed = x->type->scalar == TILE_I32;
    if (is_signed) above = tile_emit_with_bits(e, TILE_OP_ADD, above, most);
    TileValue *is_large = tile_emit_with_bits(e, TILE_OP_GT, above, is_signed ? 2 * most : most);
    return convert(e, tile_emit_select(e, is_large, cut, x), TILE_F32);
}

static TileValue *narrow_from_any(TileEmitter *e, TileValue *x, TileScalar to) {
    TileScalar from = x->type->scalar;
    if (is_narrow(from)) return narrow(e, widen(e, x), to);
    if (from == TILE_F32) return narrow(e, x, to);
    if (from == TILE_F64) return narrow(e, round_to_odd(e, x), to);
    if (tile_scalar_bits(from) <= 16) return narrow(e, convert(e, x, TILE_F32), to);
    if (tile_scalar_bits(from) == 32) return narrow(e, float_of_word(e, x), to);
    return narrow(e, round_to_odd(e, double_of_integer(e, x)), to);
}

TileValue *tile_emit_convert(TileEmitter *e, TileValue *x, TileScalar to) {
    TileScalar from = x->type->scalar;
    if (from == to) return x;
    if (is_narrow(to)) return narrow_from_any(e, x, to);
    if (!is_narrow(from)) return convert(e, x, to);
    return convert(e, widen(e, x), to);
}
