/* Purpose: select the instructions of GPUs for minima and maxima of f32, for 2^x and for 1 / x. All other
 * transcendental ops are expanded to polynomials (math), as on CPUs.
 *
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>) {
 *       %a = load %x : f32
 *       %b = exp %a {approx = 1} : f32
 *       %c = max %a, %b : f32
 *       store %c, %y
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>) {
 *       %a = load %x : f32
 *       %0 = const {value = 1.442695} : f32
 *       %1 = mul %a, %0 : f32
 *       %b = ex2_approx %1 : f32
 *       %c = maximum %a, %b : f32
 *       store %c, %y
 *       return
 *     }
 * A quotient of f32, of at least four lanes, is the product with the divisor's reciprocal and what the remainder adds to it, which is exact by
 * Markstein's theorem where nothing is very large or small; that is asked once for all lanes of a thread, so that these overlap, where each
 * quotient by `div.rn` has a branch of its own.
 *
 * Approximate exp2, exp and sigmoid of f32 are ex2_approx and rcp_approx: their error grows with the argument
 * (docs/gpu.md). A sigmoid whose arguments are `small` as a rule is a polynomial where one test for a thread says that they are. An approximate erf is a quotient of polynomials, by rcp_approx, and tanh is an odd polynomial
 * or made of both. min and max of f32, and of narrower floats, which are compared in f32, are minimum and maximum: -0
 * counts as less than +0, where the language takes the first of them.
 *
 * Integers of few bits become f32 without a conversion: as the mantissa of a larger number, which is then taken off. Numbers that are rounded to
 * such integers are added to that larger number, whose mantissa then ends with them.
 *
 * Needs: atomics, whose loops contain min and max; runs before math and legalise, which would expand these ops. Keeps:
 * machine form. Cost: linear. */
#include <math.h>

#include "lang/ir/build.h"
#include "lang/scalar/scalar.h"
#include "ptx/passes.h"

typedef struct Math {
    TileModule *module;
    bool multiplies; /* the function has products by tensor cores, beside which code has to be a straight line */
    bool changed;
    const char *error;
} Math;

static TileValue *constant(TileBuilder *b, const TileType *type, double value) {
    return tile_build_bits(b, type, tile_scalar_from_double(type->scalar, value));
}

static void replace(Math *math, const TileBuilder *b, TileOp *op, TileValue *with) {
    TileValue *result = tile_op_result(op, 0);
    if (b->error) math->error = b->error;
    if (!with->name) with->name = result->name;
    tile_value_replace(result, with);
    tile_op_erase(op);
    math->changed = true;
}

/* Is the value a product with a constant? */
static bool find_factor(const TileValue *x, TileValue **of, double *factor) {
    const TileOp *product = tile_value_def(x, TILE_OP_MUL);
    for (unsigned i = 0; product && i < 2; i++) {
        const TileValue *number = tile_op_operand(product, i);
        const TileOp *splat = tile_value_def(number, TILE_OP_SPLAT);
        uint64_t bits;
        if (!tile_value_bits(splat ? tile_op_operand(splat, 0) : number, &bits)) continue;
        *of = tile_op_operand(product, 1 - i);
        *factor = tile_scalar_to_double(TILE_F32, bits);
        return true;
    }
    return false;
}

/* The value times a number; where it is a product with a constant, and nobody else takes that, by the product of both. */
static TileValue *build_multiple(TileBuilder *b, TileValue *x, double number) {
    TileValue *of;
    double factor;
    if (tile_value_has_one_use(x) && find_factor(x, &of, &factor) && isnormal((float)(number * factor)))
        return tile_build_binary(b, TILE_OP_MUL, of, constant(b, x->type, number * factor));
    return tile_build_binary(b, TILE_OP_MUL, x, constant(b, x->type, number));
}

/* 2^x; e^x = 2^(x / ln 2); 1 / (1 + e^-x). */
static TileValue *build_exponential(TileBuilder *b, TileOpId id, TileValue *x) {
    static const double log2_of_e = 1.4426950408889634;
    const TileType *type = x->type;
    bool sigmoid = id == TILE_OP_SIGMOID;
    if (id != TILE_OP_EXP2) x = build_multiple(b, x, sigmoid ? -log2_of_e : log2_of_e);
    x = tile_build_unary(b, TILE_OP_EX2_APPROX, x);
    if (!sigmoid) return x;
    return tile_build_unary(b, TILE_OP_RCP_APPROX, tile_build_binary(b, TILE_OP_ADD, x, constant(b, type, 1)));
}

static void expand_exponential(Math *math, TileOp *op) {
    TileBuilder b = tile_builder_before(math->module, op);
    replace(math, &b, op, build_exponential(&b, op->id, tile_op_operand(op, 0)));
}

/* So many lanes are asked about together: a branch for each of fewer costs more than it saves. */
static bool has_several(const TileType *type) {
    enum { LEAST_LANES = 4 };
    return type->kind == TILE_TYPE_VECTOR && !type->scalable && tile_type_lanes(type) >= LEAST_LANES;
}

static TileValue *polynomial(TileBuilder *b, TileValue *x, const double *coefficients, unsigned count) {
    TileValue *sum = constant(b, x->type, coefficients[0]);
    for (unsigned i = 1; i < count; i++)
        sum = tile_build_ternary(b, TILE_OP_FMA, sum, x, constant(b, x->type, coefficients[i]));
    return sum;
}

static void yield(Math *math, TileBuilder *b, TileValue *value) {
    tile_build_end(b, TILE_OP_YIELD, &value, 1);
    if (b->error) math->error = b->error;
}

/* A sigmoid whose arguments are small as a rule: within 2^-20 of 1/2 and an odd polynomial where those of all lanes are at most 0.8, which takes as many
 * instructions as the exponential and the reciprocal do, but none of the slow unit, of which a multiprocessor does 16 in a cycle. */
static void expand_small_sigmoid(Math *math, TileOp *op) {
    enum { COUNT = 3 };
    static const double p[COUNT] = {0x1.e92902p-10, -0x1.543a76p-6, 0x1.fffd3ap-3}, most = 0.8, usual_factor = 0x1p8;
    TileBuilder b = tile_builder_before(math->module, op);
    TileValue *x = tile_op_operand(op, 0), *of;
    const TileType *type = x->type;
    double factor = 1, scaled[COUNT];
    bool multiple = tile_value_has_one_use(x) && find_factor(x, &of, &factor) && fabs(factor) < usual_factor && fabs(factor) > 1 / usual_factor;
    if (multiple) x = of;
    else factor = 1;
    for (unsigned i = 0; i < COUNT; i++) scaled[i] = p[i] * pow(factor, 2.0 * (COUNT - i) - 1);
    TileValue *small = tile_build_binary(&b, TILE_OP_LE, tile_build_unary(&b, TILE_OP_ABS, x), constant(&b, type, most / fabs(factor)));
    TileOp *choice = tile_build_if(&b, tile_build_unary(&b, TILE_OP_ANY_LANE, tile_build_unary(&b, TILE_OP_NOT, small)), &type, 1);
    if (b.error || !choice) {
        math->error = b.error;
        return;
    }
    TileBuilder rare = tile_builder_at_end(math->module, &choice->regions[0]), usual = tile_builder_at_end(math->module, &choice->regions[1]);
    TileValue *argument = multiple ? tile_build_binary(&rare, TILE_OP_MUL, x, constant(&rare, type, factor)) : x;
    yield(math, &rare, build_exponential(&rare, TILE_OP_SIGMOID, argument));
    TileValue *sum = polynomial(&usual, tile_build_binary(&usual, TILE_OP_MUL, x, x), scaled, COUNT);
    yield(math, &usual, tile_build_ternary(&usual, TILE_OP_FMA, sum, x, constant(&usual, type, 0.5)));
    replace(math, &b, op, tile_op_result(choice, 0));
}

/* x p(x^2) / q(x^2), which is 1 from 4 on, within 7 * 2^-24 of erf(x), relatively. */
static void expand_erf(Math *math, TileOp *op) {
    static const double p[] = {-2.72614225801306e-10, 2.77068142495902e-08,  -2.10102402082508e-06, -5.69250639462346e-05,
                               -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02};
    static const double q[] = {-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
                               -1.42647390514189e-02};
    TileBuilder b = tile_builder_before(math->module, op);
    TileValue *x = tile_op_operand(op, 0);
    const TileType *type = x->type;
    x = tile_build_binary(&b, TILE_OP_MINIMUM, tile_build_binary(&b, TILE_OP_MAXIMUM, x, constant(&b, type, -4)), constant(&b, type, 4));
    TileValue *square = tile_build_binary(&b, TILE_OP_MUL, x, x);
    TileValue *above = tile_build_binary(&b, TILE_OP_MUL, x, polynomial(&b, square, p, sizeof p / sizeof *p));
    TileValue *below = tile_build_unary(&b, TILE_OP_RCP_APPROX, polynomial(&b, square, q, sizeof q / sizeof *q));
    replace(math, &b, op, tile_build_binary(&b, TILE_OP_MUL, above, below));
}

/* An odd polynomial for |x| < 0.6 and NaN, and 1 - 2 / (e^2|x| + 1) above: within 4.2 * 2^-24 of tanh(x), relatively. */
static void expand_tanh(Math *math, TileOp *op) {
    static const double p[] = {0x1.e43318p-7, -0x1.a734d8p-5, 0x1.106ea4p-3, -0x1.5551ep-2}, two_log2_of_e = 2.8853900817779268;
    TileBuilder b = tile_builder_before(math->module, op);
    TileValue *x = tile_op_operand(op, 0), *size = tile_build_unary(&b, TILE_OP_ABS, x);
    const TileType *type = x->type;
    TileValue *square = tile_build_binary(&b, TILE_OP_MUL, x, x);
    TileValue *more = tile_build_binary(&b, TILE_OP_MUL, square, polynomial(&b, square, p, sizeof p / sizeof *p));
    TileValue *small = tile_build_ternary(&b, TILE_OP_FMA, more, x, x);
    TileValue *power = tile_build_unary(&b, TILE_OP_EX2_APPROX, tile_build_binary(&b, TILE_OP_MUL, size, constant(&b, type, two_log2_of_e)));
    TileValue *inverse = tile_build_unary(&b, TILE_OP_RCP_APPROX, tile_build_binary(&b, TILE_OP_ADD, power, constant(&b, type, 1)));
    TileValue *large = tile_build_ternary(&b, TILE_OP_FMA, inverse, constant(&b, type, -2), constant(&b, type, 1));
    TileValue *is_large = tile_build_binary(&b, TILE_OP_LE, constant(&b, type, 0.6), size);
    large = tile_build_binary(&b, TILE_OP_COPYSIGN, large, x);
    replace(math, &b, op, tile_build_ternary(&b, TILE_OP_SELECT, is_large, large, small));
}

/* Is a lane of the number less than `least`, but 0 where `or_zero` has it, or greater than 2^60, or NaN? */
static TileValue *is_beyond(TileBuilder *b, TileValue *number, TileValue *least, TileValue *or_zero) {
    TileValue *small = tile_build_binary(b, TILE_OP_LT, number, least);
    TileValue *large = tile_build_unary(b, TILE_OP_NOT, tile_build_binary(b, TILE_OP_LE, number, constant(b, number->type, 0x1p60)));
    if (or_zero) small = tile_build_binary(b, TILE_OP_AND, small, tile_build_binary(b, TILE_OP_NE, or_zero, constant(b, number->type, 0)));
    return tile_build_unary(b, TILE_OP_ANY_LANE, tile_build_binary(b, TILE_OP_OR, small, large));
}

/* Several lanes by one number, and not each by its own. */
static bool is_shared(const TileValue *y) { return tile_value_def(y, TILE_OP_SPLAT) || tile_value_def(y, TILE_OP_INSERT); }

/* May a step of a quotient lose a bit, or is a lane NaN? Below 2^-60 it may, but for quotients of 0: so a row that does not exist, or has nothing but zeros, is as
 * any other, if its divisor is no less than 2^-120, as a bound that keeps it from 0 is. */
static TileValue *is_unusual(TileBuilder *b, TileValue *x, TileValue *y) {
    TileValue *least = constant(b, x->type, 0x1p-60), *of_x = least, *of_y = least;
    if (is_shared(y)) {
        of_x = tile_build_ternary(b, TILE_OP_SELECT, tile_build_binary(b, TILE_OP_LT, y, least), constant(b, x->type, INFINITY), least);
        of_y = constant(b, y->type, 0x1p-120);
    }
    TileValue *beyond = is_beyond(b, tile_build_unary(b, TILE_OP_ABS, x), of_x, x);
    return tile_build_binary(b, TILE_OP_OR, beyond, is_beyond(b, y, of_y, NULL));
}

/* The rest is y q - x, so that a quotient of -0 keeps its sign: of a positive divisor. */
static TileValue *build_quotient(TileBuilder *b, TileValue *x, TileValue *y) {
    TileValue *near = tile_build_unary(b, TILE_OP_RCP_APPROX, y);
    TileValue *error = tile_build_ternary(b, TILE_OP_FMA, tile_build_unary(b, TILE_OP_NEG, y), near, constant(b, x->type, 1));
    TileValue *inverse = tile_build_ternary(b, TILE_OP_FMA, near, error, near), *q = tile_build_binary(b, TILE_OP_MUL, x, inverse);
    TileValue *rest = tile_build_ternary(b, TILE_OP_FMA, y, q, tile_build_unary(b, TILE_OP_NEG, x));
    return tile_build_ternary(b, TILE_OP_FMA, rest, tile_build_unary(b, TILE_OP_NEG, inverse), q);
}

static void expand_quotient(Math *math, TileOp *op) {
    TileBuilder b = tile_builder_before(math->module, op);
    TileValue *x = tile_op_operand(op, 0), *y = tile_op_operand(op, 1);
    const TileType *type = x->type;
    TileOp *choice = tile_build_if(&b, is_unusual(&b, x, y), &type, 1);
    if (b.error || !choice) {
        math->error = b.error;
        return;
    }
    TileBuilder rare = tile_builder_at_end(math->module, &choice->regions[0]), usual = tile_builder_at_end(math->module, &choice->regions[1]);
    yield(math, &rare, tile_build_binary(&rare, TILE_OP_DIV, x, y));
    yield(math, &usual, build_quotient(&usual, x, y));
    replace(math, &b, op, tile_op_result(choice, 0));
}

static void expand_extreme(Math *math, TileOp *op) {
    TileBuilder b = tile_builder_before(math->module, op);
    TileScalar scalar = op->results[0].type->scalar;
    TileOpId id = op->id == TILE_OP_MIN ? TILE_OP_MINIMUM : TILE_OP_MAXIMUM;
    TileValue *x = tile_build_convert(&b, tile_op_operand(op, 0), TILE_F32);
    TileValue *y = tile_build_convert(&b, tile_op_operand(op, 1), TILE_F32);
    replace(math, &b, op, tile_build_convert(&b, tile_build_binary(&b, id, x, y), scalar));
}

/* ---- small integers ---- */

/* Integers from `lo` to `hi`. */
typedef struct Range {
    int64_t lo, hi;
} Range;

/* Those of a type of at most 16 bits; of wider ones none are known. */
static bool range_of_type(TileScalar scalar, Range *range) {
    unsigned bits = tile_scalar_bits(scalar);
    bool known = tile_scalar_is_int(scalar) && bits <= 16, is_signed = tile_scalar_class(scalar) == TILE_CLASS_SIGNED;
    int64_t count = known ? INT64_C(1) << bits : 0;
    *range = (Range){is_signed ? -count / 2 : 0, (is_signed ? count / 2 : count) - 1};
    return known;
}

static bool constant_lane(const TileValue *value, int64_t *number) {
    const TileOp *splat = tile_value_def(value, TILE_OP_SPLAT);
    if (splat) value = tile_op_operand(splat, 0);
    const TileOp *constant = tile_value_def(value, TILE_OP_CONST);
    if (!constant || !tile_scalar_is_int(value->type->scalar)) return false;
    *number = tile_scalar_to_integer(value->type->scalar, tile_op_get(constant, TILE_ATTRIBUTE_VALUE)->bits);
    return true;
}

/* What is known of all lanes, by the ops that weights of few bits are unpacked with. */
static bool find_range(const TileValue *value, unsigned depth, Range *range) {
    enum { MOST_DEPTH = 6 };
    int64_t number;
    const TileOp *op = value->op;
    if (constant_lane(value, &number)) {
        *range = (Range){number, number};
        return true;
    }
    if (range_of_type(value->type->scalar, range)) return true;
    if (!op || depth == MOST_DEPTH || !tile_scalar_is_int(value->type->scalar)) return false;
    if (op->id == TILE_OP_AND) {
        for (unsigned i = 0; i < 2; i++)
            if (constant_lane(tile_op_operand(op, i), &range->hi) && range->hi >= 0) return range->lo = 0, true;
        return false;
    }
    bool converts = op->id == TILE_OP_CONVERT && tile_scalar_is_int(tile_op_operand(op, 0)->type->scalar);
    if (converts) return find_range(tile_op_operand(op, 0), depth + 1, range) && (range->lo >= 0 || tile_scalar_class(value->type->scalar) == TILE_CLASS_SIGNED);
    Range y;
    if (op->id != TILE_OP_ADD && op->id != TILE_OP_SUB) return false;
    if (!find_range(tile_op_operand(op, 0), depth + 1, range) || !find_range(tile_op_operand(op, 1), depth + 1, &y)) return false;
    *range = op->id == TILE_OP_ADD ? (Range){range->lo + y.lo, range->hi + y.hi} : (Range){range->lo - y.hi, range->hi - y.lo};
    return range->lo >= 0 || tile_scalar_class(value->type->scalar) == TILE_CLASS_SIGNED;
}

/* Are the lanes as they were loaded, and not computed one by one? */
static bool are_loaded(const TileValue *value) {
    const TileOp *op = value->op;
    while (op && (op->id == TILE_OP_INSERT || op->id == TILE_OP_SPLAT || op->id == TILE_OP_EXTRACT || op->id == TILE_OP_SHUFFLE || op->id == TILE_OP_IF)) {
        if (op->id == TILE_OP_INSERT && !are_loaded(tile_op_operand(op, 1))) return false;
        value = op->id == TILE_OP_IF ? tile_op_operand(op->regions[0].last, value->index) : tile_op_operand(op, 0);
        op = value->op;
    }
    return op && tile_op_info((TileOpId)op->id)->class != TILE_CLASS_ELEMENTWISE;
}

static bool are_bytes(const TileValue *x) {
    return tile_scalar_bits(x->type->scalar) == 8 && x->type->kind == TILE_TYPE_VECTOR && tile_type_lanes(x->type) % 2 == 0 && are_loaded(x);
}

/* An integer n of magnitude at most 2^22 is the mantissa of 1.5 * 2^23 + n: an addition of integers and one of floats, of which a multiprocessor
 * does 64 and 128 in a cycle, in place of a conversion, of which it does 16. */
static void expand_small_integer(Math *math, TileOp *op) {
    enum { MOST = 1 << 22, BITS = 0x4b400000 };
    TileValue *x = tile_op_operand(op, 0);
    Range range;
    bool words = tile_scalar_is_int(x->type->scalar) && tile_scalar_bits(x->type->scalar) <= 32;
    if (!words || !find_range(x, 0, &range) || range.lo < -MOST || range.hi >= MOST) return;
    TileBuilder b = tile_builder_before(math->module, op);
    if (are_bytes(x)) { /* the back end does that in place, two at a time */
        TileScalar to = op->results[0].type->scalar;
        if (to != TILE_F32) replace(math, &b, op, tile_build_convert(&b, tile_build_convert(&b, x, TILE_F32), to));
        return;
    }
    TileValue *word = tile_build_convert(&b, x, TILE_I32);
    word = tile_build_binary(&b, TILE_OP_ADD, word, tile_build_integer(&b, word->type, BITS));
    TileValue *number = tile_build_bitcast(&b, word, TILE_F32);
    number = tile_build_binary(&b, TILE_OP_SUB, number, constant(&b, number->type, 0x1.8p23));
    replace(math, &b, op, tile_build_convert(&b, number, op->results[0].type->scalar));
}

/* ---- rounded numbers ---- */

static bool float_lane(const TileValue *value, double *number) {
    const TileOp *splat = tile_value_def(value, TILE_OP_SPLAT);
    uint64_t bits;
    if (value->type->scalar != TILE_F32 || !tile_value_bits(splat ? tile_op_operand(splat, 0) : value, &bits)) return false;
    *number = tile_scalar_to_double(TILE_F32, bits);
    return true;
}

/* Goes back through a minimum or a maximum with an integer, which narrows the range. */
static bool skip_bound(TileValue **value, Range *range) {
    const TileOp *op = (*value)->op;
    double number;
    bool least = op && (op->id == TILE_OP_MIN || op->id == TILE_OP_MINIMUM), most = op && (op->id == TILE_OP_MAX || op->id == TILE_OP_MAXIMUM);
    if ((!least && !most) || !tile_value_has_one_use(*value) || !float_lane(tile_op_operand(op, 1), &number)) return false;
    if (fabs(number) > UINT16_MAX || number != (double)(int64_t)number || (least ? number < range->lo : number > range->hi)) return false;
    if (least && number < range->hi) range->hi = (int64_t)number;
    if (most && number > range->lo) range->lo = (int64_t)number;
    *value = tile_op_operand(op, 0);
    return true;
}

/* A number that is rounded and becomes an integer of at most 16 bits, within bounds or those of the type, is a mantissa as well: what it is bounded
 * by is added to 1.5 * 2^23, which rounds it to the nearest, ties to even. A multiprocessor rounds 16 numbers in a cycle and converts as many, and
 * adds 128. NaN becomes 0. */
static void expand_rounded(Math *math, TileOp *op) {
    TileValue *x = tile_op_operand(op, 0);
    Range range;
    bool floats = x->type->scalar == TILE_F32 && range_of_type(op->results[0].type->scalar, &range);
    while (floats && skip_bound(&x, &range)) continue;
    const TileOp *round = floats && tile_value_has_one_use(x) ? tile_value_def(x, TILE_OP_ROUND) : NULL;
    if (!round) return;
    TileBuilder b = tile_builder_before(math->module, op);
    const TileType *type = x->type;
    for (x = tile_op_operand(round, 0); skip_bound(&x, &range);) continue;
    TileValue *exists = tile_build_binary(&b, TILE_OP_EQ, x, x), *zero = constant(&b, type, 0);
    TileValue *number = tile_build_binary(&b, TILE_OP_MAXIMUM, tile_build_ternary(&b, TILE_OP_SELECT, exists, x, zero), constant(&b, type, (double)range.lo));
    number = tile_build_binary(&b, TILE_OP_MINIMUM, number, constant(&b, type, (double)range.hi));
    number = tile_build_binary(&b, TILE_OP_ADD, number, constant(&b, type, 0x1.8p23));
    replace(math, &b, op, tile_build_convert(&b, tile_build_bitcast(&b, number, TILE_I32), op->results[0].type->scalar));
}

static void visit(TileOp *op, void *state) {
    if (op->result_count != 1) return;
    TileScalar scalar = op->results[0].type->scalar;
    if (op->id == TILE_OP_EXP2 || op->id == TILE_OP_EXP || op->id == TILE_OP_SIGMOID) {
        if (scalar != TILE_F32 || !tile_op_integer(op, TILE_ATTRIBUTE_APPROX, 0)) return;
        bool small = tile_op_integer(op, TILE_ATTRIBUTE_SMALL, 0) && has_several(op->results[0].type);
        small ? expand_small_sigmoid(state, op) : expand_exponential(state, op);
    } else if (op->id == TILE_OP_CONVERT) {
        if (tile_scalar_is_float(scalar) && scalar != TILE_F64 && tile_scalar_bits(scalar) >= 16) expand_small_integer(state, op);
        if (tile_scalar_is_int(scalar)) expand_rounded(state, op);
    } else if (op->id == TILE_OP_ERF) {
        if (scalar == TILE_F32 && tile_op_integer(op, TILE_ATTRIBUTE_APPROX, 0)) expand_erf(state, op);
    } else if (op->id == TILE_OP_TANH) {
        if (scalar == TILE_F32 && tile_op_integer(op, TILE_ATTRIBUTE_APPROX, 0)) expand_tanh(state, op);
    } else if (op->id == TILE_OP_DIV) {
        if (scalar == TILE_F32 && has_several(op->results[0].type) && !((Math *)state)->multiplies) expand_quotient(state, op);
    } else if (op->id == TILE_OP_MIN || op->id == TILE_OP_MAX) {
        if (tile_scalar_is_float(scalar) && scalar != TILE_F64) expand_extreme(state, op);
    }
}

static void find_products(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_MMA || op->id == TILE_OP_WGMMA; }

TileResult tile_pass_gpu_math(TilePassContext *context, TileFunc *func) {
    Math math = {.module = context->module};
    tile_block_walk(&func->body, find_products, &math.multiplies);
    tile_block_walk(&func->body, visit, &math);
    if (math.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-math: %s", math.error);
    return math.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
