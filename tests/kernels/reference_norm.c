/* Normalisations and their gradients, variance, and reductions of a whole matrix. */
#include <math.h>

#include "reference.h"

static double float_of(double x) { return (double)(float)x; }

void reference_layernorm_forward(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    double eps = float_of(problem->scalar[0]);
    reference_layernorm(problem);
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        Moments moments = reference_moments(problem->input[0] + m * columns, columns, eps);
        double rstd = 1 / sqrt(moments.variance + eps);
        problem->further[0].expected[m] = moments.mean;
        problem->further[0].slack[m] = moments.mean_slack;
        problem->further[1].expected[m] = rstd;
        problem->further[1].slack[m] = rstd * (moments.variance_relative / 2 + 6 * F32_ROUNDOFF);
    }
}

void reference_rmsnorm_forward(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    reference_rmsnorm(problem);
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        double squares = 0;
        for (int64_t n = 0; n < columns; n++) squares += x[n] * x[n];
        double rstd = 1 / sqrt(squares / (double)columns + float_of(problem->scalar[0]));
        problem->further[0].expected[m] = rstd;
        problem->further[0].slack[m] = rstd * (reference_lanes_slack(columns, 1) / 2 + 8 * F32_ROUNDOFF);
    }
}

/* A mean and the error bound of an f32 one, given the relative error of each term in roundings. */
static Approximate mean_of(double total, double magnitude, int64_t count, double roundings) {
    double value = total / (double)count;
    double slack = (reference_lanes_slack(count, magnitude) + roundings * F32_ROUNDOFF * magnitude) / (double)count;
    return (Approximate){value, slack + F32_ROUNDOFF * fabs(value)};
}

/* One row of the gradient with respect to x: scale * (g - shift - xhat * slope), where shift is the mean of g for
 * layernorm and 0 for rmsnorm. g has one rounding, xhat two. Both are rounded to f32 here, too: a product that
 * underflows to 0 may meet an infinity. */
static void backward_row(const Problem *problem, int64_t row, const double *gamma, double mean, double scale,
                         bool shifts) {
    int64_t columns = problem_dimension(problem, 'N');
    const double *dy = problem->input[0] + row * columns, *x = problem->input[1] + row * columns;
    double total = 0, size = 0, along = 0, along_size = 0;
    for (int64_t n = 0; n < columns; n++) {
        double g = float_of(dy[n] * gamma[n]), product = g * float_of((x[n] - mean) * scale);
        total += g;
        size += fabs(g);
        along += product;
        along_size += fabs(product);
    }
    Approximate shift = mean_of(total, size, columns, 1), slope = mean_of(along, along_size, columns, 4);
    if (!shifts) shift = (Approximate){0, 0};
    for (int64_t n = 0; n < columns; n++) {
        double g = float_of(dy[n] * gamma[n]), xhat = float_of((x[n] - mean) * scale);
        double value = (g - shift.value - xhat * slope.value) * scale;
        double inner = F32_ROUNDOFF * (3 * fabs(g) + 2 * fabs(shift.value) + 5 * fabs(xhat * slope.value)) +
                       shift.slack + fabs(xhat) * slope.slack;
        problem->expected[row * columns + n] = value;
        problem->slack[row * columns + n] =
            fabs(scale) * inner + F32_ROUNDOFF * fabs(value) + F32_TINY * (1 + fabs(scale)) * (1 + fabs(xhat));
    }
}

void reference_layernorm_backward(const Problem *problem) {
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++)
        backward_row(problem, m, problem->input[2], problem->input[3][m], problem->input[4][m], true);
}

void reference_rmsnorm_backward(const Problem *problem) {
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++)
        backward_row(problem, m, problem->input[2], 0, problem->input[3][m], false);
}

/* Columns: sums of dy * xhat, whose terms have three roundings, accumulated sequentially. */
static void backward_params(const Problem *problem, const double *mean, const double *rstd) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    for (int64_t n = 0; n < columns; n++) {
        double total = 0, magnitude = 0;
        for (int64_t m = 0; m < rows; m++) {
            double x = problem->input[1][m * columns + n];
            double product = problem->input[0][m * columns + n] * float_of((x - (mean ? mean[m] : 0)) * rstd[m]);
            total += product;
            magnitude += fabs(product);
        }
        problem->expected[n] = total;
        problem->slack[n] = reference_serial_slack(rows + 3, magnitude) + F32_TINY * (double)(rows + 1);
    }
}

void reference_rmsnorm_backward_params(const Problem *problem) { backward_params(problem, NULL, problem->input[2]); }

void reference_layernorm_backward_params(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    backward_params(problem, problem->input[2], problem->input[3]);
    for (int64_t n = 0; n < columns; n++) {
        double total = 0, magnitude = 0;
        for (int64_t m = 0; m < rows; m++) {
            total += problem->input[0][m * columns + n];
            magnitude += fabs(problem->input[0][m * columns + n]);
        }
        problem->further[0].expected[n] = total;
        problem->further[0].slack[n] = reference_serial_slack(rows, magnitude);
    }
}

/* The channels of a group are adjacent, so a group of one sample is contiguous. */
void reference_group_norm(const Problem *problem) {
    int64_t channels = problem_dimension(problem, 'C'), pixels = problem_dimension(problem, 'P');
    int64_t groups = (int64_t)problem->scalar[0], width = channels / groups;
    double eps = float_of(problem->scalar[1]);
    for (int64_t group = 0; group < problem_dimension(problem, 'B') * groups; group++) {
        const double *x = problem->input[0] + group * width * pixels;
        Moments moments = reference_moments(x, width * pixels, eps);
        double rstd = 1 / sqrt(moments.variance + eps), relative = moments.variance_relative / 2 + 8 * F32_ROUNDOFF;
        for (int64_t i = 0; i < width * pixels; i++) {
            int64_t at = group * width * pixels + i, channel = group % groups * width + i / pixels;
            double scale = rstd * problem->input[1][channel], product = (x[i] - moments.mean) * scale;
            problem->expected[at] = product + problem->input[2][channel];
            problem->slack[at] = fabs(product) * relative + fabs(scale) * moments.mean_slack +
                                 F32_ROUNDOFF * fabs(problem->expected[at]) + F32_TINY;
        }
    }
}

/* Computed in tiles of at least 32, whose means and squared deviations are merged: for the mean, three more roundings
 * per tile. The squared deviations have the error of the mean once per element and, due to the differences between
 * tiles, at most three times more. */
void reference_variance_rows(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    double divisor = fmax((double)columns - problem->scalar[0], 0);
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        double total = 0, magnitude = 0, greatest = 0, squares = 0, slack = 0;
        for (int64_t n = 0; n < columns; n++) {
            total += x[n];
            magnitude += fabs(x[n]);
            greatest = fmax(greatest, fabs(x[n]));
        }
        double tiles = (double)columns / 32 + 1;
        Approximate mean = mean_of(total, magnitude, columns, 0);
        mean.slack += 3 * tiles * F32_ROUNDOFF * greatest;
        for (int64_t n = 0; n < columns; n++) {
            double d = x[n] - mean.value, error = mean.slack + F32_ROUNDOFF * fabs(d);
            squares += d * d;
            slack += 4 * (2 * fabs(d) * error + error * error);
        }
        slack += reference_lanes_slack(columns, squares) + 6 * tiles * F32_ROUNDOFF * squares;
        problem->expected[m] = squares / divisor;
        problem->slack[m] = slack / divisor + F32_ROUNDOFF * problem->expected[m] + F32_TINY;
        problem->further[0].expected[m] = mean.value;
        problem->further[0].slack[m] = mean.slack;
    }
}

/* ---- reductions of a whole matrix ---- */

typedef struct Totals {
    int64_t count;
    double sum, magnitude, squares, greatest;
} Totals;

static Totals totals(const Problem *problem) {
    Totals all = {.count = problem_dimension(problem, 'M') * problem_dimension(problem, 'N'), .greatest = -INFINITY};
    for (int64_t i = 0; i < all.count; i++) {
        double x = problem->input[0][i];
        all.sum += x;
        all.magnitude += fabs(x);
        all.squares += x * x;
        all.greatest = fmax(all.greatest, x);
    }
    return all;
}

void reference_sum_all(const Problem *problem) {
    Totals all = totals(problem);
    problem->expected[0] = all.sum;
    problem->slack[0] = reference_lanes_slack(all.count, all.magnitude);
}

void reference_mean_all(const Problem *problem) {
    Totals all = totals(problem);
    Approximate mean = mean_of(all.sum, all.magnitude, all.count, 0);
    problem->expected[0] = mean.value;
    problem->slack[0] = mean.slack;
}

void reference_max_all(const Problem *problem) {
    bool nan = false;
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * problem_dimension(problem, 'N'); i++)
        nan |= isnan(problem->input[0][i]);
    problem->expected[0] = nan ? NAN : totals(problem).greatest;
}

/* Squares below the smallest subnormal are lost, so that up to sqrt(2^-149) per element is missing. */
void reference_norm_all(const Problem *problem) {
    Totals all = totals(problem);
    problem->expected[0] = sqrt(all.squares);
    problem->slack[0] = problem->expected[0] * (reference_lanes_slack(all.count, 1) / 2 + 3 * F32_ROUNDOFF);
    if (problem->expected[0] < 0x1p-50) problem->slack[0] += sqrt((double)all.count * 0x1p-149);
}
