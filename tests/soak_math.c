/* Every f32 argument of one transcendental function, compared with the C library in double precision: the greatest
 * error in ulp, and the number of results of a wrong kind (NaN, infinity, sign of zero).
 * usage: soak_math FUNCTION [approx] [STEP]
 *        soak_math pow|atan2|hypot|fmod PAIRS       pairs of random bits, half of them near 1, where the result is neither 0 nor
 * infinite */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/scalar/math.h"

typedef double (*Reference)(double);

static double reference_rsqrt(double x) { return 1 / sqrt(x); }
static double reference_sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* By Newton's method on erf, or erfc near 1. */
static double reference_erfinv(double x) {
    double a = fabs(x), y = a < 0.5 ? a : sqrt(-log1p(-a * a));
    if (!(a < 1)) return a == 1 ? x * INFINITY : NAN;
    for (int i = 0; i < 40; i++) {
        double off = (y < 0.5 ? erf(y) - a : 1 - a - erfc(y)) * exp(y * y) * 0.88622692545275801365;
        double next = y - off / (1 + y * off);
        if (next == y) break;
        y = next;
    }
    return copysign(a == 0 ? 0 : y, x);
}

static const struct {
    const char *name;
    TileEvalOp id;
    Reference reference;
} functions[] = {
    {"rsqrt", TILE_EVAL_RSQRT, reference_rsqrt},
    {"exp", TILE_EVAL_EXP, exp},
    {"exp2", TILE_EVAL_EXP2, exp2},
    {"expm1", TILE_EVAL_EXPM1, expm1},
    {"log", TILE_EVAL_LOG, log},
    {"log2", TILE_EVAL_LOG2, log2},
    {"log1p", TILE_EVAL_LOG1P, log1p},
    {"sin", TILE_EVAL_SIN, sin},
    {"cos", TILE_EVAL_COS, cos},
    {"tan", TILE_EVAL_TAN, tan},
    {"tanh", TILE_EVAL_TANH, tanh},
    {"erf", TILE_EVAL_ERF, erf},
    {"sigmoid", TILE_EVAL_SIGMOID, reference_sigmoid},
    {"asin", TILE_EVAL_ASIN, asin},
    {"acos", TILE_EVAL_ACOS, acos},
    {"atan", TILE_EVAL_ATAN, atan},
    {"sinh", TILE_EVAL_SINH, sinh},
    {"cosh", TILE_EVAL_COSH, cosh},
    {"asinh", TILE_EVAL_ASINH, asinh},
    {"acosh", TILE_EVAL_ACOSH, acosh},
    {"atanh", TILE_EVAL_ATANH, atanh},
    {"cbrt", TILE_EVAL_CBRT, cbrt},
    {"erfc", TILE_EVAL_ERFC, erfc},
    {"erfinv", TILE_EVAL_ERFINV, reference_erfinv},
    {"lgamma", TILE_EVAL_LGAMMA, lgamma},
};

typedef struct Worst {
    double ulps;
    float at, kind_at;
    unsigned long kinds;
} Worst;

/* In ulp of the exact value. Beyond the greatest f32, infinity counts as 2^128. */
static double distance(float got, double exact) {
    int exponent;
    double magnitude = fabs(exact);
    frexp(magnitude < 0x1p-126 ? 0x1p-126 : magnitude >= 0x1p128 ? 0x1p127 : magnitude, &exponent);
    double limited = magnitude >= 0x1p128 ? copysign(0x1p128, exact) : exact;
    return fabs((isinf(got) ? copysign(0x1p128, got) : (double)got) - limited) / ldexp(1, exponent - 24);
}

static void compare(Worst *worst, float x, float got, double exact) {
    bool same_kind = !isnan(exact) == !isnan(got) && (exact != 0 || (got == 0 && !signbit(got) == !signbit(exact)));
    if (!same_kind) {
        worst->kinds++;
        worst->kind_at = x;
    } else if (!isnan(exact) && exact != 0) {
        double ulps = distance(got, exact);
        if (ulps > worst->ulps) worst->ulps = ulps, worst->at = x;
    }
}

/* Arguments for which the approximate versions guarantee nothing, or only a small result. */
static bool is_beyond_approx(TileEvalOp id, float x, double exact) {
    if (id == TILE_EVAL_SIN || id == TILE_EVAL_COS) return !(fabsf(x) <= 0x1p17f);
    if (id == TILE_EVAL_LOG || id == TILE_EVAL_LOG2) return fabsf(x) < 0x1p-126f;
    return fabs(exact) < 0x1p-125;
}

static uint64_t next_random(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static float from_bits(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    return x;
}

static const struct {
    const char *name;
    TileEvalOp id;
    double (*reference)(double, double);
} functions_of_two[] = {
    {"pow", TILE_EVAL_POW, pow},
    {"atan2", TILE_EVAL_ATAN2, atan2},
    {"hypot", TILE_EVAL_HYPOT, hypot},
    {"fmod", TILE_EVAL_FMOD, fmod},
};

static int check_pairs(size_t f, uint64_t pairs) {
    Worst worst = {0};
    uint64_t state = 1;
    float other = 0;
    for (uint64_t i = 0; i < pairs; i++) {
        uint64_t random = next_random(&state);
        /* 1/4 to 4 to a power of up to 64: results in the full range of f32. */
        float x =
            i & 1 ? ldexpf(1 + (float)(random & 0xffffff) * 0x1p-24f, (int)(random >> 24 & 3) - 2) : from_bits(random);
        float y = i & 1 ? (float)(int32_t)(random >> 32) * 0x1p-25f : from_bits(random >> 32);
        double before = worst.ulps, exact = functions_of_two[f].reference(x, y);
        if (fabs(exact) <= 0x1p-150) exact = copysign(0, exact);
        compare(&worst, x, tile_math_f32(functions_of_two[f].id, false, x, y), exact);
        if (worst.ulps > before) other = y;
    }
    printf("%s: at most %.3f ulp, at %a, %a; %lu of the wrong kind (%a)\n", functions_of_two[f].name, worst.ulps, worst.at, other, worst.kinds,
           worst.kind_at);
    return worst.kinds || worst.ulps > 2;
}

int main(int count, char **arguments) {
    for (size_t f = 0; count == 3 && f < sizeof functions_of_two / sizeof *functions_of_two; f++)
        if (strcmp(arguments[1], functions_of_two[f].name) == 0) return check_pairs(f, strtoull(arguments[2], NULL, 10));
    bool approx = count > 2 && strcmp(arguments[2], "approx") == 0;
    uint64_t step = count > 2 + approx ? strtoull(arguments[2 + approx], NULL, 10) : 1;
    for (size_t f = 0; count > 1 && step && f < sizeof functions / sizeof *functions; f++) {
        if (strcmp(arguments[1], functions[f].name) != 0) continue;
        Worst worst = {0};
        for (uint64_t i = 0; i < (uint64_t)1 << 32; i += step) {
            uint32_t bits = (uint32_t)i;
            float x;
            memcpy(&x, &bits, sizeof x);
            double exact = functions[f].reference(x);
            if (fabs(exact) <= 0x1p-150) exact = copysign(0, exact);
            if (approx && is_beyond_approx(functions[f].id, x, exact)) continue;
            compare(&worst, x, tile_math_f32(functions[f].id, approx, x, 0), exact);
        }
        printf("%s%s: at most %.3f ulp, at %a; %lu of the wrong kind (%a)\n", approx ? "approx." : "",
               functions[f].name, worst.ulps, worst.at, worst.kinds, worst.kind_at);
        return worst.kinds || worst.ulps > (approx ? 5 : 2);
    }
    fprintf(stderr, "usage: soak_math FUNCTION [approx] [STEP]\n");
    return 2;
}
