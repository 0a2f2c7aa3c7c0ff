/* The f64 functions of lang/scalar/math.def compared with the C library in long double: special arguments, uniform
 * ones, and random bit patterns, which include huge angles. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "lang/scalar/math.h"

enum { SAMPLES = 60000 };

typedef long double (*Reference)(long double);

static long double reference_rsqrt(long double x) { return 1 / sqrtl(x); }
static long double reference_sigmoid(long double x) { return 1 / (1 + expl(-x)); }

/* By Newton's method on erf, or erfc near 1. */
static long double reference_erfinv(long double x) {
    long double a = fabsl(x), y = a < 0.5L ? a : sqrtl(-log1pl(-a * a));
    if (!(a < 1)) return a == 1 ? x * INFINITY : NAN;
    for (int i = 0; i < 40; i++) {
        long double off = (y < 0.5L ? erfl(y) - a : 1 - a - erfcl(y)) * expl(y * y) * 0.88622692545275801365L;
        y -= off / (1 + y * off);
    }
    return copysignl(a == 0 ? 0 : y, x);
}

static long double reference_fraction(long double x) {
    int exponent;
    return frexpl(x, &exponent);
}

static long double reference_exponent(long double x) {
    int exponent = 0;
    if (isfinite(x)) frexpl(x, &exponent);
    return exponent;
}

typedef struct Function {
    TileEvalOp id;
    Reference reference;
    double ulps;
} Function;

static const Function functions[] = {
    {TILE_EVAL_RSQRT, reference_rsqrt, 1.5},
    {TILE_EVAL_EXP, expl, 0.9},
    {TILE_EVAL_EXP2, exp2l, 0.9},
    {TILE_EVAL_EXPM1, expm1l, 1.8},
    {TILE_EVAL_LOG, logl, 0.9},
    {TILE_EVAL_LOG2, log2l, 0.8},
    {TILE_EVAL_LOG1P, log1pl, 1.5},
    {TILE_EVAL_SIN, sinl, 0.8},
    {TILE_EVAL_COS, cosl, 0.8},
    {TILE_EVAL_TAN, tanl, 0.8},
    {TILE_EVAL_TANH, tanhl, 1.4},
    {TILE_EVAL_ERF, erfl, 1.2},
    {TILE_EVAL_SIGMOID, reference_sigmoid, 1.7},
    {TILE_EVAL_ACOS, acosl, 1.2},
    {TILE_EVAL_ASIN, asinl, 1.2},
    {TILE_EVAL_ATAN, atanl, 1.9},
    {TILE_EVAL_SINH, sinhl, 1.7},
    {TILE_EVAL_COSH, coshl, 1.5},
    {TILE_EVAL_ASINH, asinhl, 1.8},
    {TILE_EVAL_ACOSH, acoshl, 1.7},
    {TILE_EVAL_ATANH, atanhl, 1.6},
    {TILE_EVAL_CBRT, cbrtl, 0.52},
    {TILE_EVAL_ERFC, erfcl, 2.1},
    {TILE_EVAL_ERFINV, reference_erfinv, 3.0},
    {TILE_EVAL_LGAMMA, lgammal, 2.5},
    {TILE_EVAL_FREXP_FRACTION, reference_fraction, 0},
    {TILE_EVAL_FREXP_EXPONENT, reference_exponent, 0},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static double random_argument(uint64_t *state) {
    uint64_t kind = next_random(state) % 3, bits = next_random(state);
    double uniform = (double)(int64_t)bits * 0x1p-63, x;
    if (kind == 0) return uniform * 4;
    if (kind == 1) return uniform * 760;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* In ulp of the exact value. Beyond the greatest f64, infinity counts as 2^1024. */
static long double distance(double got, long double exact) {
    int exponent;
    long double magnitude = fabsl(exact);
    frexpl(magnitude < 0x1p-1022L ? 0x1p-1022L : magnitude >= 0x1p1024L ? 0x1p1023L : magnitude, &exponent);
    long double limited = magnitude >= 0x1p1024L ? copysignl(0x1p1024L, exact) : exact;
    return fabsl((isinf(got) ? copysignl(0x1p1024L, got) : (long double)got) - limited) / ldexpl(1, exponent - 53);
}

static bool is_right(double got, long double exact, double ulps) {
    if (isnan(exact) || isnan(got)) return isnan(exact) && isnan(got);
    if (exact == 0) return got == 0 && !signbit(got) == !signbit(exact);
    return distance(got, exact) <= (long double)ulps;
}

static long double nearest_zero(long double exact) {
    return fabsl(exact) <= 0x1p-1075L ? copysignl(0, exact) : exact;
}

/* Of a negative argument, lgamma has an error of so many units of lgamma(-x), or of 1. */
static bool is_near_zero_of_lgamma(TileEvalOp id, double x, double got, long double exact, long double ulps) {
    if (id != TILE_EVAL_LGAMMA || !(x < 0) || !isfinite(got)) return false;
    return fabsl(got - exact) <= ulps * 0x1p-52L * (1 + fabsl(lgammal(-x)));
}

static void check_argument(const Function *function, double x) {
    double got = tile_math_f64(function->id, x, 0);
    long double exact = nearest_zero(function->reference(x));
    if (is_near_zero_of_lgamma(function->id, x, got, exact, 1.5L)) return;
    cr_expect(is_right(got, exact, function->ulps), "%s(%a) is %a, not %La", tile_eval_op_name(function->id), x,
              got, exact);
}

Test(math_f64, special_arguments) {
    static const double arguments[] = {
        0,       -0.0, INFINITY, -INFINITY, NAN,     5e-324,   -5e-324, 0x1p-1022,
        1,       -1,   710,      -746,      DBL_MAX, -DBL_MAX, 0x1p20,  0x1.0000000000001p20,
        0x1p1000};
    for (int i = 0; i < FUNCTIONS; i++)
        for (size_t a = 0; a < sizeof arguments / sizeof *arguments; a++) check_argument(&functions[i], arguments[a]);
}

Test(math_f64, sample) {
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < FUNCTIONS; i++)
        for (int sample = 0; sample < SAMPLES; sample++) check_argument(&functions[i], random_argument(&state));
}

/* Arguments close to multiples of pi / 2, among them the closest f64 of all. */
Test(math_f64, angles_that_nearly_vanish) {
    static const double angles[] = {0x1.6ac5b262ca1ffp+849, 0x1.921fb54442d18p+0, 0x1.921fb54442d18p+1,
                                    0x1.f6a7a2955385ep+2};
    for (int i = 0; i < FUNCTIONS; i++) {
        bool is_angle =
            functions[i].id == TILE_EVAL_SIN || functions[i].id == TILE_EVAL_COS || functions[i].id == TILE_EVAL_TAN;
        for (size_t a = 0; is_angle && a < sizeof angles / sizeof *angles; a++)
            check_argument(&functions[i], angles[a]);
    }
}

Test(math_f64, pow) {
    static const double special[] = {0,
                                     -0.0,
                                     1,
                                     -1,
                                     2,
                                     -2,
                                     0.5,
                                     -0.5,
                                     3,
                                     -3,
                                     2.5,
                                     -2.5,
                                     NAN,
                                     INFINITY,
                                     -INFINITY,
                                     1e300,
                                     -1e300,
                                     5e-324,
                                     9007199254740993.0,
                                     1e-300};
    enum { COUNT = sizeof special / sizeof *special };
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++) {
            double got = tile_math_f64(TILE_EVAL_POW, special[i], special[j]);
            long double exact = powl(special[i], special[j]);
            if (fabsl(exact) < 0x1p-1076L) exact = copysignl(0, exact);
            cr_expect(is_right(got, exact, 1), "pow(%a, %a) is %a, not %La", special[i], special[j], got, exact);
        }
    uint64_t state = 1;
    for (int i = 0; i < SAMPLES; i++) {
        double x = fabs(random_argument(&state)), y = random_argument(&state);
        long double exact = powl(x, y);
        if (fabsl(exact) < 0x1p-1076L) exact = 0;
        double got = tile_math_f64(TILE_EVAL_POW, x, y);
        cr_expect(is_right(got, exact, 1), "pow(%a, %a) is %a, not %La", x, y, got, exact);
    }
}

static long double reference_ldexp(long double x, long double n) { return ldexpl(x, (int)n); }

static void check_pairs(TileEvalOp op, long double (*reference)(long double, long double), double ulps, bool whole) {
    static const double special[] = {0,    -0.0,     1,         -1,     2,       -2,        3,         2.5,     1e300,
                                     -1e9, INFINITY, -INFINITY, NAN,    5e-324,  0x1p-1022, DBL_MAX,   -5e-324, 1e-300,
                                     1500, -2200,    0x1p52,    0x1p53, 0x1p-60, -DBL_MAX,  0x1p-1070, 7,       1e-5};
    enum { COUNT = sizeof special / sizeof *special };
    uint64_t state = 1;
    for (int i = 0; i < COUNT * COUNT + 2 * SAMPLES; i++) {
        bool chosen = i < COUNT * COUNT;
        double x = chosen ? special[i / COUNT] : random_argument(&state);
        double y = chosen ? special[i % COUNT] : random_argument(&state);
        if (!chosen && i % 3 == 0) y *= x;
        if (whole) y = trunc(fmod(y, 4000));
        if (whole && isnan(y)) continue;
        double got = tile_math_f64(op, x, y);
        long double exact = nearest_zero(reference(x, y));
        cr_assert(is_right(got, exact, ulps), "%s(%a, %a) is %a, not %La", tile_eval_op_name(op), x, y, got, exact);
    }
}

Test(math_f64, functions_of_two_arguments) {
    check_pairs(TILE_EVAL_ATAN2, atan2l, 1.9, false);
    check_pairs(TILE_EVAL_HYPOT, hypotl, 1.1, false);
    check_pairs(TILE_EVAL_FMOD, fmodl, 0, false);
    check_pairs(TILE_EVAL_LDEXP, reference_ldexp, 0.5, true);
}
