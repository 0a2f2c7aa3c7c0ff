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

static void check_argument(const Function *function, double x) {
    double got = tile_math_f64(function->id, x, 0);
    long double exact = function->reference(x);
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
