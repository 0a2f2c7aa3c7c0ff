/* The kernels of tests/programs and examples that the standard library does not have. */
#include <math.h>
#include <stdlib.h>

#include "reference.h"

/* Below -88, exp overflows to infinity in f32, and the quotient is 0. */
void reference_swiglu(const Problem *problem) {
    const double vanished = 0x1p-120;
    int64_t columns = problem_dimension(problem, 'N'), count = problem_dimension(problem, 'M') * columns;
    for (int64_t i = 0; i < count; i++) {
        const double *row = problem->input[0] + i / columns * 2 * columns;
        double gate = row[i % columns], up = row[i % columns + columns], swish = gate / (1 + exp(-gate));
        problem->expected[i] = swish * up;
        problem->slack[i] = 16 * F32_ROUNDOFF * fabs(swish * up) + vanished * fabs(up) + F32_TINY;
    }
}

/* conv2d without a bias. */
void reference_conv2d_3x3(const Problem *problem) {
    Problem biased = *problem;
    double *bias = calloc((size_t)problem_dimension(problem, 'O') + 1, sizeof *bias);
    if (!bias) abort();
    biased.input[2] = bias;
    reference_conv2d(&biased);
    free(bias);
}

/* A gate for each row, added to the old value. */
void reference_matmul_gate_residual(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), count = problem_dimension(problem, 'M') * columns;
    reference_matmul(problem);
    for (int64_t i = 0; i < count; i++) {
        double gate = problem->input[2][i / columns], old = problem->input[3][i], sum = problem->expected[i];
        problem->expected[i] = sum * gate + old;
        problem->slack[i] = problem->slack[i] * fabs(gate) +
                            2 * F32_ROUNDOFF * (fabs(sum * gate) + fabs(problem->expected[i])) + F32_TINY;
    }
}

/* attention_varlen with one tensor of offsets, and a key head for each query head. Rows outside of all sequences are
 * not written. */
void reference_varlen_attention(const Problem *problem) {
    Problem own = *problem;
    int64_t rows = problem_dimension(problem, 'L'), heads = problem_dimension(problem, 'H');
    int64_t count = rows * heads * problem_dimension(problem, 'D');
    double *before = malloc(sizeof *before * (size_t)(count + 1));
    if (!before) abort();
    for (int64_t i = 0; i < count; i++) before[i] = INFINITY;
    own.dimension['S' - 'A'] = rows;
    own.dimension['G' - 'A'] = heads;
    own.input[4] = problem->input[3];
    own.input[5] = before;
    reference_attention_varlen_causal(&own);
    for (int64_t i = 0; i < count; i++)
        if (isinf(own.expected[i])) own.slack[i] = -1;
    free(before);
}

/* The pixel, and 0 outside. */
static double pixel(const Problem *problem, double row, double column, int64_t channel) {
    int64_t height = problem_dimension(problem, 'H'), width = problem_dimension(problem, 'W');
    if (row < 0 || row >= (double)height || column < 0 || column >= (double)width) return 0;
    return problem->input[0][((int64_t)row * width + (int64_t)column) * problem_dimension(problem, 'C') + channel];
}

void reference_bilinear(const Problem *problem) {
    int64_t channels = problem_dimension(problem, 'C'), count = problem_dimension(problem, 'N') * channels;
    for (int64_t i = 0; i < count; i++) {
        double x = problem->input[1][i / channels], y = problem->input[2][i / channels], sum = 0, magnitude = 0;
        double left = floor(x), above = floor(y), fx = x - left, fy = y - above;
        for (int corner = 0; corner < 4; corner++) {
            double right = corner & 1, below = corner >> 1;
            double term = pixel(problem, above + below, left + right, i % channels) * (right != 0 ? fx : 1 - fx) *
                          (below != 0 ? fy : 1 - fy);
            sum += term;
            magnitude += fabs(term);
        }
        problem->expected[i] = sum;
        problem->slack[i] = 8 * F32_ROUNDOFF * magnitude + 4 * F32_TINY;
    }
}

/* For points near the circle of radius 2, rounding decides whether they are counted. */
void reference_mandelbrot(const Problem *problem) {
    int64_t width = problem_dimension(problem, 'W'), count = problem_dimension(problem, 'H') * width;
    for (int64_t i = 0; i < count; i++) {
        double cr = problem->scalar[0] + (double)(i % width) * problem->scalar[2];
        double ci = problem->scalar[1] + (double)(i / width) * problem->scalar[3], zr = 0, zi = 0;
        int64_t iterations = 0;
        problem->slack[i] = 0;
        while (iterations < (int64_t)problem->scalar[4] && zr * zr + zi * zi <= 4) {
            double next = zr * zr - zi * zi + cr;
            zi = 2 * zr * zi + ci;
            zr = next;
            iterations++;
            if (fabs(zr * zr + zi * zi - 4) < 1e-3) problem->slack[i] = -1;
        }
        problem->expected[i] = (double)iterations;
    }
}

void reference_blend(const Problem *problem) {
    double a = (float)problem->scalar[0];
    int64_t count = problem_dimension(problem, 'M') * problem_dimension(problem, 'N');
    for (int64_t i = 0; i < count; i++) {
        double x = a * problem->input[0][i], y = (1 - a) * problem->input[1][i];
        problem->expected[i] = x + y;
        problem->slack[i] = 4 * F32_ROUNDOFF * (fabs(x) + fabs(y)) + 2 * F32_TINY;
    }
}

void reference_window(const Problem *problem) {
    int64_t width = (int64_t)problem->scalar[0];
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        double sum = 0, magnitude = 0;
        for (int64_t d = 0; d < width; d++) {
            sum += problem->input[0][m + d];
            magnitude += fabs(problem->input[0][m + d]);
        }
        problem->expected[m] = sum;
        problem->slack[m] = reference_serial_slack(width, magnitude);
    }
}

void reference_polynomial(const Problem *problem) {
    for (int64_t i = 0; i < problem_dimension(problem, 'N'); i++) {
        double x = problem->input[0][i], fifth = pow(x, 5), third = 3 * pow(x, 3), root = pow(x, 0.5);
        problem->expected[i] = fifth - third + root;
        problem->slack[i] = 16 * F32_ROUNDOFF * (fabs(fifth) + fabs(third) + fabs(root)) + 4 * F32_TINY;
    }
}
