#include <math.h>

#include "reference.h"

/* The greatest difference of finite numbers of a row; a bound on the rounding error of an f32 difference of two of
 * them. */
static double finite_range(const double *row, int64_t count) {
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(row[i])) {
            low = fmin(low, row[i]);
            high = fmax(high, row[i]);
        }
    return high > low ? high - low : 0;
}

static double maximum(const double *row, int64_t count) {
    double top = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(row[i])) return NAN;
        if (row[i] > top) top = row[i];
    }
    return top;
}

void reference_softmax(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        double *y = problem->expected + m * columns;
        double top = maximum(x, columns), total = 0;
        for (int64_t n = 0; n < columns; n++) total += y[n] = exp(x[n] - top);
        double relative = F32_ROUNDOFF * (2 * finite_range(x, columns) + (double)columns / 8 + 40);
        for (int64_t n = 0; n < columns; n++) {
            y[n] /= total;
            problem->slack[m * columns + n] = relative * y[n] + F32_TINY;
        }
    }
}

Moments reference_moments(const double *x, int64_t count, double eps) {
    double sum = 0, magnitude = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += x[i];
        magnitude += fabs(x[i]);
    }
    Moments moments = {.mean = sum / (double)count};
    moments.mean_slack = reference_lanes_slack(count, magnitude) / (double)count + F32_ROUNDOFF * fabs(moments.mean);
    double difference_error = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = x[i] - moments.mean;
        double error = moments.mean_slack + F32_ROUNDOFF * fabs(d);
        squares += d * d;
        difference_error += 2 * fabs(d) * error + error * error;
    }
    moments.variance = squares / (double)count;
    moments.variance_relative = difference_error / (double)count / (moments.variance + eps) +
                                reference_lanes_slack(count, 1) + 4 * F32_ROUNDOFF;
    return moments;
}

void reference_layernorm(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    double eps = (float)problem->scalar[0];
    const double *gamma = problem->input[1], *beta = problem->input[2];
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        Moments moments = reference_moments(x, columns, eps);
        double scale = 1 / sqrt(moments.variance + eps);
        double relative = moments.variance_relative / 2 + 8 * F32_ROUNDOFF;
        for (int64_t n = 0; n < columns; n++) {
            double product = (x[n] - moments.mean) * scale * gamma[n];
            double value = product + beta[n];
            problem->expected[m * columns + n] = value;
            problem->slack[m * columns + n] = fabs(product) * relative + fabs(scale * gamma[n]) * moments.mean_slack +
                                              F32_ROUNDOFF * (fabs(value) + fabs(beta[n])) + F32_TINY;
        }
    }
}

void reference_rmsnorm(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    double eps = (float)problem->scalar[0];
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        double squares = 0;
        for (int64_t n = 0; n < columns; n++) squares += x[n] * x[n];
        double scale = 1 / sqrt(squares / (double)columns + eps);
        double relative = reference_lanes_slack(columns, 1) / 2 + 10 * F32_ROUNDOFF;
        for (int64_t n = 0; n < columns; n++) {
            double value = x[n] * scale * problem->input[1][n];
            problem->expected[m * columns + n] = value;
            problem->slack[m * columns + n] = relative * fabs(value) + F32_TINY;
        }
    }
}

/* Sums along one axis: `outer` results of `inner` numbers each, which are `step` and `stride` apart. */
static void sums(const Problem *problem, int64_t outer, int64_t outer_step, int64_t inner, int64_t inner_step,
                 bool serial, double divisor) {
    for (int64_t i = 0; i < outer; i++) {
        double total = 0, magnitude = 0;
        for (int64_t j = 0; j < inner; j++) {
            double x = problem->input[0][i * outer_step + j * inner_step];
            total += x;
            magnitude += fabs(x);
        }
        problem->expected[i] = total / divisor;
        problem->slack[i] =
            (serial ? reference_serial_slack(inner, magnitude) : reference_lanes_slack(inner, magnitude)) /
                fmax(divisor, 1) +
            F32_ROUNDOFF * fabs(total / divisor);
    }
}

void reference_sum_rows(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    sums(problem, rows, columns, columns, 1, false, 1);
}

void reference_mean_rows(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    sums(problem, rows, columns, columns, 1, false, (double)columns);
}

void reference_sum_columns(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    sums(problem, columns, 1, rows, columns, true, 1);
}

void reference_mean_columns(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    sums(problem, columns, 1, rows, columns, true, (double)rows);
}

void reference_argmax_rows(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        int64_t best = 0;
        for (int64_t n = 1; n < columns && !isnan(x[best]); n++)
            if (isnan(x[n]) || x[n] > x[best]) best = n;
        problem->expected[m] = (double)best;
    }
}

void reference_transpose(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < rows; m++)
        for (int64_t n = 0; n < columns; n++) problem->expected[n * rows + m] = problem->input[0][m * columns + n];
}
