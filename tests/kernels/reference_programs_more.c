/* Kernels of tests/programs: updates, numbers of few bits, transforms, products and sequences. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

/* ---- updates: sums of integers, which are exact in any order ---- */

/* Elements of an inout tensor as they were. */
static void keep_old(const Problem *problem, int input, int64_t count) {
    if (count > 0) memcpy(problem->expected, problem->input[input], sizeof(double) * (size_t)count);
}

void reference_histogram(const Problem *problem) {
    int64_t bins = problem_dimension(problem, 'B');
    keep_old(problem, 1, bins);
    for (int64_t n = 0; n < problem_dimension(problem, 'N'); n++) {
        double x = problem->input[0][n];
        if (x >= 0 && x < (double)bins) problem->expected[(int64_t)x]++;
    }
}

void reference_confusion(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'A'), columns = problem_dimension(problem, 'B');
    keep_old(problem, 2, rows * columns);
    for (int64_t n = 0; n < problem_dimension(problem, 'N'); n++) {
        double t = problem->input[0][n], u = problem->input[1][n];
        bool inside = t >= 0 && t < (double)rows && u >= 0 && u < (double)columns;
        if (inside) problem->expected[(int64_t)t * columns + (int64_t)u]++;
    }
}

void reference_segment_sum(const Problem *problem) {
    int64_t segments = problem_dimension(problem, 'S');
    keep_old(problem, 2, segments);
    for (int64_t n = 0; n < problem_dimension(problem, 'N'); n++) {
        double at = problem->input[1][n];
        if (at >= 0 && at < (double)segments) problem->expected[(int64_t)at] += problem->input[0][n];
    }
}

/* ---- conditions ---- */

/* Index 2 n - 3, where it is inside, and the last element where not; where all of a tile of 16 are inside, its element once more. */
void reference_chosen(const Problem *problem) {
    enum { TILE = 16 };
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        int64_t n = i % columns, at = 2 * n - 3, first = n / TILE * TILE;
        int64_t end = first + TILE < columns ? first + TILE : columns;
        const double *x = problem->input[0] + (i - n);
        bool there = at >= 0 && at < columns, all = 2 * first - 3 >= 0 && 2 * (end - 1) - 3 < columns;
        double last = x[there ? at : columns - 1], none = there ? x[at] : 0, more = all ? x[at] : 0;
        problem->expected[i] = last + none + more;
        problem->slack[i] = 2 * F32_ROUNDOFF * (fabs(last) + fabs(none) + fabs(more)) + F32_TINY;
    }
}

void reference_guarded(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < rows; m++) {
        const double *x = problem->input[0] + m * columns;
        int64_t from = 3 * m - 4, k = 0;
        for (int64_t n = 0; n < columns; n++) {
            problem->expected[m * columns + n] = from < 0 || from >= rows ? -1 : problem->input[0][from * columns + n];
            problem->further[0].expected[n * rows + m] = x[n];
        }
        while (k < columns && x[k] < x[columns - 1]) k++;
        problem->further[1].expected[m] = (double)k;
    }
}

void reference_literals(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        double row = 0, magnitude = 0;
        for (int64_t n = 0; n < columns; n++) row += x[n], magnitude += fabs(x[n]);
        for (int64_t n = 0; n < columns; n++) {
            double near = x[n] + (n >= 1 ? x[n - 1] : 0) + (n >= 2 ? x[n - 2] : 0);
            problem->expected[m * columns + n] = near + row;
            problem->slack[m * columns + n] = reference_serial_slack(columns + 4, 4 * magnitude) + F32_TINY;
        }
    }
}

/* ---- values: shifts, products of vectors and by letters ---- */

/* A tile is as wide as the rows, at least 4. */
void reference_windows(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        const double *x = problem->input[0];
        int64_t n = i % columns;
        double left = n >= 2 ? x[i - 2] : -1, right = n + 3 < columns ? x[i + 3] : 0.5;
        problem->expected[i] = left + 2 * right;
        problem->slack[i] = 2 * F32_ROUNDOFF * (fabs(left) + 2 * fabs(right)) + F32_TINY;
    }
}

static void expect_product(const Problem *problem, int64_t at, const double *a, const double *b, int64_t depth) {
    double value = 0, magnitude = 0;
    for (int64_t k = 0; k < depth; k++) {
        value += a[k] * b[k];
        magnitude += fabs(a[k] * b[k]);
    }
    problem->expected[at] = value;
    problem->slack[at] = reference_serial_slack(depth + depth / 16 + 2, magnitude) + F32_TINY * (double)(depth + 1);
}

void reference_row_products(const Problem *problem) {
    int64_t depth = problem_dimension(problem, 'K');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++)
        expect_product(problem, m, problem->input[0] + m * depth, problem->input[1], depth);
}

void reference_by_letters(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    int64_t depth = problem_dimension(problem, 'K'), batch = problem_dimension(problem, 'B');
    for (int64_t i = 0; i < batch * rows * columns; i++) {
        int64_t b = i / rows / columns, n = i / rows % columns, m = i % rows;
        expect_product(problem, i, problem->input[0] + (b * rows + m) * depth,
                       problem->input[1] + (b * columns + n) * depth, depth);
    }
}

/* ---- numbers of few bits ---- */

/* Where x / scale lies about half way between two integers, rounding decides. */
void reference_quantise_rows(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        double top = (float)1e-20;
        for (int64_t n = 0; n < columns; n++) top = fmax(top, fabs(x[n]));
        problem->further[0].expected[m] = top / 127;
        problem->further[0].slack[m] = 2 * F32_ROUNDOFF * top / 127;
        for (int64_t n = 0; n < columns; n++) {
            double q = x[n] / (top / 127), half = fabs(fabs(q - rint(q)) - 0.5);
            problem->expected[m * columns + n] = fmin(fmax(rint(q), -127), 127);
            problem->slack[m * columns + n] = half <= 8 * F32_ROUNDOFF * fabs(q) ? -1 : 0;
        }
    }
}

void reference_dequantise_rows(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        problem->expected[i] = problem->input[0][i] * problem->input[1][i / columns];
        problem->slack[i] = F32_ROUNDOFF * fabs(problem->expected[i]) + F32_TINY;
    }
}

void reference_cast_float8(const Problem *problem) {
    double scale = (float)problem->scalar[0];
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * problem_dimension(problem, 'N'); i++) {
        double x = problem->input[0][i] * scale;
        problem->expected[i] = isnan(x) ? x : fmin(fmax(x, -448), 448);
        problem->slack[i] = F32_ROUNDOFF * fabs(problem->expected[i]) + F32_TINY;
    }
}

void reference_matmul_int4(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        double sum = 0, magnitude = 0, scale = problem->input[2][i % columns];
        for (int64_t k = 0; k < depth; k++) {
            int byte = (int)problem->input[1][k / 2 * columns + i % columns];
            double term = problem->input[0][i / columns * depth + k] * ((k % 2 ? byte >> 4 : byte & 15) - 8);
            sum += term;
            magnitude += fabs(term);
        }
        problem->expected[i] = sum * scale;
        problem->slack[i] =
            reference_serial_slack(depth, magnitude) * fabs(scale) + 2 * F32_ROUNDOFF * fabs(sum * scale) + F32_TINY;
    }
}

/* Blocks of 32; what a block has beyond the row is 0. */
void reference_reversed_blocks(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        int64_t column = i % columns, from = column / 32 * 32 + 31 - column % 32;
        problem->expected[i] = from < columns ? problem->input[0][i - column + from] : 0;
        problem->slack[i] = 0;
    }
}

static const double float4_numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

void reference_rounded_to_float4(const Problem *problem) {
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * problem_dimension(problem, 'N'); i++) {
        double size = fabs(problem->input[0][i]);
        int best = 0;
        for (int k = 1; k < 8; k++) { /* of two that are as near, the even one */
            double here = fabs(float4_numbers[k] - size), there = fabs(float4_numbers[best] - size);
            if (here < there || (here == there && k % 2 == 0)) best = k;
        }
        problem->expected[i] = copysign(float4_numbers[best], problem->input[0][i]);
        problem->slack[i] = 0;
    }
}

void reference_mxfp4(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < depth; k++) {
            int byte = (int)problem->input[1][(i % columns * depth + k) / 2], code = k % 2 ? byte >> 4 : byte & 15;
            int exponent = (int)problem->input[2][(i % columns * depth + k) / 32] % 16 - 7;
            double weight = ldexp(float4_numbers[code & 7], exponent);
            double term = problem->input[0][i / columns * depth + k] * (code & 8 ? -weight : weight);
            sum += term;
            magnitude += fabs(term);
        }
        problem->expected[i] = sum;
        problem->slack[i] = reference_serial_slack(depth, magnitude) + F32_TINY;
    }
}

/* ---- transforms ---- */

/* The sign is -1 where the numbers of both places have an odd number of ones in common. */
void reference_hadamard(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        const double *x = problem->input[0] + i / columns * columns;
        double sum = 0, magnitude = 0;
        for (int64_t n = 0; n < columns; n++) {
            sum += __builtin_parityll((unsigned long long)(n & i % columns)) ? -x[n] : x[n];
            magnitude += fabs(x[n]);
        }
        problem->expected[i] = sum;
        problem->slack[i] = 12 * F32_ROUNDOFF * magnitude + F32_TINY;
    }
}

void reference_fft_stage(const Problem *problem) {
    int64_t turns = problem_dimension(problem, 'P'), width = problem_dimension(problem, 'S'), half = turns * width;
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * half; i++) {
        int64_t low = i / half * 2 * half + i % half, p = i % half / width, s = i % width;
        int64_t sum = i / half * 2 * half + p * 2 * width + s, turned = sum + width;
        double angle = -3.14159265358979323846 * (double)p / (double)turns, c = cos(angle), t = sin(angle);
        double ar = problem->input[0][low], ai = problem->input[1][low];
        double br = problem->input[0][low + half], bi = problem->input[1][low + half];
        double dr = ar - br, di = ai - bi, magnitude = fabs(dr) + fabs(di) + fabs(ar) + fabs(ai);
        problem->expected[sum] = ar + br;
        problem->further[0].expected[sum] = ai + bi;
        problem->slack[sum] = problem->further[0].slack[sum] =
            F32_ROUNDOFF * (fabs(ar) + fabs(br) + fabs(ai) + fabs(bi));
        problem->expected[turned] = dr * c - di * t;
        problem->further[0].expected[turned] = dr * t + di * c;
        problem->slack[turned] = problem->further[0].slack[turned] = 20 * F32_ROUNDOFF * magnitude + F32_TINY;
    }
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void reference_sort_rows(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    keep_old(problem, 0, rows * columns);
    for (int64_t m = 0; m < rows; m++) qsort(problem->expected + m * columns, (size_t)columns, sizeof(double), compare);
}

/* ---- products ---- */

void reference_dense_relu(const Problem *problem) {
    int64_t depth = problem_dimension(problem, 'K');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        double sum = problem->input[2][m], magnitude = fabs(sum);
        for (int64_t k = 0; k < depth; k++) {
            double term = problem->input[0][m * depth + k] * problem->input[1][k];
            sum += term;
            magnitude += fabs(term);
        }
        problem->expected[m] = isnan(sum) ? sum : fmax(sum, 0);
        problem->slack[m] = reference_lanes_slack(depth + 32, magnitude);
    }
}

/* Of doubles: an element lies `step` behind the one for the k before. A weight is rounded with its factor. */
typedef struct Doubles {
    const double *data;
    int64_t line, step;
} Doubles;

static void multiply_doubles(const Problem *problem, Doubles a, Doubles b, const double *weights) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < depth; k++) {
            double factor = a.data[i / columns * a.line + k * a.step] * (weights ? weights[k] : 1);
            double term = factor * b.data[i % columns * b.line + k * b.step];
            sum += term;
            magnitude += fabs(term);
        }
        problem->expected[i] = sum;
        problem->slack[i] = 2 * (double)(depth + 2) * (type_roundoff(TYPE_F64) * magnitude + type_denormal(TYPE_F64));
    }
}

void reference_product_of_doubles(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    multiply_doubles(problem, (Doubles){problem->input[0], depth, 1}, (Doubles){problem->input[1], 1, columns}, NULL);
}

void reference_turned_doubles(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), depth = problem_dimension(problem, 'K');
    multiply_doubles(problem, (Doubles){problem->input[0], 1, rows}, (Doubles){problem->input[1], depth, 1}, NULL);
}

void reference_weighted_doubles(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    multiply_doubles(problem, (Doubles){problem->input[0], depth, 1}, (Doubles){problem->input[2], 1, columns}, problem->input[1]);
}

void reference_outer_batched(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    for (int64_t i = 0; i < problem_dimension(problem, 'B') * rows * columns; i++) {
        double y = problem->input[1][i / columns / rows * columns + i % columns];
        problem->expected[i] = problem->input[0][i / columns] * y;
        problem->slack[i] = F32_ROUNDOFF * fabs(problem->expected[i]) + F32_TINY;
    }
}

void reference_head_products(const Problem *problem) {
    int64_t heads = problem_dimension(problem, 'H'), rows = problem_dimension(problem, 'I');
    int64_t columns = problem_dimension(problem, 'J'), depth = problem_dimension(problem, 'D');
    for (int64_t at = 0; at < problem_dimension(problem, 'B') * heads * rows * columns; at++) {
        int64_t j = at % columns, i = at / columns % rows, h = at / columns / rows % heads;
        int64_t b = at / columns / rows / heads;
        const double *x = problem->input[0] + ((b * rows + i) * heads + h) * depth;
        const double *y = problem->input[1] + ((b * columns + j) * heads + h) * depth;
        double magnitude = 0;
        for (int64_t d = 0; d < depth; d++) {
            problem->expected[at] += x[d] * y[d];
            magnitude += fabs(x[d] * y[d]);
        }
        problem->slack[at] = reference_serial_slack(depth, magnitude);
    }
}

/* x @ a is rounded to the type before it is multiplied again. */
void reference_lora(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    int64_t rank = problem_dimension(problem, 'R');
    double scale = (float)problem->scalar[0], roundoff = type_roundoff(problem->type);
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        const double *x = problem->input[0] + i / columns * depth;
        double sum = 0, magnitude = 0, error = 0;
        for (int64_t k = 0; k < depth; k++) {
            double term = x[k] * problem->input[1][k * columns + i % columns];
            sum += term;
            magnitude += fabs(term);
        }
        for (int64_t r = 0; r < rank; r++) {
            double low = 0, size = 0, factor = problem->input[3][r * columns + i % columns] * scale;
            for (int64_t k = 0; k < depth; k++) {
                double term = x[k] * problem->input[2][k * rank + r];
                low += term;
                size += fabs(term);
            }
            sum += low * factor;
            magnitude += fabs(low * factor);
            error += (reference_serial_slack(depth, size) + roundoff * fabs(low) + type_denormal(problem->type)) *
                     fabs(factor);
        }
        problem->expected[i] = sum;
        problem->slack[i] = reference_serial_slack(depth + rank + 4, magnitude) + error;
    }
}

/* A factor that is computed in f32 and rounded to the type before it is multiplied. */
static double rounded_error(const Problem *problem, double factor, double other) {
    enum { OPERATIONS = 32 };
    double roundoff = type_roundoff(problem->type) + OPERATIONS * F32_ROUNDOFF;
    return (roundoff * fabs(factor) + type_denormal(problem->type) + F32_TINY) * fabs(other);
}

void reference_gated_down(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        double sum = 0, magnitude = 0, error = 0;
        for (int64_t k = 0; k < depth; k++) {
            double gate = problem->input[0][i / columns * depth + k], up = problem->input[1][i / columns * depth + k];
            double factor = gate / (1 + exp(-gate)) * up, w = problem->input[2][k * columns + i % columns];
            sum += factor * w;
            magnitude += fabs(factor * w);
            error += rounded_error(problem, factor, w);
        }
        problem->expected[i] = sum;
        problem->slack[i] = reference_serial_slack(depth, magnitude + error) + error;
    }
}

void reference_normed_product(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        const double *x = problem->input[0] + i / columns * depth;
        double squares = 0, sum = 0, magnitude = 0, error = 0;
        for (int64_t k = 0; k < depth; k++) squares += x[k] * x[k];
        double scale = 1 / sqrt(squares / (double)depth + (float)problem->scalar[0]);
        for (int64_t k = 0; k < depth; k++) {
            double factor = x[k] * scale * problem->input[1][k], w = problem->input[2][k * columns + i % columns];
            sum += factor * w;
            magnitude += fabs(factor * w);
            error += rounded_error(problem, factor, w) + (double)depth * F32_ROUNDOFF * fabs(factor * w);
        }
        problem->expected[i] = sum;
        problem->slack[i] = reference_serial_slack(depth, magnitude + error) + error;
    }
}

void reference_dequantised(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        double sum = 0, magnitude = 0, error = 0, scale = problem->input[2][i % columns];
        for (int64_t k = 0; k < depth; k++) {
            double x = problem->input[0][i / columns * depth + k], factor = problem->input[1][i % columns * depth + k] * scale;
            sum += x * factor;
            magnitude += fabs(x * factor);
            error += rounded_error(problem, factor, x);
        }
        problem->expected[i] = sum;
        problem->slack[i] = reference_serial_slack(depth, magnitude + error) + error;
    }
}

/* A scale for each 32 bytes of a row, that is 64 weights; bytes behind the last whole group have none, which is 0. */
void reference_grouped_weights(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K'), groups = problem_dimension(problem, 'G');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        double sum = 0, magnitude = 0, error = 0;
        int64_t column = i % columns;
        for (int64_t k = 0; k < depth; k++) {
            int byte = (int)problem->input[1][column * (depth / 2) + k / 2], number = k % 2 ? byte >> 4 : byte & 15;
            double scale = k / 64 < groups ? problem->input[2][column * groups + k / 64] : 0;
            double x = problem->input[0][i / columns * depth + k], factor = (number < 8 ? number : number - 16) * scale;
            sum += x * factor;
            magnitude += fabs(x * factor);
            error += rounded_error(problem, factor, x);
        }
        problem->expected[i] = sum;
        problem->slack[i] = reference_serial_slack(depth, magnitude + error) + error;
    }
}

void reference_max_plus(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        double top = -INFINITY;
        for (int64_t k = 0; k < depth; k++) {
            double sum = problem->input[0][i / columns * depth + k] + problem->input[1][k * columns + i % columns];
            top = isnan(top) || isnan(sum) ? NAN : fmax(top, sum);
        }
        problem->expected[i] = top;
        problem->slack[i] = isinf(top) ? 0 : F32_ROUNDOFF * fabs(top);
    }
}

/* ---- sequences ---- */

void reference_causal_conv(const Problem *problem) {
    int64_t channels = problem_dimension(problem, 'C'), length = problem_dimension(problem, 'S');
    int64_t taps = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < problem_dimension(problem, 'B') * length * channels; i++) {
        int64_t c = i % channels, s = i / channels % length;
        double magnitude = 0;
        for (int64_t k = 0; k < taps; k++) {
            int64_t from = s - (taps - 1) + k;
            double x = from < 0 ? 0 : problem->input[0][i + (from - s) * channels];
            problem->expected[i] += x * problem->input[1][k * channels + c];
            magnitude += fabs(x * problem->input[1][k * channels + c]);
        }
        problem->slack[i] = reference_serial_slack(taps, magnitude);
    }
}

void reference_softmax_biased(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    double scale = (float)problem->scalar[0];
    for (int64_t line = 0; line < problem_dimension(problem, 'B') * rows; line++) {
        const double *x = problem->input[0] + line * columns, *bias = problem->input[1] + line % rows * columns;
        const double *has = problem->input[2] + line / rows * columns;
        double *y = problem->expected + line * columns, top = -INFINITY, total = 0, greatest = 0;
        for (int64_t n = 0; n < columns; n++) {
            y[n] = has[n] != 0 ? x[n] * scale + bias[n] : -INFINITY;
            greatest = fmax(greatest, fabs(x[n] * scale) + fabs(bias[n]));
            top = fmax(top, y[n]);
        }
        for (int64_t n = 0; n < columns; n++) total += y[n] = exp(y[n] - top);
        for (int64_t n = 0; n < columns; n++) {
            y[n] /= total;
            problem->slack[line * columns + n] =
                F32_ROUNDOFF * (16 * greatest + (double)columns / 8 + 40) * y[n] + F32_TINY;
        }
    }
}

/* The sum is rounded to the type, which its square and the result are made of; it may be rounded twice. */
void reference_rmsnorm_residual(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    double eps = (float)problem->scalar[0], roundoff = type_roundoff(problem->type);
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        double squares = 0, unsure = 0;
        for (int64_t i = m * columns; i < (m + 1) * columns; i++) {
            double sum = problem->input[0][i] + problem->input[1][i], error = F32_ROUNDOFF * fabs(sum);
            double kept = value_round(problem->type, sum);
            bool twice = value_round(problem->type, sum - error) != value_round(problem->type, sum + error);
            problem->expected[i] = kept;
            problem->slack[i] = twice ? 2 * roundoff * fabs(kept) : 0;
            squares += kept * kept;
            unsure += twice ? 4 * roundoff * kept * kept : 0;
        }
        double mean = squares / (double)columns + eps, scale = 1 / sqrt(mean);
        double relative = reference_lanes_slack(columns, 1) / 2 + 10 * F32_ROUNDOFF + unsure / mean / (double)columns;
        for (int64_t n = 0; n < columns; n++) {
            int64_t i = m * columns + n;
            double factor = scale * problem->input[2][n];
            problem->further[0].expected[i] = problem->expected[i] * factor;
            problem->further[0].slack[i] =
                (relative * fabs(problem->expected[i]) + problem->slack[i]) * fabs(factor) + F32_TINY;
        }
    }
}

/* ---- windows, rings, gradients ---- */

void reference_sliding_max(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        int64_t first = i / columns * columns, n = i % columns;
        double top = problem->input[0][i];
        for (int64_t k = n > 7 ? n - 7 : 0; k < columns && k <= n + 7; k++)
            if (problem->input[0][first + k] > top) top = problem->input[0][first + k];
        problem->expected[i] = top;
        problem->slack[i] = 0;
    }
}

void reference_torus(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    const double *x = problem->input[0];
    for (int64_t i = 0; i < rows * columns; i++) {
        int64_t m = i / columns, n = i % columns;
        double up = x[(m + rows - 1) % rows * columns + n], down = x[(m + 1) % rows * columns + n];
        double left = x[m * columns + (n + columns - 1) % columns], right = x[m * columns + (n + 1) % columns];
        problem->expected[i] = (up + down + (left + right)) / 4;
        problem->slack[i] = 4 * F32_ROUNDOFF * (fabs(up) + fabs(down) + fabs(left) + fabs(right)) + F32_TINY;
    }
}

/* Both loops shrink what came before, so that roundings do not add up. */
void reference_resonator(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        double s = 0, t = 0, most = -INFINITY, reach = 0, greatest = 1;
        for (int64_t n = 0; n < columns; n++) {
            double o = 0.5 * x[n] + s, next = x[n] - 0.5 * fmin(fmax(most, -1), 1);
            s = t - 0.25 * o;
            t = 0.125 * x[n];
            reach = fmax(reach, fabs(x[n]));
            greatest = fmax(greatest, fabs(x[n]));
            most = fmax(most, next);
            problem->expected[m * columns + n] = o;
            problem->slack[m * columns + n] = 8 * F32_ROUNDOFF * reach + F32_TINY;
        }
        problem->further[0].expected[m] = most;
        problem->further[0].slack[m] = 8 * F32_ROUNDOFF * greatest;
    }
}

void reference_softmax_backward(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *dy = problem->input[0] + m * columns, *y = problem->input[1] + m * columns;
        double sum = 0, magnitude = 0;
        for (int64_t n = 0; n < columns; n++) {
            sum += dy[n] * y[n];
            magnitude += fabs(dy[n] * y[n]);
        }
        double slack = reference_serial_slack(columns, magnitude);
        for (int64_t n = 0; n < columns; n++) {
            problem->expected[m * columns + n] = y[n] * (dy[n] - sum);
            problem->slack[m * columns + n] =
                fabs(y[n]) * (slack + 4 * F32_ROUNDOFF * (fabs(dy[n]) + fabs(sum))) + F32_TINY * (1 + fabs(y[n]));
        }
    }
}

/* Each step rounds what it has, which all later ones multiply. */
void reference_horner(const Problem *problem) {
    int64_t count = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < problem_dimension(problem, 'N'); i++) {
        double x = problem->input[0][i], value = 0, slack = 0;
        for (int64_t k = 0; k < count; k++) {
            value = value * x + problem->input[1][k];
            slack = slack * fabs(x) + F32_ROUNDOFF * fabs(value) + F32_TINY;
        }
        problem->expected[i] = value;
        problem->slack[i] = 2 * slack + F32_TINY;
    }
}
