#include <math.h>

#include "reference.h"

static int64_t element_count(const Problem *problem) {
    return problem_dimension(problem, 'M') * problem_dimension(problem, 'N');
}

/* Rounded once from f32 to the output type: for a sum of two 16-bit floats, double rounding is exact. */
void reference_add(const Problem *problem) {
    for (int64_t i = 0; i < element_count(problem); i++)
        problem->expected[i] = problem->input[0][i] + problem->input[1][i];
}

/* One fma in f32; 16-bit results are rounded again. */
void reference_axpy(const Problem *problem) {
    double a = (float)problem->scalar[0];
    for (int64_t i = 0; i < problem_dimension(problem, 'N'); i++) {
        problem->expected[i] = a * problem->input[0][i] + problem->input[1][i];
        double second = problem->type == TYPE_F32 ? 0x1p-51 : F32_ROUNDOFF;
        problem->slack[i] = second * fabs(problem->expected[i]);
    }
}

void reference_copy(const Problem *problem) {
    for (int64_t i = 0; i < element_count(problem); i++) problem->expected[i] = problem->input[0][i];
}

void reference_relu(const Problem *problem) {
    for (int64_t i = 0; i < element_count(problem); i++) {
        double x = problem->input[0][i];
        problem->expected[i] = x < 0 ? 0 : x;
    }
}

/* 1 + erf has cancellation for negative x, so the slack is relative to x there. */
static Approximate gelu_of(double x) {
    double value = 0.5 * x * (1 + erf(x * 0.70710678118654752));
    return (Approximate){value, 8 * F32_ROUNDOFF * (fabs(x) + fabs(value)) + F32_TINY};
}

/* The argument of the sigmoid has a relative error e, so its exponential has |argument| * e. */
Approximate reference_gelu_tanh_of(double x) {
    double u = 0.79788456080286536 * (x + 0.044715 * x * x * x);
    double value = x / (1 + exp(-2 * u));
    double relative = (8 + 12 * fmin(fabs(u), 100)) * F32_ROUNDOFF;
    return (Approximate){value, relative * fabs(value) + F32_TINY * (1 + fmin(fabs(x), 100))};
}

/* For x < -88.7, exp(-x) overflows in f32, and the result is 0 instead of a number below 4e-37. */
Approximate reference_silu_of(double x) {
    double value = x / (1 + exp(-x));
    return (Approximate){value, 8 * F32_ROUNDOFF * fabs(value) + 4e-37};
}

static void map(const Problem *problem, Approximate (*function)(double)) {
    for (int64_t i = 0; i < element_count(problem); i++) {
        Approximate result = function(problem->input[0][i]);
        problem->expected[i] = result.value;
        problem->slack[i] = result.slack;
    }
}

void reference_gelu(const Problem *problem) { map(problem, gelu_of); }
void reference_gelu_tanh(const Problem *problem) { map(problem, reference_gelu_tanh_of); }
void reference_silu(const Problem *problem) { map(problem, reference_silu_of); }

/* The language's functions: an error of at most 2 ulp, or 1 of the smallest subnormal. */
static Approximate within_two_units(double value) {
    return (Approximate){value, 4 * F32_ROUNDOFF * fabs(value) + 0x1p-148};
}

/* By Newton's method on erf, or erfc near 1. */
static double inverse_erf(double x) {
    double a = fabs(x), y = a < 0.5 ? a : sqrt(-log1p(-a * a));
    if (!(a < 1)) return a == 1 ? x * INFINITY : NAN;
    for (int i = 0; i < 40; i++) {
        double off = (y < 0.5 ? erf(y) - a : 1 - a - erfc(y)) * exp(y * y) * 0.88622692545275801365;
        y -= off / (1 + y * off);
    }
    return copysign(a == 0 ? 0 : y, x);
}

#define REFERENCE_FUNCTION(name, expression)                                                                           \
    static Approximate name##_of(double x) { return within_two_units(expression); }                                    \
    void reference_function_##name(const Problem *problem) { map(problem, name##_of); }
REFERENCE_FUNCTION(exp, exp(x))
REFERENCE_FUNCTION(exp2, exp2(x))
REFERENCE_FUNCTION(expm1, expm1(x))
REFERENCE_FUNCTION(log, log(x))
REFERENCE_FUNCTION(log2, log2(x))
REFERENCE_FUNCTION(log1p, log1p(x))
REFERENCE_FUNCTION(sin, sin(x))
REFERENCE_FUNCTION(cos, cos(x))
REFERENCE_FUNCTION(tan, tan(x))
REFERENCE_FUNCTION(tanh, tanh(x))
REFERENCE_FUNCTION(erf, erf(x))
REFERENCE_FUNCTION(sigmoid, 1 / (1 + exp(-x)))
REFERENCE_FUNCTION(rsqrt, 1 / sqrt(x))

REFERENCE_FUNCTION(asin, asin(x))
REFERENCE_FUNCTION(acos, acos(x))
REFERENCE_FUNCTION(atan, atan(x))
REFERENCE_FUNCTION(sinh, sinh(x))
REFERENCE_FUNCTION(cosh, cosh(x))
REFERENCE_FUNCTION(asinh, asinh(x))
REFERENCE_FUNCTION(acosh, acosh(x))
REFERENCE_FUNCTION(atanh, atanh(x))
REFERENCE_FUNCTION(cbrt, cbrt(x))
REFERENCE_FUNCTION(erfc, erfc(x))
REFERENCE_FUNCTION(erfinv, inverse_erf(x))
REFERENCE_FUNCTION(lgamma, lgamma(x))

#define REFERENCE_FUNCTION_OF_TWO(name, slack_)                                                                        \
    void reference_function_##name(const Problem *problem) {                                                           \
        int64_t count = problem_dimension(problem, 'M') * problem_dimension(problem, 'N');                             \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            Approximate result = within_two_units(name(problem->input[0][i], problem->input[1][i]));                   \
            problem->expected[i] = result.value;                                                                       \
            problem->slack[i] = slack_;                                                                                \
        }                                                                                                              \
    }
REFERENCE_FUNCTION_OF_TWO(atan2, result.slack)
REFERENCE_FUNCTION_OF_TWO(hypot, result.slack)
REFERENCE_FUNCTION_OF_TWO(fmod, 0)

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double relu(double x) { return x < 0 ? 0 : x; }
static double chain_head(double x) { return relu(cos(sin(x + 0.1) * 1.1) + 0.2); }

static double chain30(double x) {
    double a = chain_head(x);
    double b = sigmoid(exp((a - 0.1) * 0.5) + 0.3);
    double c = relu(cos(sin(b * 1.2) + 0.4) - 0.2);
    double d = sigmoid(exp((c + 0.5) * 0.4) * 1.3);
    double e = chain_head(d);
    return sigmoid(exp((e - 0.1) * 0.5) + 0.3);
}

/* The derivative of every step is at most about 1, after the rounding of x + 0.1. */
void reference_chain(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        double total = 0, slack = 0;
        for (int64_t n = 0; n < columns; n++) {
            double x = problem->input[0][m * columns + n];
            total += chain30(x);
            slack += F32_ROUNDOFF * (64 + 2 * fabs(x));
        }
        problem->expected[m] = total;
        problem->slack[m] = slack + reference_lanes_slack(columns, total);
    }
}
