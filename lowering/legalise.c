/* Purpose: expand ops that the back end does not have, or for which it does not define the results of
 * lang/scalar/eval.def; all others are mapped one to one.
 *
 * Before:
 *     func phase machine @k.0(%p: ptr<global>, %q: ptr<global>, %n: i32) {
 *       %x = load %p : vec<8 x f32>
 *       %y = load %q : vec<8 x f32>
 *       %m = max %x, %y : vec<8 x f32>
 *       store %m, %p
 *       %i = load %q : i32
 *       %s = shl %i, %n : i32
 *       store %s, %q
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%p: ptr<global>, %q: ptr<global>, %n: i32) {
 *       %0 = const {value = 32} : u32
 *       %1 = const {value = 31} : i32
 *       %2 = const {value = 0} : i32
 *       %x = load %p : vec<8 x f32>
 *       %y = load %q : vec<8 x f32>
 *       %3 = gt %y, %x : vec<8 x bool>
 *       %4 = select %3, %y, %x : vec<8 x f32>
 *       %5 = isnan %y : vec<8 x bool>
 *       %m = select %5, %y, %4 : vec<8 x f32>
 *       store %m, %p
 *       %i = load %q : i32
 *       %6 = bitcast %n : u32
 *       %7 = lt %6, %0 : bool
 *       %8 = and %n, %1 : i32
 *       %9 = shl %i, %8 : i32
 *       %s = select %7, %9, %2 : i32
 *       store %s, %q
 *       return
 *     }
 * Integer division rounds down, and division by 0 is 0; remainders of floats are x - floor(x / y) * y; arithmetic on
 * bool is that of a one-bit integer. Constants (a divisor other than 0, a count less than the width, an operand of max
 * other than NaN) need no guards.
 *
 * Where the target divides words only (`divides_words`), a division of vectors of 64 bits becomes a branch: one of 32 bits
 * if all lanes fit, by the reciprocal of the divisor where all lanes have one. Where it divides vectors of floats only (`divides_by_floats`), quotients
 * of 64 bits that are known to fit are words, and those of words are quotients of f64, or products with the reciprocal of the one divisor.
 *
 * A 32-bit integer that is known to lie within 2^24 becomes a narrow float by way of f32.
 *
 * Needs: ranges of such integers. Keeps: every result, bit for bit (except NaN payloads). Cost: linear. Runs once: an unsigned `div`
 * with a guard would get another. */
#include <math.h>

#include "lang/scalar/scalar.h"
#include "lowering/emit.h"

static bool is_narrow_float(TileScalar scalar) {
    return tile_scalar_is_float(scalar) && tile_scalar_bits(scalar) <= 16;
}

static bool is_f8(TileScalar scalar) { return tile_scalar_is_float(scalar) && tile_scalar_bits(scalar) == 8; }

/* The bits of a constant or of the splat of one. */
static bool known_bits(const TileValue *value, uint64_t *bits) {
    const TileOp *splat = tile_value_def(value, TILE_OP_SPLAT);
    return tile_value_bits(splat ? tile_op_operand(splat, 0) : value, bits);
}

static bool is_known_number(const TileValue *value) {
    uint64_t bits;
    return known_bits(value, &bits) && !tile_scalar_is_nan(value->type->scalar, bits);
}

/* ---- floats ---- */

/* MIN and MAX: the comparison, then the second operand if it is NaN (a NaN in the first operand is the result
 * anyway). */
static TileValue *expand_extreme(TileEmitter *e, TileOpId id, TileValue *x, TileValue *y) {
    TileValue *better = tile_emit_binary(e, id == TILE_OP_MIN ? TILE_OP_LT : TILE_OP_GT, y, x);
    TileValue *result = tile_emit_select(e, better, y, x);
    if (is_known_number(y)) return result;
    return tile_emit_select(e, tile_emit_unary(e, TILE_OP_ISNAN, y), y, result);
}

static TileValue *expand_float_rem(TileEmitter *e, TileValue *x, TileValue *y) {
    TileValue *floor = tile_emit_unary(e, TILE_OP_FLOOR, tile_emit_binary(e, TILE_OP_DIV, x, y));
    return tile_emit_binary(e, TILE_OP_SUB, x, tile_emit_binary(e, TILE_OP_MUL, floor, y));
}

/* Bits without the sign as an integer, the negative of it for negative numbers: the number's place among those of its
 * type. */
static TileValue *place_of(TileEmitter *e, TileValue *bits, uint64_t sign) {
    TileValue *negative = tile_emit_with_bits(e, TILE_OP_LT, bits, 0);
    TileValue *magnitude = tile_emit_with_bits(e, TILE_OP_AND, bits, sign - 1);
    return tile_emit_select(e, negative, tile_emit_unary(e, TILE_OP_NEG, magnitude), bits);
}

static TileValue *is_nan_of_bits(TileEmitter *e, TileValue *bits, TileScalar scalar, uint64_t sign) {
    return tile_emit_with_bits(e, TILE_OP_GT, tile_emit_with_bits(e, TILE_OP_AND, bits, sign - 1), tile_scalar_greatest(scalar));
}

/* NEXTAFTER of any type: the next of the places. A zero that is reached keeps the sign of x. */
static TileValue *expand_nextafter(TileEmitter *e, TileValue *x, TileValue *y) {
    static const TileScalar integers[] = {TILE_I8, TILE_I16, TILE_I32, TILE_I64};
    TileScalar scalar = x->type->scalar;
    unsigned width = tile_scalar_bits(scalar);
    uint64_t sign = UINT64_C(1) << (width - 1);
    TileScalar integer = integers[__builtin_ctz(width) - 3];
    TileValue *a = tile_build_bitcast(&e->builder, x, integer), *b = tile_build_bitcast(&e->builder, y, integer);
    TileValue *from = place_of(e, a, sign), *towards = place_of(e, b, sign);
    TileValue *one = tile_emit_bits(e, a->type, 1), *less = tile_emit_bits(e, a->type, tile_scalar_mask(integer));
    TileValue *up = tile_emit_binary(e, TILE_OP_GT, towards, from);
    TileValue *next = tile_emit_binary(e, TILE_OP_ADD, from, tile_emit_select(e, up, one, less));
    TileValue *is_zero = tile_emit_with_bits(e, TILE_OP_EQ, from, 0);
    TileValue *signs = tile_emit_with_bits(e, TILE_OP_AND, tile_emit_select(e, is_zero, next, a), sign);
    TileValue *bits = tile_emit_binary(e, TILE_OP_OR, tile_emit_unary(e, TILE_OP_ABS, next), signs);
    bits = tile_emit_select(e, tile_emit_binary(e, TILE_OP_EQ, from, towards), b, bits);
    bits = tile_emit_select(e, is_nan_of_bits(e, b, scalar, sign), b, bits);
    bits = tile_emit_select(e, is_nan_of_bits(e, a, scalar, sign), a, bits);
    return tile_build_bitcast(&e->builder, bits, scalar);
}

/* For f32 and f64; NULL: the op does not change. */
static TileValue *expand_float(TileEmitter *e, TileOpId id, TileValue *const *x) {
    bool extreme = id == TILE_OP_MIN || id == TILE_OP_MAX;
    if (extreme) return expand_extreme(e, id, x[0], x[1]);
    return id == TILE_OP_REM ? expand_float_rem(e, x[0], x[1]) : NULL;
}

static TileValue *build_elementwise(TileEmitter *e, TileOpId id, TileValue *const *operands, unsigned count) {
    return tile_op_result(tile_build_op(&e->builder, id, operands, count, NULL, 0, NULL, 1), 0);
}

/* Computes in a wider type, and truncates or rounds the result to the op's own. */
static TileValue *expand_in(TileEmitter *e, const TileOp *op, TileScalar scalar) {
    TileValue *wide[3], *result = NULL;
    for (unsigned i = 0; i < op->operand_count; i++) wide[i] = tile_emit_convert(e, tile_op_operand(op, i), scalar);
    if (tile_scalar_is_float(scalar)) result = expand_float(e, op->id, wide);
    if (!result) result = build_elementwise(e, op->id, wide, op->operand_count);
    return tile_emit_convert(e, result, tile_op_result(op, 0)->type->scalar);
}

/* ---- integers ---- */

static TileScalar unsigned_scalar(TileScalar scalar) {
    bool is_signed = tile_scalar_class(scalar) == TILE_CLASS_SIGNED;
    return (TileScalar)(is_signed ? scalar + (TILE_U8 - TILE_I8) : scalar);
}

/* A count of at least the width shifts out all bits; the back end's shift is undefined for it. */
static TileValue *expand_shift(TileEmitter *e, TileOpId id, TileValue *x, TileValue *count) {
    TileScalar scalar = x->type->scalar;
    unsigned width = tile_scalar_bits(scalar);
    uint64_t bits;
    if (known_bits(count, &bits) && bits < width) return NULL;
    bool is_signed = tile_scalar_class(scalar) == TILE_CLASS_SIGNED;
    TileValue *amount = tile_build_bitcast(&e->builder, count, unsigned_scalar(scalar));
    if (id == TILE_OP_SHR && is_signed) {
        TileValue *most = tile_emit_with_bits(e, TILE_OP_MIN, amount, width - 1);
        return tile_emit_binary(e, id, x, tile_build_bitcast(&e->builder, most, scalar));
    }
    TileValue *inside = tile_emit_with_bits(e, TILE_OP_LT, amount, width);
    TileValue *shifted = tile_emit_binary(e, id, x, tile_emit_with_bits(e, TILE_OP_AND, count, width - 1));
    return tile_emit_select(e, inside, shifted, tile_emit_bits(e, x->type, 0));
}

/* Is it known not to be 0? */
static bool is_positive(TileEmitter *e, const TileValue *y) {
    TileIndexRange range = tile_index_range(e->indices, y);
    if (range.lo < 1) return false;
    tile_index_use(e->indices, range.because);
    return true;
}

/* y, or 1 if it is 0. */
static TileValue *safe_divisor(TileEmitter *e, TileValue *y, TileValue **is_zero) {
    uint64_t bits;
    *is_zero = NULL;
    if ((known_bits(y, &bits) && bits) || is_positive(e, y)) return y;
    *is_zero = tile_emit_with_bits(e, TILE_OP_EQ, y, 0);
    return tile_emit_select(e, *is_zero, tile_emit_bits(e, y->type, 1), y);
}

static TileValue *zero_where(TileEmitter *e, TileValue *condition, TileValue *x) {
    return condition ? tile_emit_select(e, condition, tile_emit_bits(e, x->type, 0), x) : x;
}

enum { WORD_BITS = 32 };

/* The divisor of all lanes; NULL: each has its own. */
static TileValue *divisor_of_all(TileValue *y) {
    const TileOp *splat = tile_value_def(y, TILE_OP_SPLAT);
    return splat ? tile_op_operand(splat, 0) : NULL;
}

/* Has the target divisions of words only, and is this one of 64 bits, of vectors whose lanes are known? */
static bool is_wide(const TileEmitter *e, const TileType *type) {
    bool wide = type->scalar == TILE_U64 || type->scalar == TILE_I64;
    return e->target.divides_words && wide && type->kind == TILE_TYPE_VECTOR && !type->scalable;
}

/* Lane by lane: the back end would take a vector apart as well. */
static TileValue *divide_lanes(TileBuilder *b, TileOpId id, TileValue *x, TileValue *y) {
    TileValue *result = NULL;
    for (uint32_t i = 0; i < (uint32_t)tile_type_lanes(x->type); i++) {
        TileValue *lane = tile_build_binary(b, id, tile_build_extract(b, x, i), tile_build_extract(b, y, i));
        result = result ? tile_build_insert(b, result, lane, i) : tile_build_splat(b, lane, x->type);
    }
    return result;
}

/* Would the back end take a division of such integers apart, into lanes? */
static bool is_by_floats(const TileEmitter *e, const TileType *type) {
    return e->target.divides_by_floats && type->kind == TILE_TYPE_VECTOR && !type->scalable && tile_scalar_bits(type->scalar) <= WORD_BITS;
}

/* Floats of this type have all such integers, and more than twice as many bits, of which 24 or 53 are exact: a quotient of two integers is further from the next integer
 * than it is rounded by, if that is greater: by 1 / y at least, and x < 2^24 or 2^53. So the integer part of the rounded quotient is that of the exact one. Added to a
 * number whose last place is 1, it is in the last bits of the sum. */
static TileValue *divide_by_floats(TileEmitter *e, TileOpId id, TileValue *x, TileValue *y) {
    bool is_short = tile_scalar_bits(x->type->scalar) <= 16;
    TileScalar scalar = is_short ? TILE_F32 : TILE_F64, bits = is_short ? TILE_U32 : TILE_U64;
    TileValue *ratio = tile_emit_binary(e, TILE_OP_DIV, tile_build_convert(&e->builder, x, scalar), tile_build_convert(&e->builder, y, scalar));
    uint64_t first = is_short ? UINT64_C(0x4b000000) : UINT64_C(0x4330000000000000); /* 2^23, 2^52 */
    TileValue *sum = tile_emit_with_bits(e, TILE_OP_ADD, tile_emit_unary(e, TILE_OP_FLOOR, ratio), first);
    TileValue *quotient = tile_build_convert(&e->builder, tile_build_bitcast(&e->builder, sum, bits), x->type->scalar);
    return id == TILE_OP_DIV ? quotient : tile_emit_binary(e, TILE_OP_SUB, x, tile_emit_binary(e, TILE_OP_MUL, quotient, y));
}

/* The upper words of products of words. */
static TileValue *multiply_high(TileEmitter *e, TileValue *x, TileValue *y) {
    TileValue *a = tile_build_convert(&e->builder, x, TILE_U64), *b = tile_build_convert(&e->builder, y, TILE_U64);
    TileValue *high = tile_emit_with_bits(e, TILE_OP_SHR, tile_emit_binary(e, TILE_OP_MUL, a, b), WORD_BITS);
    return tile_build_convert(&e->builder, high, TILE_U32);
}

/* All lanes by d >= 1, whose reciprocal r is (2^32 - 1) / d: the upper word of x r is less than the quotient by at most one, since
 * x < 2^32. */
static TileValue *divide_by_reciprocal(TileEmitter *e, TileOpId id, TileValue *x, TileValue *d, TileValue *reciprocal) {
    TileValue *divisor = tile_build_splat(&e->builder, d, x->type);
    TileValue *quotient = multiply_high(e, x, tile_build_splat(&e->builder, reciprocal, x->type));
    TileValue *rest = tile_emit_binary(e, TILE_OP_SUB, x, tile_emit_binary(e, TILE_OP_MUL, quotient, divisor));
    if (id == TILE_OP_REM) return tile_emit_binary(e, TILE_OP_MIN, rest, tile_emit_binary(e, TILE_OP_SUB, rest, divisor));
    TileValue *more = tile_emit_binary(e, TILE_OP_GE, rest, divisor);
    return tile_emit_binary(e, TILE_OP_ADD, quotient, tile_build_convert(&e->builder, more, TILE_U32));
}

/* A div or rem of unsigned integers, y not 0. */
static TileValue *build_division(TileEmitter *e, TileOpId id, TileValue *x, TileValue *y) {
    if (is_wide(e, x->type)) return divide_lanes(&e->builder, id, x, y);
    if (!is_by_floats(e, x->type)) return tile_emit_binary(e, id, x, y);
    TileValue *all = divisor_of_all(y);
    if (!all || x->type->scalar != TILE_U32) return divide_by_floats(e, id, x, y);
    return divide_by_reciprocal(e, id, x, all, tile_emit_binary(e, TILE_OP_DIV, tile_emit_bits(e, all->type, UINT32_MAX), all));
}

/* Of vectors that floats divide, the one divisor of all lanes, which is asked for zero, and has its magnitude taken, once. */
static TileValue *one_divisor(const TileEmitter *e, TileValue *y) { return is_by_floats(e, y->type) ? divisor_of_all(y) : NULL; }

static TileValue *with_lanes(TileEmitter *e, TileValue *y, const TileType *type) {
    if (!y || y->type->kind == type->kind) return y;
    return tile_build_splat(&e->builder, y, tile_type_with_scalar(e->builder.module->context, type, y->type->scalar));
}

static TileValue *divide_unsigned(TileEmitter *e, TileOpId id, TileValue *x, TileValue *y) {
    TileValue *all = one_divisor(e, y), *is_zero, *divisor = safe_divisor(e, all ? all : y, &is_zero);
    return zero_where(e, with_lanes(e, is_zero, x->type), build_division(e, id, x, with_lanes(e, divisor, x->type)));
}

static bool is_positive_power(TileScalar scalar, uint64_t bits) {
    return bits && (bits & (bits - 1)) == 0 && tile_scalar_to_integer(scalar, bits) > 0;
}

/* The quotient of the magnitudes; if signs differ, its negative, less 1 if there is a remainder. */
static TileValue *divide_signed(TileEmitter *e, TileOpId id, TileValue *x, TileValue *y) {
    uint64_t bits;
    TileScalar scalar = x->type->scalar, magnitude = (TileScalar)(scalar + (TILE_U8 - TILE_I8));
    TileValue *all = one_divisor(e, y), *is_zero, *divisor = safe_divisor(e, all ? all : y, &is_zero);
    TileValue *a = tile_build_bitcast(&e->builder, tile_emit_unary(e, TILE_OP_ABS, x), magnitude);
    TileValue *b = with_lanes(e, tile_build_bitcast(&e->builder, tile_emit_unary(e, TILE_OP_ABS, divisor), magnitude), x->type);
    divisor = with_lanes(e, divisor, x->type);
    bool constant = known_bits(y, &bits) && bits;
    TileValue *quotient = constant ? tile_emit_binary(e, TILE_OP_DIV, a, b) : build_division(e, TILE_OP_DIV, a, b);
    TileValue *whole = tile_build_bitcast(&e->builder, quotient, scalar);
    TileValue *negative = tile_emit_with_bits(e, TILE_OP_LT, tile_emit_binary(e, TILE_OP_XOR, x, divisor), 0);
    TileValue *truncated = tile_emit_select(e, negative, tile_emit_unary(e, TILE_OP_NEG, whole), whole);
    TileValue *rest = tile_emit_binary(e, TILE_OP_SUB, x, tile_emit_binary(e, TILE_OP_MUL, truncated, divisor));
    TileValue *below = tile_emit_binary(e, TILE_OP_AND, negative, tile_emit_with_bits(e, TILE_OP_NE, rest, 0));
    TileValue *result;
    if (id == TILE_OP_DIV)
        result = tile_emit_binary(e, TILE_OP_SUB, truncated, tile_build_convert(&e->builder, below, scalar));
    else
        result = tile_emit_select(e, below, tile_emit_binary(e, TILE_OP_ADD, rest, divisor), rest);
    return zero_where(e, with_lanes(e, is_zero, x->type), result);
}

/* ---- divisions of 64 bits by words ---- */

static const int64_t MOST_WORD = INT32_MAX;

/* Does the value certainly lie within lo..2^31? */
static bool is_word(TileEmitter *e, const TileValue *value, int64_t lo) {
    TileIndexRange range = tile_index_range(e->indices, value);
    if (range.lo < lo || range.hi > MOST_WORD) return false;
    tile_index_use(e->indices, range.because);
    return true;
}

/* Are numbers of 64 bits, of vectors that floats divide, known to be words? */
static bool are_words(TileEmitter *e, TileValue *x, TileValue *y) {
    const TileType *type = x->type;
    bool wide = e->target.divides_by_floats && type->kind == TILE_TYPE_VECTOR && !type->scalable && tile_scalar_bits(type->scalar) > WORD_BITS;
    return wide && is_word(e, x, 0) && is_word(e, y, 1);
}

static TileValue *is_above(TileEmitter *e, TileValue *bits) {
    return tile_emit_with_bits(e, TILE_OP_GT, tile_build_bitcast(&e->builder, bits, TILE_U64), (uint64_t)MOST_WORD);
}

/* Is some lane of x not within 0..2^31, or some divisor not within 1..2^31? NULL: certainly none. What pads a tile counts as either. */
static TileValue *exceeds_words(TileEmitter *e, TileValue *x, TileValue *y) {
    TileValue *all = divisor_of_all(y), *lanes = is_word(e, x, 0) ? NULL : is_above(e, x), *one = NULL;
    if (!is_word(e, y, 1)) {
        TileValue *divisor = is_above(e, tile_emit_with_bits(e, TILE_OP_SUB, all ? all : y, 1));
        if (all)
            one = divisor;
        else
            lanes = lanes ? tile_emit_binary(e, TILE_OP_OR, lanes, divisor) : divisor;
    }
    if (lanes) lanes = tile_emit_unary(e, TILE_OP_ANY_LANE, lanes);
    return lanes && one ? tile_emit_binary(e, TILE_OP_OR, lanes, one) : lanes ? lanes : one;
}

static void enter(TileEmitter *e, TileBlock *region) {
    TileLocation location = e->builder.location;
    e->builder = tile_builder_at_end(e->builder.module, region);
    e->builder.location = location;
}

/* A div or rem of vectors of 64 bits. One test asks whether words will do for all lanes, as they do for most indices: their quotients by one divisor are
 * products with its reciprocal, which is computed once. */
static TileValue *divide_by_words(TileEmitter *e, TileOpId id, TileValue *x, TileValue *y) {
    const TileType *type = x->type;
    TileValue *all = divisor_of_all(y), *reciprocal = NULL, *exceeds = exceeds_words(e, x, y), *result;
    if (all) {
        all = tile_emit_with_bits(e, TILE_OP_MAX, tile_build_convert(&e->builder, all, TILE_U32), 1);
        reciprocal = tile_emit_binary(e, TILE_OP_DIV, tile_emit_bits(e, all->type, UINT32_MAX), all);
    }
    TileBuilder outer = e->builder;
    TileOp *choice = exceeds ? tile_build_if(&outer, exceeds, &type, 1) : NULL;
    if (choice) enter(e, &choice->regions[1]);
    TileValue *words = tile_build_convert(&e->builder, x, TILE_U32);
    if (all)
        words = divide_by_reciprocal(e, id, words, all, reciprocal);
    else
        words = build_division(e, id, words, tile_build_convert(&e->builder, y, TILE_U32));
    result = tile_build_convert(&e->builder, words, type->scalar);
    if (!choice) return result;
    tile_build_end(&e->builder, TILE_OP_YIELD, &result, 1);
    enter(e, &choice->regions[0]);
    result = type->scalar == TILE_I64 ? divide_signed(e, id, x, y) : divide_unsigned(e, id, x, y);
    tile_build_end(&e->builder, TILE_OP_YIELD, &result, 1);
    e->builder = outer;
    return tile_op_result(choice, 0);
}

static TileValue *expand_unsigned_division(TileEmitter *e, TileOpId id, TileValue *x, TileValue *y) {
    uint64_t bits;
    if (known_bits(y, &bits) && bits) return NULL; /* by a constant: no division in the end */
    if (is_wide(e, x->type) || are_words(e, x, y)) return divide_by_words(e, id, x, y);
    return is_positive(e, y) && !is_by_floats(e, x->type) ? NULL : divide_unsigned(e, id, x, y); /* NULL: it stays as it is */
}

/* Shifts round down. */
static TileValue *expand_signed_division(TileEmitter *e, TileOpId id, TileValue *x, TileValue *y) {
    uint64_t bits;
    if (known_bits(y, &bits) && is_positive_power(y->type->scalar, bits)) {
        if (id == TILE_OP_REM) return tile_emit_with_bits(e, TILE_OP_AND, x, bits - 1);
        return tile_emit_with_bits(e, TILE_OP_SHR, x, (uint64_t)__builtin_ctzll(bits));
    }
    bool constant = known_bits(y, &bits) && bits;
    return !constant && (is_wide(e, x->type) || are_words(e, x, y)) ? divide_by_words(e, id, x, y) : divide_signed(e, id, x, y);
}

/* The upper half of a product of unsigned numbers of 64 bits, from products of words; no sum of them overflows. */
static TileValue *multiply_words(TileEmitter *e, TileValue *x, TileValue *y) {
    TileValue *x_low = tile_emit_with_bits(e, TILE_OP_AND, x, UINT32_MAX);
    TileValue *y_low = tile_emit_with_bits(e, TILE_OP_AND, y, UINT32_MAX);
    TileValue *x_high = tile_emit_with_bits(e, TILE_OP_SHR, x, 32), *y_high = tile_emit_with_bits(e, TILE_OP_SHR, y, 32);
    TileValue *low = tile_emit_with_bits(e, TILE_OP_SHR, tile_emit_binary(e, TILE_OP_MUL, x_low, y_low), 32);
    TileValue *middle = tile_emit_binary(e, TILE_OP_ADD, tile_emit_binary(e, TILE_OP_MUL, x_high, y_low), low);
    TileValue *cross = tile_emit_binary(e, TILE_OP_ADD, tile_emit_binary(e, TILE_OP_MUL, x_low, y_high),
                                        tile_emit_with_bits(e, TILE_OP_AND, middle, UINT32_MAX));
    TileValue *high = tile_emit_binary(e, TILE_OP_ADD, tile_emit_binary(e, TILE_OP_MUL, x_high, y_high),
                                       tile_emit_with_bits(e, TILE_OP_SHR, middle, 32));
    return tile_emit_binary(e, TILE_OP_ADD, high, tile_emit_with_bits(e, TILE_OP_SHR, cross, 32));
}

/* Up to 32 bits by a product of twice the bits. A negative number of 64 bits is 2^64 too large as an unsigned one. */
static TileValue *expand_high_product(TileEmitter *e, TileValue *x, TileValue *y) {
    TileScalar scalar = x->type->scalar;
    unsigned width = tile_scalar_bits(scalar);
    if (width < 64) {
        TileScalar wide = (TileScalar)(scalar + 1);
        TileValue *a = tile_build_convert(&e->builder, x, wide), *b = tile_build_convert(&e->builder, y, wide);
        TileValue *high = tile_emit_with_bits(e, TILE_OP_SHR, tile_emit_binary(e, TILE_OP_MUL, a, b), width);
        return tile_build_convert(&e->builder, high, scalar);
    }
    if (scalar == TILE_U64) return multiply_words(e, x, y);
    TileValue *product = multiply_words(e, tile_build_bitcast(&e->builder, x, TILE_U64),
                                        tile_build_bitcast(&e->builder, y, TILE_U64));
    product = tile_build_bitcast(&e->builder, product, scalar);
    TileValue *x_sign = tile_emit_with_bits(e, TILE_OP_SHR, x, 63), *y_sign = tile_emit_with_bits(e, TILE_OP_SHR, y, 63);
    product = tile_emit_binary(e, TILE_OP_SUB, product, tile_emit_binary(e, TILE_OP_AND, x_sign, y));
    return tile_emit_binary(e, TILE_OP_SUB, product, tile_emit_binary(e, TILE_OP_AND, y_sign, x));
}

static TileValue *expand_integer(TileEmitter *e, const TileOp *op) {
    TileValue *x = tile_op_operand(op, 0), *y = op->operand_count > 1 ? tile_op_operand(op, 1) : NULL;
    switch (op->id) {
    case TILE_OP_SHL:
    case TILE_OP_SHR: return expand_shift(e, op->id, x, y);
    case TILE_OP_MULHI: return expand_high_product(e, x, y);
    case TILE_OP_DIV:
    case TILE_OP_REM:
        if (tile_scalar_class(x->type->scalar) == TILE_CLASS_SIGNED) return expand_signed_division(e, op->id, x, y);
        return expand_unsigned_division(e, op->id, x, y);
    default: return NULL;
    }
}

/* A bool is a one-bit integer. */
static TileValue *expand_bool(TileEmitter *e, const TileOp *op) {
    TileValue *x = tile_op_operand(op, 0), *y = op->operand_count > 1 ? tile_op_operand(op, 1) : NULL;
    switch (op->id) {
    case TILE_OP_NEG:
    case TILE_OP_ABS:
    case TILE_OP_POPCOUNT: return x;
    case TILE_OP_CLZ:
    case TILE_OP_CTZ: return tile_emit_unary(e, TILE_OP_NOT, x);
    case TILE_OP_ADD:
    case TILE_OP_SUB: return tile_emit_binary(e, TILE_OP_XOR, x, y);
    case TILE_OP_MUL:
    case TILE_OP_MIN:
    case TILE_OP_DIV: return tile_emit_binary(e, TILE_OP_AND, x, y);
    case TILE_OP_MAX: return tile_emit_binary(e, TILE_OP_OR, x, y);
    case TILE_OP_REM:
    case TILE_OP_MULHI: return tile_emit_bits(e, x->type, 0);
    case TILE_OP_SHL:
    case TILE_OP_SHR: return tile_emit_binary(e, TILE_OP_AND, x, tile_emit_unary(e, TILE_OP_NOT, y));
    default: return NULL;
    }
}

/* ---- the pass ---- */

/* Is every number that the value can be an f32, as those of few bits are? */
static bool is_exact_float(TileEmitter *e, const TileValue *x) {
    int64_t most = INT64_C(1) << 24;
    TileIndexRange range = tile_index_range(e->indices, x);
    if (range.lo < -most || range.hi > most) return false;
    tile_index_use(e->indices, range.because);
    return true;
}

static TileValue *expand_convert(TileEmitter *e, const TileOp *op) {
    TileValue *x = tile_op_operand(op, 0);
    TileScalar from = x->type->scalar, to = tile_op_result(op, 0)->type->scalar;
    bool exact_pair = (from == TILE_F16 && to == TILE_F32) || (from == TILE_F32 && to == TILE_F16);
    if (from == to) return x;
    if (e->target.has_bf16_rounding && from == TILE_F32 && to == TILE_BF16) return NULL;
    if (e->target.has_f8 && ((is_f8(from) && to == TILE_F16) || (from == TILE_F32 && is_f8(to)))) return NULL;
    if (exact_pair || (!is_narrow_float(from) && !is_narrow_float(to))) return NULL;
    if (tile_scalar_bits(from) == 32 && !tile_scalar_is_float(from) && is_exact_float(e, x))
        x = tile_build_convert(&e->builder, x, TILE_F32);
    return tile_emit_convert(e, x, to);
}

/* Is the op arithmetic? select, bitcast and opaque are legal on all types. */
static bool is_arithmetic(TileOpId id) {
    if (tile_op_info(id)->class != TILE_CLASS_ELEMENTWISE) return false;
    return id != TILE_OP_SELECT && id != TILE_OP_BITCAST && id != TILE_OP_OPAQUE;
}

static TileValue *expand_op(TileEmitter *e, const TileOp *op) {
    TileValue *x = tile_op_operand(op, 0);
    TileScalar scalar = x->type->scalar;
    if (op->id == TILE_OP_CONVERT) return expand_convert(e, op);
    if (op->id == TILE_OP_NEXTAFTER) return expand_nextafter(e, x, tile_op_operand(op, 1));
    if (is_narrow_float(scalar)) return expand_in(e, op, TILE_F32);
    if (tile_scalar_is_float(scalar)) {
        TileValue *operands[] = {x, op->operand_count > 1 ? tile_op_operand(op, 1) : NULL};
        return expand_float(e, op->id, operands);
    }
    return scalar == TILE_BOOL ? expand_bool(e, op) : expand_integer(e, op);
}

static void visit(TileOp *op, void *state) {
    TileEmitter *e = state;
    if (!is_arithmetic(op->id)) return;
    tile_emit_before(e, op);
    TileValue *result = expand_op(e, op);
    if (result) tile_emit_replace(e, op, result);
}

TileResult tile_pass_legalise(TilePassContext *context, TileFunc *func) {
    TileEmitter emitter = tile_emitter_create(context, func);
    emitter.indices = tile_pass_indices(context, func);
    tile_block_walk(&func->body, visit, &emitter);
    return tile_emit_finish(&emitter, context);
}
