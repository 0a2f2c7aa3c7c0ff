/* Kernels of tests/programs: stencils, images, gates, distances, optimisers, losses and statistics. */
#include <math.h>
#include <stdlib.h>

#include "reference.h"

static double size(const Problem *problem, char letter) { return (double)problem_dimension(problem, letter); }

/* ---- stencils ---- */

/* A sum of terms, and what their magnitudes come to. */
typedef struct Terms {
    double value, magnitude;
} Terms;

static void add_term(Terms *terms, double term) {
    terms->value += term;
    terms->magnitude += fabs(term);
}

/* The element of a box of `depth` by `height` by `width`, and 0 around it. */
static double element(const double *x, const int64_t extent[3], int64_t d, int64_t h, int64_t w) {
    bool inside = d >= 0 && d < extent[0] && h >= 0 && h < extent[1] && w >= 0 && w < extent[2];
    return inside ? x[(d * extent[1] + h) * extent[2] + w] : 0;
}

/* Sums of elements at (i, j, k) from the place, with weights. */
typedef struct Tap {
    int i, j, k;
    double weight;
} Tap;

static Terms taps_at(const double *x, const int64_t extent[3], const Tap *taps, int count, const int64_t at[3]) {
    Terms terms = {0, 0};
    for (int t = 0; t < count; t++)
        add_term(&terms, taps[t].weight * element(x, extent, at[0] + taps[t].i, at[1] + taps[t].j, at[2] + taps[t].k));
    return terms;
}

void reference_heat5(const Problem *problem) {
    const Tap taps[] = {{0, -1, 0, 1}, {0, 1, 0, 1}, {0, 0, -1, 1}, {0, 0, 1, 1}, {0, 0, 0, -4}};
    const int64_t extent[3] = {1, problem_dimension(problem, 'M'), problem_dimension(problem, 'N')};
    double alpha = (float)problem->scalar[0];
    for (int64_t i = 0; i < extent[1] * extent[2]; i++) {
        const int64_t at[3] = {0, i / extent[2], i % extent[2]};
        Terms terms = taps_at(problem->input[0], extent, taps, 5, at);
        double here = problem->input[0][i];
        problem->expected[i] = here + alpha * terms.value;
        problem->slack[i] = 8 * F32_ROUNDOFF * (fabs(here) + alpha * terms.magnitude) + F32_TINY;
    }
}

void reference_laplace7(const Problem *problem) {
    const Tap taps[] = {{-1, 0, 0, 1}, {1, 0, 0, 1}, {0, -1, 0, 1}, {0, 1, 0, 1},
                        {0, 0, -1, 1}, {0, 0, 1, 1}, {0, 0, 0, -6}};
    const int64_t extent[3] = {problem_dimension(problem, 'D'), problem_dimension(problem, 'H'),
                               problem_dimension(problem, 'W')};
    for (int64_t i = 0; i < extent[0] * extent[1] * extent[2]; i++) {
        const int64_t at[3] = {i / extent[2] / extent[1], i / extent[2] % extent[1], i % extent[2]};
        Terms terms = taps_at(problem->input[0], extent, taps, 7, at);
        problem->expected[i] = terms.value;
        problem->slack[i] = 8 * F32_ROUNDOFF * terms.magnitude + F32_TINY;
    }
}

/* A product of two weights is rounded too. */
void reference_blur5(const Problem *problem) {
    const int64_t extent[3] = {1, problem_dimension(problem, 'M'), problem_dimension(problem, 'N')};
    const double *taps = problem->input[1];
    for (int64_t at = 0; at < extent[1] * extent[2]; at++) {
        Terms terms = {0, 0};
        for (int64_t i = 0; i < 25; i++)
            add_term(&terms, taps[i / 5] * taps[i % 5] * element(problem->input[0], extent, 0, at / extent[2] + i / 5 - 2, at % extent[2] + i % 5 - 2));
        problem->expected[at] = terms.value;
        problem->slack[at] = reference_serial_slack(25, terms.magnitude) + 2 * F32_ROUNDOFF * terms.magnitude + F32_TINY;
    }
}

void reference_filter1d(const Problem *problem) {
    const int64_t extent[3] = {1, problem_dimension(problem, 'M'), problem_dimension(problem, 'N')};
    int64_t taps = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < extent[1] * extent[2]; i++) {
        Terms terms = {0, 0};
        for (int64_t k = 0; k < taps; k++)
            add_term(&terms, element(problem->input[0], extent, 0, i / extent[2], i % extent[2] + k - taps / 2) *
                                 problem->input[1][k]);
        problem->expected[i] = terms.value;
        problem->slack[i] = reference_serial_slack(taps, terms.magnitude);
    }
}

/* Squares of tiny differences vanish. */
void reference_sobel(const Problem *problem) {
    const double vanished = 0x1p-74;
    const Tap along[] = {{0, -1, 1, 1}, {0, 0, 1, 2}, {0, 1, 1, 1}, {0, -1, -1, -1}, {0, 0, -1, -2}, {0, 1, -1, -1}};
    const Tap across[] = {{0, 1, -1, 1}, {0, 1, 0, 2}, {0, 1, 1, 1}, {0, -1, -1, -1}, {0, -1, 0, -2}, {0, -1, 1, -1}};
    const int64_t extent[3] = {1, problem_dimension(problem, 'M'), problem_dimension(problem, 'N')};
    for (int64_t i = 0; i < extent[1] * extent[2]; i++) {
        const int64_t at[3] = {0, i / extent[2], i % extent[2]};
        Terms x = taps_at(problem->input[0], extent, along, 6, at);
        Terms y = taps_at(problem->input[0], extent, across, 6, at);
        problem->expected[i] = sqrt(x.value * x.value + y.value * y.value);
        problem->slack[i] =
            8 * F32_ROUNDOFF * (x.magnitude + y.magnitude) + 4 * F32_ROUNDOFF * problem->expected[i] + vanished;
    }
}

/* ---- images ---- */

void reference_average_pool(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'H'), columns = problem_dimension(problem, 'W');
    int64_t planes = problem_dimension(problem, 'B') * problem_dimension(problem, 'C');
    for (int64_t i = 0; i < planes * rows * columns; i++) {
        const double *x = problem->input[0] + i / columns * 4 * columns + i % columns * 2;
        Terms terms = {0, 0};
        for (int k = 0; k < 4; k++) add_term(&terms, x[k / 2 * 2 * columns + k % 2] * 0.25);
        problem->expected[i] = terms.value;
        problem->slack[i] = 4 * F32_ROUNDOFF * terms.magnitude + F32_TINY;
    }
}

void reference_half_size(const Problem *problem) {
    const int64_t extent[3] = {problem_dimension(problem, 'B') * problem_dimension(problem, 'C'), problem_dimension(problem, 'Y'),
                               problem_dimension(problem, 'Z')};
    int64_t rows = problem_dimension(problem, 'H'), columns = problem_dimension(problem, 'W');
    const double weights[] = {1, 3, 3, 1};
    for (int64_t at = 0; at < extent[0] * rows * columns; at++) {
        Terms terms = {0, 0};
        for (int64_t i = 0; i < 16; i++)
            add_term(&terms, weights[i / 4] * weights[i % 4] / 64 *
                                 element(problem->input[0], extent, at / columns / rows, at / columns % rows * 2 + i / 4 - 1, at % columns * 2 + i % 4 - 1));
        problem->expected[at] = terms.value;
        problem->slack[at] = reference_serial_slack(16, terms.magnitude) + F32_TINY;
    }
}

void reference_repeat8(const Problem *problem) {
    int64_t count = problem_dimension(problem, 'M') * problem_dimension(problem, 'W');
    for (int64_t at = 0; at < count; at++) problem->expected[at] = problem->input[0][at / 8];
}

static int64_t inside(int64_t i, int64_t limit) { return i < 0 ? 0 : i < limit ? i : limit - 1; }

/* Pixel (i, j) of the result lies a quarter of a pixel from (i / 2, j / 2), towards a neighbour. */
void reference_upsample(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'H'), columns = problem_dimension(problem, 'W');
    int64_t planes = problem_dimension(problem, 'B') * problem_dimension(problem, 'C');
    for (int64_t at = 0; at < planes * rows * columns * 4; at++) {
        const double *x = problem->input[0] + at / (4 * rows * columns) * rows * columns;
        int64_t i = at / (2 * columns) % (2 * rows), j = at % (2 * columns);
        int64_t far_row = inside(i / 2 + (i % 2 ? 1 : -1), rows);
        int64_t far_column = inside(j / 2 + (j % 2 ? 1 : -1), columns);
        Terms terms = {0, 0};
        add_term(&terms, 0.5625 * x[i / 2 * columns + j / 2]);
        add_term(&terms, 0.1875 * x[i / 2 * columns + far_column]);
        add_term(&terms, 0.1875 * x[far_row * columns + j / 2]);
        add_term(&terms, 0.0625 * x[far_row * columns + far_column]);
        problem->expected[at] = terms.value;
        problem->slack[at] = 8 * F32_ROUNDOFF * terms.magnitude + 4 * F32_TINY;
    }
}

void reference_pixel_shuffle(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'H'), columns = problem_dimension(problem, 'W');
    int64_t planes = problem_dimension(problem, 'B') * problem_dimension(problem, 'C');
    for (int64_t at = 0; at < planes * rows * columns * 4; at++) {
        int64_t i = at / (2 * columns) % (2 * rows), j = at % (2 * columns), plane = at / (4 * rows * columns);
        int64_t from = (plane * 4 + i % 2 * 2 + j % 2) * rows + i / 2;
        problem->expected[at] = problem->input[0][from * columns + j / 2];
    }
}

void reference_im2col(const Problem *problem) {
    const int64_t extent[3] = {problem_dimension(problem, 'B') * problem_dimension(problem, 'C'),
                               problem_dimension(problem, 'H'), problem_dimension(problem, 'W')};
    int64_t at = 0;
    for (int64_t plane = 0; plane < extent[0]; plane++)
        for (int64_t window = 0; window < 9; window++)
            for (int64_t i = 0; i < extent[1] * extent[2]; i++)
                problem->expected[at++] = element(problem->input[0], extent, plane, i / extent[2] + window / 3 - 1,
                                                  i % extent[2] + window % 3 - 1);
}

static int64_t around(int64_t i, int64_t limit) { return ((i % limit) + limit) % limit; }

void reference_roll(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    for (int64_t i = 0; i < rows * columns; i++) {
        int64_t row = around(i / columns - (int64_t)problem->scalar[0], rows);
        problem->expected[i] =
            problem->input[0][row * columns + around(i % columns - (int64_t)problem->scalar[1], columns)];
    }
}

void reference_interleave(const Problem *problem) {
    int64_t pixels = problem_dimension(problem, 'H') * problem_dimension(problem, 'W');
    for (int64_t at = 0; at < problem_dimension(problem, 'B') * pixels * 3; at++) {
        int64_t image = at / (3 * pixels), pixel = at / 3 % pixels;
        problem->expected[at] = problem->input[0][(image * 3 + at % 3) * pixels + pixel];
    }
}

void reference_luminance(const Problem *problem) {
    for (int64_t i = 0; i < problem_dimension(problem, 'N'); i++) {
        const double *pixel = problem->input[0] + 3 * i;
        double brightness = 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
        double magnitude = fabs(pixel[0]) + fabs(pixel[1]) + fabs(pixel[2]);
        problem->expected[3 * i] = brightness;
        problem->expected[3 * i + 1] = (pixel[2] - brightness) * 0.493;
        problem->expected[3 * i + 2] = (pixel[0] - brightness) * 0.877;
        for (int k = 0; k < 3; k++) problem->slack[3 * i + k] = 8 * F32_ROUNDOFF * magnitude + 4 * F32_TINY;
    }
}

void reference_scaled_blocks(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), scales = problem_dimension(problem, 'E');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++)
        for (int64_t n = 0; n < columns; n++) {
            double product = problem->input[0][m * columns + n] * problem->input[1][m * scales + n / 32];
            problem->expected[m * columns + n] = product;
            problem->slack[m * columns + n] = 2 * F32_ROUNDOFF * fabs(product) + F32_TINY;
        }
}

void reference_turned_pairs(const Problem *problem) {
    int64_t count = problem_dimension(problem, 'M') * problem_dimension(problem, 'N');
    for (int64_t i = 0; i < count; i++) {
        problem->expected[i] = i % 2 ? problem->input[0][i - 1] : -problem->input[0][i + 1];
        problem->slack[i] = 0;
    }
}

void reference_below_greatest(const Problem *problem) {
    int64_t count = problem_dimension(problem, 'M') * problem_dimension(problem, 'N');
    for (int64_t i = 0; i < count; i += 12) {
        const double *group = problem->input[0] + i;
        double top = group[0];
        for (int k = 1; k < 12; k++) top = fmax(top, group[k]);
        for (int k = 0; k < 12; k++) {
            problem->expected[i + k] = top - group[k];
            problem->slack[i + k] = 2 * F32_ROUNDOFF * (fabs(top) + fabs(group[k])) + F32_TINY;
        }
    }
}

static int64_t mirrored(int64_t i, int64_t limit) {
    i = i < 0 ? -i : i;
    return inside(i < limit ? i : 2 * (limit - 1) - i, limit);
}

static void pad(const Problem *problem, int64_t (*index)(int64_t i, int64_t limit)) {
    int64_t rows = problem_dimension(problem, 'H'), columns = problem_dimension(problem, 'W'), wide = columns + 6;
    for (int64_t at = 0; at < problem_dimension(problem, 'B') * (rows + 6) * wide; at++) {
        int64_t image = at / ((rows + 6) * wide), row = index(at / wide % (rows + 6) - 3, rows);
        problem->expected[at] = problem->input[0][(image * rows + row) * columns + index(at % wide - 3, columns)];
    }
}

void reference_pad_edge(const Problem *problem) { pad(problem, inside); }
void reference_pad_mirror(const Problem *problem) { pad(problem, mirrored); }

/* ---- gates ---- */

/* 1 + tanh cancels where the gate is negative: the error is relative to the gate. */
void reference_geglu(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), count = problem_dimension(problem, 'M') * columns;
    for (int64_t i = 0; i < count; i++) {
        const double *row = problem->input[0] + i / columns * 2 * columns;
        double gate = row[i % columns], up = row[i % columns + columns];
        problem->expected[i] =
            0.5 * gate * (1 + tanh(0.7978845608028654 * (gate + 0.044715 * gate * gate * gate))) * up;
        problem->slack[i] = 12 * F32_ROUNDOFF * fabs(gate * up) + F32_TINY * (1 + fabs(up));
    }
}

void reference_swiglu_pair(const Problem *problem) {
    int64_t count = problem_dimension(problem, 'M') * problem_dimension(problem, 'N');
    for (int64_t i = 0; i < count; i++) {
        double gate = problem->input[0][i], up = problem->input[1][i], value = gate / (1 + exp(-gate)) * up;
        problem->expected[i] = value;
        problem->slack[i] = 16 * F32_ROUNDOFF * fabs(value) + F32_TINY * (1 + fabs(up));
    }
}

void reference_relu_squared(const Problem *problem) {
    int64_t count = problem_dimension(problem, 'M') * problem_dimension(problem, 'N');
    for (int64_t i = 0; i < count; i++) {
        double x = problem->input[0][i];
        problem->expected[i] = isnan(x) ? x : x > 0 ? x * x : 0;
        problem->slack[i] = 2 * F32_ROUNDOFF * problem->expected[i] + F32_TINY;
    }
}

void reference_top2(const Problem *problem) {
    int64_t experts = problem_dimension(problem, 'E');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * experts;
        int64_t first = 0, second = -1;
        for (int64_t e = 1; e < experts; e++)
            if (x[e] > x[first]) first = e;
        for (int64_t e = 0; e < experts; e++)
            if (e != first && (second < 0 || x[e] > x[second])) second = e;
        double share = 1 / (1 + exp(x[second] - x[first]));
        problem->expected[2 * m] = share;
        problem->expected[2 * m + 1] = 1 - share;
        problem->slack[2 * m] = problem->slack[2 * m + 1] = 24 * F32_ROUNDOFF;
        problem->further[0].expected[2 * m] = (double)first;
        problem->further[0].expected[2 * m + 1] = (double)second;
    }
}

/* ---- distances ---- */

/* The products of a row with itself and another one. */
typedef struct Pair {
    double own, other, both, magnitude;
} Pair;

static Pair pair_of(const double *a, const double *b, int64_t count) {
    Pair pair = {0};
    for (int64_t k = 0; k < count; k++) {
        pair.own += a[k] * a[k];
        pair.other += b[k] * b[k];
        pair.both += a[k] * b[k];
        pair.magnitude += fabs(a[k] * b[k]);
    }
    return pair;
}

/* Steps of a sum over `count` elements that is cut into tiles. */
static double steps(int64_t count) { return F32_ROUNDOFF * ((double)count + 24); }

void reference_squared_distances(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        Pair pair = pair_of(problem->input[0] + i / columns * depth, problem->input[1] + i % columns * depth, depth);
        problem->expected[i] = fmax(pair.own + pair.other - 2 * pair.both, 0);
        problem->slack[i] =
            steps(depth) * (pair.own + pair.other + 2 * pair.magnitude) + F32_TINY * (double)(depth + 1);
    }
}

void reference_cosines(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        Pair pair = pair_of(problem->input[0] + i / columns * depth, problem->input[1] + i % columns * depth, depth);
        double scale = 1 / sqrt(fmax(pair.own, (float)1e-12)) / sqrt(fmax(pair.other, (float)1e-12));
        problem->expected[i] = pair.both * scale;
        problem->slack[i] =
            (reference_serial_slack(depth, pair.magnitude) + steps(depth) * fabs(pair.both)) * scale + F32_TINY;
    }
}

/* Where two centres are about as near, rounding decides. */
void reference_nearest(const Problem *problem) {
    int64_t centres = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        double best = INFINITY, next = INFINITY, error = 0;
        for (int64_t n = 0; n < centres; n++) {
            Pair pair = pair_of(problem->input[0] + m * depth, problem->input[1] + n * depth, depth);
            double distance = pair.other - 2 * pair.both;
            error = fmax(error, 2 * steps(depth) * (pair.other + 2 * pair.magnitude) + F32_TINY);
            if (distance < best) {
                next = best;
                best = distance;
                problem->expected[m] = (double)n;
            } else {
                next = fmin(next, distance);
            }
        }
        problem->slack[m] = next - best > 2 * error ? 0 : -1;
    }
}

/* ---- optimisers ---- */

/* share * old + (1 - share) * more. */
static Terms average(double share, double old, double more) {
    Terms terms = {0, 0};
    add_term(&terms, share * old);
    add_term(&terms, (1 - share) * more);
    return terms;
}

static double average_slack(Terms terms) { return 4 * F32_ROUNDOFF * terms.magnitude + 2 * F32_TINY; }

/* Where the average of squares is about 0, so that its root may be a NaN or not, anything is right. */
void reference_adam(const Problem *problem) {
    double rate = (float)problem->scalar[0], beta1 = (float)problem->scalar[1], beta2 = (float)problem->scalar[2];
    double eps = (float)problem->scalar[3], c1 = 1 - pow(beta1, problem->scalar[4]);
    double c2 = 1 - pow(beta2, problem->scalar[4]);
    for (int64_t i = 0; i < problem_dimension(problem, 'N'); i++) {
        double p = problem->input[0][i], g = problem->input[1][i];
        Terms first = average(beta1, problem->input[2][i], g), second = average(beta2, problem->input[3][i], g * g);
        double error = average_slack(second), divisor = sqrt(second.value / c2) + eps;
        double step = rate * first.value / c1 / divisor;
        problem->expected[i] = p - step;
        problem->slack[i] = fabs(step) * (error / fabs(second.value) + 2 * F32_ROUNDOFF / c2 + 32 * F32_ROUNDOFF) +
                            rate / c1 / divisor * average_slack(first) + 2 * F32_ROUNDOFF * fabs(p) + F32_TINY;
        if (fabs(second.value) <= 4 * error) problem->slack[i] = -1;
        problem->further[0].expected[i] = first.value;
        problem->further[0].slack[i] = average_slack(first);
        problem->further[1].expected[i] = second.value;
        problem->further[1].slack[i] = error;
    }
}

void reference_sgd_momentum(const Problem *problem) {
    double rate = (float)problem->scalar[0], momentum = (float)problem->scalar[1], decay = (float)problem->scalar[2];
    for (int64_t i = 0; i < problem_dimension(problem, 'N'); i++) {
        double p = problem->input[0][i];
        Terms moved = {0, 0};
        add_term(&moved, momentum * problem->input[2][i]);
        add_term(&moved, problem->input[1][i]);
        add_term(&moved, decay * p);
        problem->expected[i] = p - rate * moved.value;
        problem->slack[i] = 6 * F32_ROUNDOFF * (fabs(p) + rate * moved.magnitude) + F32_TINY;
        problem->further[0].expected[i] = moved.value;
        problem->further[0].slack[i] = average_slack(moved);
    }
}

/* Where the average is about 0, rounding decides on its sign. */
void reference_lion(const Problem *problem) {
    double rate = (float)problem->scalar[0], beta1 = (float)problem->scalar[1], beta2 = (float)problem->scalar[2];
    double decay = (float)problem->scalar[3];
    for (int64_t i = 0; i < problem_dimension(problem, 'N'); i++) {
        double p = problem->input[0][i], g = problem->input[1][i], m = problem->input[2][i];
        Terms direction = average(beta1, m, g), kept = average(beta2, m, g);
        problem->expected[i] = p - rate * (copysign(1, direction.value) + decay * p);
        problem->slack[i] = 6 * F32_ROUNDOFF * (fabs(p) + rate);
        if (fabs(direction.value) <= average_slack(direction)) problem->slack[i] = -1;
        problem->further[0].expected[i] = kept.value;
        problem->further[0].slack[i] = average_slack(kept);
    }
}

void reference_moving_average(const Problem *problem) {
    double decay = (float)problem->scalar[0];
    for (int64_t i = 0; i < problem_dimension(problem, 'N'); i++) {
        Terms terms = average(decay, problem->input[0][i], problem->input[1][i]);
        problem->expected[i] = terms.value;
        problem->slack[i] = average_slack(terms);
    }
}

/* ---- losses ---- */

void reference_smoothed_cross_entropy(const Problem *problem) {
    int64_t classes = problem_dimension(problem, 'V');
    double smoothing = (float)problem->scalar[0];
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * classes;
        double top = -INFINITY, low = INFINITY, total = 0, target = problem->input[1][m];
        Terms scores = {0, 0};
        for (int64_t v = 0; v < classes; v++) {
            top = fmax(top, x[v]);
            low = fmin(low, x[v]);
            add_term(&scores, x[v]);
        }
        for (int64_t v = 0; v < classes; v++) total += exp(x[v] - top);
        double hit = target >= 0 && target < size(problem, 'V') ? x[(int64_t)target] : 0;
        problem->expected[m] = top + log(total) - (1 - smoothing) * hit - smoothing * scores.value / (double)classes;
        problem->slack[m] = F32_ROUNDOFF * (2 * (top - low) + (double)classes / 8 + 48) +
                            16 * F32_ROUNDOFF * (fabs(top) + log(total) + fabs(hit)) +
                            reference_lanes_slack(classes, scores.magnitude) / (double)classes;
    }
}

void reference_kl_divergence(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        Terms terms = {0, 0};
        double weights = 0;
        for (int64_t i = m * columns; i < (m + 1) * columns; i++) {
            double x = problem->input[0][i], t = problem->input[1][i];
            add_term(&terms, exp(t) * (t - x));
            weights += exp(t) * (fabs(t) + fabs(x));
        }
        problem->expected[m] = terms.value;
        problem->slack[m] = reference_lanes_slack(columns, terms.magnitude) + 8 * F32_ROUNDOFF * weights;
    }
}

void reference_huber(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    double delta = (float)problem->scalar[0];
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        double total = 0, weights = 0;
        for (int64_t i = m * columns; i < (m + 1) * columns; i++) {
            double d = fabs(problem->input[0][i] - problem->input[1][i]);
            total += d <= delta ? 0.5 * d * d : delta * (d - 0.5 * delta);
            weights += (d + delta) * (d + delta);
        }
        problem->expected[m] = total / (double)columns;
        problem->slack[m] =
            (reference_lanes_slack(columns, total) + 8 * F32_ROUNDOFF * weights) / (double)columns + F32_TINY;
    }
}

void reference_cosine_loss(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    double margin = (float)problem->scalar[0], eps = (float)1e-12;
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        Pair pair = pair_of(problem->input[0] + m * columns, problem->input[1] + m * columns, columns);
        double scale = 1 / sqrt((pair.own + eps) * (pair.other + eps)), cosine = pair.both * scale;
        problem->expected[m] = problem->input[2][m] > 0 ? 1 - cosine : fmax(cosine - margin, 0);
        problem->slack[m] = reference_lanes_slack(columns, pair.magnitude) * scale +
                            (reference_lanes_slack(columns, 1) + 8 * F32_ROUNDOFF) * fabs(cosine) + 4 * F32_ROUNDOFF;
    }
}

/* ---- statistics ---- */

/* Numbers whose mean and variance are asked for; `step` apart, in `outer` runs that are `jump` apart. */
typedef struct Sample {
    const double *x;
    int64_t outer, jump, inner, step;
} Sample;

/* Mean and variance, and bounds of their errors: of the mean of squares without the square of the mean, or of a pass of
 * its own. */
static void moments_of(const Sample *sample, bool two_passes, double result[2], double slack[2]) {
    double sum = 0, magnitude = 0, squares = 0, spread = 0, count = (double)(sample->outer * sample->inner);
    for (int64_t i = 0; i < sample->outer * sample->inner; i++) {
        double x = sample->x[i / sample->inner * sample->jump + i % sample->inner * sample->step];
        sum += x;
        magnitude += fabs(x);
        squares += x * x;
    }
    double mean = sum / count, error = reference_serial_slack((int64_t)count, magnitude) / count;
    for (int64_t i = 0; i < sample->outer * sample->inner; i++) {
        double d = sample->x[i / sample->inner * sample->jump + i % sample->inner * sample->step] - mean;
        spread += d * d;
    }
    double added = two_passes ? spread : squares;
    result[0] = mean;
    result[1] = two_passes ? spread / count : squares / count - mean * mean;
    slack[0] = error + F32_ROUNDOFF * fabs(mean) + F32_TINY;
    slack[1] = reference_serial_slack((int64_t)count, added) / count + 8 * F32_ROUNDOFF * (added / count) +
               (two_passes ? 4 * error * sqrt(spread / count) + error * error
                           : 2 * slack[0] * fabs(mean) + 4 * F32_ROUNDOFF * mean * mean) +
               F32_TINY;
}

static void expect_moments(const Problem *problem, int64_t at, const Sample *sample, bool two_passes) {
    double result[2], slack[2];
    moments_of(sample, two_passes, result, slack);
    problem->expected[at] = result[0];
    problem->slack[at] = slack[0];
    problem->further[0].expected[at] = result[1];
    problem->further[0].slack[at] = slack[1];
}

void reference_batch_statistics(const Problem *problem) {
    int64_t channels = problem_dimension(problem, 'C'), pixels = problem_dimension(problem, 'P');
    for (int64_t c = 0; c < channels; c++)
        expect_moments(problem, c,
                       &(Sample){.x = problem->input[0] + c * pixels,
                                 .outer = problem_dimension(problem, 'B'),
                                 .jump = channels * pixels,
                                 .inner = pixels,
                                 .step = 1},
                       false);
}

void reference_image_statistics(const Problem *problem) {
    int64_t channels = problem_dimension(problem, 'C');
    int64_t pixels = problem_dimension(problem, 'H') * problem_dimension(problem, 'W');
    for (int64_t i = 0; i < problem_dimension(problem, 'B') * channels; i++)
        expect_moments(problem, i,
                       &(Sample){.x = problem->input[0] + i / channels * pixels * channels + i % channels,
                                 .outer = 1,
                                 .inner = pixels,
                                 .step = channels},
                       true);
}

void reference_logsumexp_middle(const Problem *problem) {
    int64_t lines = problem_dimension(problem, 'S'), columns = problem_dimension(problem, 'N');
    for (int64_t i = 0; i < problem_dimension(problem, 'B') * columns; i++) {
        const double *x = problem->input[0] + i / columns * lines * columns + i % columns;
        double top = -INFINITY, low = INFINITY, total = 0;
        for (int64_t s = 0; s < lines; s++) {
            top = fmax(top, x[s * columns]);
            low = fmin(low, x[s * columns]);
        }
        for (int64_t s = 0; s < lines; s++) total += exp(x[s * columns] - top);
        problem->expected[i] = top + log(total);
        problem->slack[i] = F32_ROUNDOFF * (2 * (top - low) + (double)lines + 40 + 8 * (fabs(top) + log(total)));
    }
}

void reference_above_mean(const Problem *problem) {
    int64_t channels = problem_dimension(problem, 'C'), pixels = problem_dimension(problem, 'P'), batches = problem_dimension(problem, 'B');
    for (int64_t i = 0; i < batches * channels * pixels; i++) {
        int64_t c = i / pixels % channels;
        Sample sample = {problem->input[0] + c * pixels, batches, channels * pixels, pixels, 1};
        double moments[2], error[2], x = problem->input[0][i];
        moments_of(&sample, true, moments, error);
        problem->expected[c] = moments[0];
        problem->slack[c] = error[0];
        problem->further[0].expected[i] = isnan(x - moments[0]) ? NAN : fmax(x - moments[0], 0);
        problem->further[0].slack[i] = error[0] + 2 * F32_ROUNDOFF * fabs(x - moments[0]);
    }
}

void reference_group_norm_last(const Problem *problem) {
    int64_t pixels = problem_dimension(problem, 'P'), channels = problem_dimension(problem, 'C');
    int64_t groups = (int64_t)problem->scalar[0], width = channels / groups;
    double eps = (float)problem->scalar[1];
    for (int64_t i = 0; i < problem_dimension(problem, 'B') * groups; i++) {
        int64_t first = i / groups * pixels * channels + i % groups * width;
        Sample sample = {problem->input[0] + first, pixels, channels, width, 1};
        double moments[2], error[2];
        moments_of(&sample, false, moments, error);
        double scale = 1 / sqrt(moments[1] + eps), relative = error[1] / (moments[1] + eps) + 8 * F32_ROUNDOFF;
        for (int64_t k = 0; k < pixels * width; k++) {
            int64_t at = first + k / width * channels + k % width, channel = at % channels;
            double gamma = problem->input[1][channel], beta = problem->input[2][channel];
            double product = (problem->input[0][at] - moments[0]) * scale * gamma;
            problem->expected[at] = product + beta;
            problem->slack[at] = fabs(product) * relative + fabs(scale * gamma) * error[0] +
                                 2 * F32_ROUNDOFF * (fabs(product) + fabs(beta)) + F32_TINY;
        }
    }
}

void reference_count_nonzero(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++)
        problem->expected[i / columns] += problem->input[0][i] != 0;
}

void reference_running_max(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        double x = problem->input[0][i], before = i % columns ? problem->expected[i - 1] : -INFINITY;
        problem->expected[i] = isnan(before) || isnan(x) ? NAN : fmax(before, x);
    }
}
