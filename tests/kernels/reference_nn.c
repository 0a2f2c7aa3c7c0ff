/* The scalar functions of stdlib/nn.tile and stdlib/math.tile, and the losses and row functions built on exp and log.
 * The error of exp, expm1, log, log1p in f32 is at most 2 ulp, which is at most 4 roundings (relative error). */
#include <math.h>

#include "reference.h"

static void map(const Problem *problem, Approximate (*function)(double)) {
    int64_t count = problem_dimension(problem, 'M') * problem_dimension(problem, 'N');
    for (int64_t i = 0; i < count; i++) {
        Approximate result = function(problem->input[0][i]);
        problem->expected[i] = result.value;
        problem->slack[i] = result.slack;
    }
}

/* A value with a relative error of this many roundings. */
static Approximate relative(double value, double roundings) {
    return (Approximate){value, roundings * F32_ROUNDOFF * fabs(value) + F32_TINY};
}

static double between(double x, double low, double high) { return isnan(x) ? x : fmin(fmax(x, low), high); }

static Approximate relu6_of(double x) { return (Approximate){between(x, 0, 6), 0}; }
/* The slope is an f32; one product. */
static Approximate leaky_relu_of(double x) { return relative(x > 0 ? x : x * (double)0.01F, 1); }
static Approximate elu_of(double x) { return relative(x > 0 ? x : expm1(x), 5); }
static Approximate selu_of(double x) {
    return relative(1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * expm1(x)), 8);
}
/* Both terms have the same sign; log1p does not increase a relative error. */
static Approximate softplus_of(double x) { return relative((x < 0 ? 0 : x) + log1p(exp(-fabs(x))), 10); }
static Approximate logsigmoid_of(double x) {
    Approximate result = softplus_of(-x);
    return (Approximate){-result.value, result.slack};
}
/* The quotient and about a dozen operations do not increase the error of t = exp(-|x|). Where t is subnormal, its own
 * error, times x, is absolute. */
static Approximate mish_of(double x) {
    Approximate result = relative(x * tanh(softplus_of(x).value), 16);
    result.slack += 4 * F32_TINY * fmin(fabs(x), 200);
    return result;
}
static Approximate hardsigmoid_of(double x) { return relative(between(x + 3, 0, 6) / 6, 3); }
static Approximate hardswish_of(double x) { return relative(x * (between(x + 3, 0, 6) / 6), 4); }
static Approximate softsign_of(double x) { return relative(x / (1 + fabs(x)), 3); }
static Approximate square_of(double x) { return relative(x * x, 1); }
static Approximate sign_of(double x) { return (Approximate){x > 0 ? 1 : x < 0 ? -1 : x, 0}; }

void reference_relu6(const Problem *problem) { map(problem, relu6_of); }
void reference_leaky_relu(const Problem *problem) { map(problem, leaky_relu_of); }
void reference_elu(const Problem *problem) { map(problem, elu_of); }
void reference_selu(const Problem *problem) { map(problem, selu_of); }
void reference_softplus(const Problem *problem) { map(problem, softplus_of); }
void reference_logsigmoid(const Problem *problem) { map(problem, logsigmoid_of); }
void reference_mish(const Problem *problem) { map(problem, mish_of); }
void reference_hardsigmoid(const Problem *problem) { map(problem, hardsigmoid_of); }
void reference_hardswish(const Problem *problem) { map(problem, hardswish_of); }
void reference_softsign(const Problem *problem) { map(problem, softsign_of); }
void reference_square(const Problem *problem) { map(problem, square_of); }
void reference_sign(const Problem *problem) { map(problem, sign_of); }

/* The difference of a and b is rounded, which exp and log1p turn into an absolute error of at most t. */
void reference_logaddexp(const Problem *problem) {
    int64_t count = problem_dimension(problem, 'M') * problem_dimension(problem, 'N');
    for (int64_t i = 0; i < count; i++) {
        double a = problem->input[0][i], b = problem->input[1][i];
        double top = isnan(a) || a > b ? a : b, gap = fabs(a - b), t = exp(-gap);
        double value = isinf(top) ? top : top + log1p(t);
        problem->expected[i] = value;
        problem->slack[i] = F32_ROUNDOFF * (fabs(value) + 8 * t + (t > 0 ? gap * t : 0)) + F32_TINY;
    }
}

/* ---- rows ---- */

/* The log-sum-exp of a row, and the error bound of an f32 computation: each argument of exp has a rounding error
 * relative to its size, the sum is accumulated in lanes and tiles, and log turns a relative error into an absolute
 * one. */
static Approximate logsumexp(const double *row, int64_t count) {
    double top = -INFINITY, low = INFINITY, total = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(row[i])) return (Approximate){NAN, 0};
        if (row[i] > top) top = row[i];
        if (row[i] < low && isfinite(row[i])) low = row[i];
    }
    if (isinf(top)) return (Approximate){top, 0};
    for (int64_t i = 0; i < count; i++) total += exp(row[i] - top);
    double value = top + log(total);
    double sum_relative = 2 * (top - low) + (double)count / 8 + 40;
    return (Approximate){value, F32_ROUNDOFF * (sum_relative + fabs(value) + 4 * log(total)) + F32_TINY};
}

void reference_logsumexp(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        Approximate row = logsumexp(problem->input[0] + m * columns, columns);
        problem->expected[m] = row.value;
        problem->slack[m] = row.slack;
    }
}

void reference_log_softmax(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        Approximate row = logsumexp(x, columns);
        double top = -INFINITY;
        for (int64_t n = 0; n < columns; n++) top = fmax(top, x[n]);
        for (int64_t n = 0; n < columns; n++) {
            double value = x[n] - row.value;
            if (isinf(row.value)) value = NAN; /* an infinite maximum is subtracted from itself */
            problem->expected[m * columns + n] = value;
            problem->slack[m * columns + n] = row.slack + F32_ROUNDOFF * (fabs(value) + fabs(x[n] - top));
        }
    }
}

/* Targets outside the vocabulary are ignored. */
static bool counts(const Problem *problem, double target) {
    return target >= 0 && target < (double)problem_dimension(problem, 'V');
}

void reference_cross_entropy(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'V');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        Approximate row = logsumexp(x, columns);
        double target = problem->input[1][m];
        problem->further[0].expected[m] = row.value;
        problem->further[0].slack[m] = row.slack;
        problem->expected[m] = counts(problem, target) ? row.value - x[(int64_t)target] : 0;
        problem->slack[m] = row.slack + F32_ROUNDOFF * fabs(problem->expected[m]);
    }
}

/* lse is an input of the kernel, exact like the others; the order of inputs is x, target, lse, dloss. */
void reference_cross_entropy_backward(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'V');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        double target = problem->input[1][m], lse = problem->input[2][m], dloss = problem->input[3][m];
        for (int64_t v = 0; v < columns && counts(problem, target); v++) {
            double gap = problem->input[0][m * columns + v] - lse, p = exp(gap);
            double value = (p - ((double)v == target)) * dloss;
            double relative_p = 6 + (isfinite(gap) ? fabs(gap) : 0);
            problem->expected[m * columns + v] = value;
            problem->slack[m * columns + v] =
                F32_ROUNDOFF * (2 * fabs(value) + fabs(dloss) * p * relative_p) + F32_TINY * (1 + fabs(dloss));
        }
    }
}
