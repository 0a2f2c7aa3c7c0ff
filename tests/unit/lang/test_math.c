/* The f32 functions of lang/scalar/math.def: special arguments exactly, others on a sample of all bit patterns,
 * compared with the C library in double precision. The bounds are those of docs/math.md, which scripts/soak_math.sh
 * checks for every argument. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "lang/scalar/math.h"

enum { STRIDE = 7919 }; /* of the sample: about 540,000 arguments for each function */

typedef double (*Reference)(double);

static double reference_rsqrt(double x) { return 1 / sqrt(x); }
static double reference_sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* By Newton's method on erf, or erfc near 1. */
static double reference_erfinv(double x) {
    double a = fabs(x), y = a < 0.5 ? a : sqrt(-log1p(-a * a));
    if (!(a < 1)) return a == 1 ? x * INFINITY : NAN;
    for (int i = 0; i < 40; i++) {
        double off = (y < 0.5 ? erf(y) - a : 1 - a - erfc(y)) * exp(y * y) * 0.88622692545275801365;
        y -= off / (1 + y * off);
    }
    return copysign(a == 0 ? 0 : y, x);
}

static double reference_fraction(double x) {
    int exponent;
    return frexp(x, &exponent);
}

static double reference_exponent(double x) {
    int exponent = 0;
    if (isfinite(x)) frexp(x, &exponent);
    return exponent;
}

typedef struct Function {
    TileEvalOp id;
    Reference reference;
    double ulps, approx_ulps;
} Function;

static const Function functions[] = {
    {TILE_EVAL_RSQRT, reference_rsqrt, 1.5, 1.5},
    {TILE_EVAL_EXP, exp, 0.9, 2.3},
    {TILE_EVAL_EXP2, exp2, 0.9, 2.0},
    {TILE_EVAL_EXPM1, expm1, 1.6, 1.6},
    {TILE_EVAL_LOG, log, 1.0, 5},
    {TILE_EVAL_LOG2, log2, 1.0, 5},
    {TILE_EVAL_LOG1P, log1p, 1.5, 1.5},
    {TILE_EVAL_SIN, sin, 1.8, 1.8},
    {TILE_EVAL_COS, cos, 1.9, 1.9},
    {TILE_EVAL_TAN, tan, 0.6, 0.6},
    {TILE_EVAL_TANH, tanh, 1.5, 3.6},
    {TILE_EVAL_ERF, erf, 1.1, 3.9},
    {TILE_EVAL_SIGMOID, reference_sigmoid, 1.7, 3.5},
    {TILE_EVAL_ACOS, acos, 1.2, 1.2},
    {TILE_EVAL_ASIN, asin, 1.2, 1.2},
    {TILE_EVAL_ATAN, atan, 1.9, 1.9},
    {TILE_EVAL_SINH, sinh, 1.65, 1.65},
    {TILE_EVAL_COSH, cosh, 1.4, 1.4},
    {TILE_EVAL_ASINH, asinh, 1.8, 1.8},
    {TILE_EVAL_ACOSH, acosh, 1.6, 1.6},
    {TILE_EVAL_ATANH, atanh, 1.6, 1.6},
    {TILE_EVAL_CBRT, cbrt, 0.51, 0.51},
    {TILE_EVAL_ERFC, erfc, 1.0, 1.0},
    {TILE_EVAL_ERFINV, reference_erfinv, 0.52, 0.52},
    {TILE_EVAL_LGAMMA, lgamma, 0.6, 0.6},
    {TILE_EVAL_FREXP_FRACTION, reference_fraction, 0, 0},
    {TILE_EVAL_FREXP_EXPONENT, reference_exponent, 0, 0},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static float float_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The distance in ulp of the exact value, as an f32. */
static double distance(float got, double exact) {
    int exponent;
    double magnitude = fabs(exact);
    frexp(magnitude < 0x1p-126 ? 0x1p-126 : magnitude >= 0x1p128 ? 0x1p127 : magnitude, &exponent);
    double limited = magnitude >= 0x1p128 ? copysign(0x1p128, exact) : exact;
    return fabs((isinf(got) ? copysign(0x1p128, got) : (double)got) - limited) / ldexp(1, exponent - 24);
}

static bool is_right(float got, double exact, double ulps) {
    if (isnan(exact) || isnan(got)) return isnan(exact) && isnan(got);
    if (exact == 0) return got == 0 && !signbit(got) == !signbit(exact);
    return distance(got, exact) <= ulps;
}

/* What is nearer to 0 than to the least number rounds to a zero of its sign. */
static double nearest_zero(double exact) { return fabs(exact) <= 0x1p-150 ? copysign(0, exact) : exact; }

/* Arguments for which the approximate versions guarantee nothing, or only a small result. */
static bool is_beyond_approx(TileEvalOp id, float x, double exact) {
    if (id == TILE_EVAL_SIN || id == TILE_EVAL_COS) return !(fabsf(x) <= 0x1p17f);
    if (id == TILE_EVAL_LOG || id == TILE_EVAL_LOG2) return fabsf(x) < 0x1p-126f;
    return fabs(exact) < 0x1p-125;
}

static void check_function(const Function *function, bool approx) {
    unsigned wrong = 0;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += STRIDE) {
        float x = float_of_bits((uint32_t)bits), got = tile_math_f32(function->id, approx, x, 0);
        double exact = nearest_zero(function->reference(x));
        if (approx && is_beyond_approx(function->id, x, exact)) continue;
        if (is_right(got, exact, approx ? function->approx_ulps : function->ulps) || wrong++ > 3) continue;
        cr_expect(0, "%s%s(%a) is %a, not %a", approx ? "approx." : "", tile_eval_op_name(function->id), x, got,
                  exact);
    }
}

Test(math, sample) {
    for (int i = 0; i < FUNCTIONS; i++) check_function(&functions[i], false);
}

Test(math, sample_of_short_forms) {
    for (int i = 0; i < FUNCTIONS; i++) check_function(&functions[i], true);
}

Test(math, special_arguments) {
    static const float arguments[] = {0, -0.0f, INFINITY, -INFINITY, NAN,   1e-45f, -1e-45f, 0x1p-126f,
                                      1, -1,    FLT_MAX,  -FLT_MAX,  88.8f, -104,   0x1p17f, 0x1.000002p17f};
    for (int i = 0; i < FUNCTIONS; i++)
        for (size_t a = 0; a < sizeof arguments / sizeof *arguments; a++) {
            float got = tile_math_f32(functions[i].id, false, arguments[a], 0);
            double exact = nearest_zero(functions[i].reference(arguments[a]));
            cr_expect(is_right(got, exact, functions[i].ulps), "%s(%a) is %a, not %a",
                      tile_eval_op_name(functions[i].id), arguments[a], got, exact);
        }
}

Test(math, pow) {
    static const float special[] = {0,    -0.0f, 1,     -1,     2,      -2,  0.5f,     -0.5f,     3,      -3,
                                    2.5f, -2.5f, 1e30f, -1e30f, 1e-30f, NAN, INFINITY, -INFINITY, 1e-45f, 16777216};
    enum { COUNT = sizeof special / sizeof *special };
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++) {
            float got = tile_math_f32(TILE_EVAL_POW, false, special[i], special[j]);
            double exact = pow(special[i], special[j]);
            cr_expect(is_right(got, fabs(exact) < 0x1p-151 ? copysign(0, exact) : exact, 0.6),
                      "pow(%a, %a) is %a, not %a", special[i], special[j], got, exact);
        }
    uint32_t state = 1;
    for (int i = 0; i < 1000000; i++) {
        state = state * 1664525 + 1013904223;
        float x = float_of_bits(state >> 1);
        state = state * 1664525 + 1013904223;
        float y = (float)((int32_t)state * 0x1p-31 * (i % 2 ? 8 : 200));
        double exact = pow(x, y);
        if (fabs(exact) < 0x1p-151) exact = 0;
        float got = tile_math_f32(TILE_EVAL_POW, false, x, y);
        cr_assert(is_right(got, exact, 0.6), "pow(%a, %a) is %a, not %a", x, y, got, exact);
    }
}

static double reference_ldexp(double x, double n) { return ldexp(x, (int)n); }

/* Of two arguments: all pairs of special ones, and random ones whose sizes differ little or much. */
static void check_pairs(TileEvalOp op, double (*reference)(double, double), double ulps, bool whole) {
    static const float special[] = {0, -0.0f, 1, -1, 2, -2, 0.5f, 3, 2.5f, -2.5f, 1e30f, -1e30f, 1e-30f, NAN, INFINITY,
                                    -INFINITY, 1e-45f, -1e-45f, 0x1p-126f, FLT_MAX, -FLT_MAX, 16777216, 200, -300};
    enum { COUNT = sizeof special / sizeof *special, SAMPLES = 400000 };
    uint32_t state = 1;
    for (int i = 0; i < COUNT * COUNT + SAMPLES; i++) {
        float x = special[i / COUNT % COUNT], y = special[i % COUNT];
        if (i >= COUNT * COUNT) {
            state = state * 1664525 + 1013904223;
            x = float_of_bits(state);
            state = state * 1664525 + 1013904223;
            y = i % 2 ? x * ((float)(int32_t)state * 0x1p-29f) : float_of_bits(state);
        }
        if (whole) y = truncf(fmodf(y, 500));
        if (whole && isnan(y)) continue;
        float got = tile_math_f32(op, false, x, y);
        double exact = nearest_zero(reference(x, y));
        cr_assert(is_right(got, exact, ulps), "%s(%a, %a) is %a, not %a", tile_eval_op_name(op), x, y, got, exact);
    }
}

Test(math, functions_of_two_arguments) {
    check_pairs(TILE_EVAL_ATAN2, atan2, 1.8, false);
    check_pairs(TILE_EVAL_HYPOT, hypot, 1.0, false);
    check_pairs(TILE_EVAL_FMOD, fmod, 0, false);
    check_pairs(TILE_EVAL_LDEXP, reference_ldexp, 0.5, true);
}

/* ---- quotients of machines that approximate 1 / x (lowering/math.c) ---- */

static float newton(float y, float r) { return fmaf(r, fmaf(-y, r, 1), r); }

/* Every mantissa, from each float within a unit of the last place of 1 / y; but for the mantissa with all bits set. */
Test(math, a_step_of_newton_rounds_a_reciprocal_to_nearest) {
    long wrong = 0;
    for (uint32_t bits = 0x3f800000; bits < 0x3fffffff; bits++) {
        float y = float_of_bits(bits), exact = 1 / y;
        uint32_t near;
        memcpy(&near, &exact, sizeof near);
        for (uint32_t at = near - 1; at <= near + 1; at++) {
            float r = float_of_bits(at);
            if (fabs(r - 1.0 / y) < 0x1p-24) wrong += newton(y, r) != exact;
        }
    }
    cr_expect_eq(wrong, 0, "%ld", wrong);
    cr_expect_eq(newton(0x1.fffffep0f, 1 / 0x1.fffffep0f), 1 / 0x1.fffffep0f);
}

static float quotient(float x, float y) {
    float r = 1 / y, q = x * r;
    return fmaf(fmaf(-y, q, x), r, q);
}

/* Those nearest to the middle between two floats: x * 2^25 = y * m + k with an odd m, as integers of 24, 24 and 25 bits, and
 * a small k, for odd y. The part that is added is wrong by less than 3 such units. */
Test(math, a_remainder_rounds_a_quotient_to_nearest) {
    long tried = 0, wrong = 0;
    for (uint32_t y = 0x800001; y < 1u << 24; y += 2 * 7) {
        uint32_t inverse = y;
        for (int i = 0; i < 5; i++) inverse *= 2 - y * inverse;
        for (int k = -8; k <= 8; k++) {
            uint64_t m = (uint32_t)-k * inverse & 0x1ffffff;
            uint64_t x = ((uint64_t)y * m + (uint64_t)(int64_t)k) >> 25;
            if (m < 1u << 24 || m % 2 == 0 || x < 1u << 23) continue;
            tried++;
            wrong += quotient((float)x, (float)y) != (float)x / (float)y;
        }
    }
    cr_expect_gt(tried, 1000000);
    cr_expect_eq(wrong, 0, "%ld of %ld", wrong, tried);
}

/* What sigmoid makes of the quotient does not change where that may be a neighbour. */
Test(math, a_small_quotient_leaves_sigmoid_alone) {
    for (uint32_t bits = 1; bits < 0x0c800000; bits += 1009) {
        float z = float_of_bits(bits), q = z / (z + 1);
        for (int up = -1; up <= 1; up++) {
            uint32_t at;
            memcpy(&at, &q, sizeof at);
            float near = float_of_bits(at + (uint32_t)up);
            cr_assert_eq(fmaf(-z, near, z), z);
            cr_assert_eq(fmaf(-1, near, 1), 1);
        }
    }
}
