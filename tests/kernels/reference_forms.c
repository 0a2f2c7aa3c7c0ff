/* Kernels of tests/programs that each show a form of the language: values, temporaries, conditions, and tests' own. */
#include <math.h>
#include <string.h>

#include "reference.h"

static int64_t size(const Problem *problem, char letter) { return problem_dimension(problem, letter); }

/* ---- values ---- */

void reference_fibonacci(const Problem *problem) {
    double a = 0, b = 1;
    for (int64_t n = 0; n < size(problem, 'N'); n++) {
        problem->expected[n] = a;
        problem->further[0].expected[n] = b;
        double next = a + b;
        a = b;
        b = next;
    }
}

void reference_last_max(const Problem *problem) {
    int64_t columns = size(problem, 'N');
    for (int64_t m = 0; m < size(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        double top = -INFINITY;
        int64_t at = 0;
        for (int64_t n = 0; n < columns; n++) {
            if (x[n] < top) continue;
            top = x[n];
            at = n;
        }
        problem->expected[m] = (double)at;
        problem->further[0].expected[m] = top;
    }
}

void reference_outer_sum(const Problem *problem) {
    int64_t columns = size(problem, 'N');
    double s = (float)problem->scalar[0];
    for (int64_t i = 0; i < size(problem, 'M') * columns; i++) {
        double x = problem->input[0][i / columns], y = problem->input[1][i % columns];
        problem->expected[i] = x + y + s;
        problem->slack[i] = 2 * F32_ROUNDOFF * (fabs(x) + fabs(y) + fabs(s));
    }
}

void reference_neighbours(const Problem *problem) {
    int64_t columns = size(problem, 'N');
    for (int64_t i = 0; i < size(problem, 'M') * columns; i++) {
        int64_t n = i % columns;
        problem->expected[i] = n >= 2 ? problem->input[0][i - 2] : -1;
        problem->further[0].expected[i] = n + 3 < columns ? problem->input[0][i + 3] : -2;
        problem->further[1].expected[i] = n >= 1;
    }
}

void reference_between(const Problem *problem) {
    int64_t count = size(problem, 'N');
    for (int64_t n = 0; n < count; n++) problem->expected[n] = n >= 1 && n + 2 < count;
    problem->further[0].expected[0] = count < 64 ? (double)count : 64;
}

/* The sum of products of `depth` numbers, `step_a` and `step_b` apart. */
static void product(double *expected, double *slack, const double *a, int64_t step_a, const double *b, int64_t step_b, int64_t depth) {
    double sum = 0, magnitude = 0;
    for (int64_t k = 0; k < depth; k++) {
        sum += a[k * step_a] * b[k * step_b];
        magnitude += fabs(a[k * step_a] * b[k * step_b]);
    }
    *expected = sum;
    *slack = reference_serial_slack(depth, magnitude) + F32_TINY;
}

void reference_both_sides(const Problem *problem) {
    int64_t rows = size(problem, 'M'), columns = size(problem, 'K');
    for (int64_t m = 0; m < rows; m++)
        product(&problem->expected[m], &problem->slack[m], problem->input[0] + m * columns, 1, problem->input[1], 1, columns);
    for (int64_t k = 0; k < columns; k++)
        product(&problem->further[0].expected[k], &problem->further[0].slack[k], problem->input[0] + k, columns, problem->input[2], 1, rows);
}

void reference_shared_right(const Problem *problem) {
    int64_t columns = size(problem, 'N'), depth = size(problem, 'K');
    const double *b = problem->input[1];
    for (int64_t i = 0; i < size(problem, 'B') * size(problem, 'M') * columns; i++)
        product(&problem->expected[i], &problem->slack[i], problem->input[0] + i / columns * depth, 1, b + i % columns, columns, depth);
    product(problem->further[0].expected, problem->further[0].slack, b, columns, b + 1, columns, depth);
}

void reference_letters(const Problem *problem) {
    int64_t B = size(problem, 'B'), I = size(problem, 'I'), J = size(problem, 'J'), K = size(problem, 'K'), L = size(problem, 'L');
    const double *a = problem->input[0], *b = problem->input[1];
    for (int64_t at = 0; at < K * B * I * L; at++) {
        int64_t l = at % L, i = at / L % I, batch = at / (L * I) % B, k = at / (L * I * B);
        product(&problem->expected[at], &problem->slack[at], a + (batch * I + i) * J, 1, b + (batch * K + k) * L + l, B * K * L, J);
    }
    for (int64_t at = 0; at < J * I; at++)
        product(&problem->further[0].expected[at], &problem->further[0].slack[at], a + at % I * J + at / I, I * J, a + at % I * J, I * J, B);
}

void reference_stages(const Problem *problem) {
    int64_t rows = size(problem, 'M'), columns = size(problem, 'N');
    const Expectation *z = &problem->further[0], *t = &problem->further[1], *r = &problem->further[2];
    for (int64_t i = 0; i < rows * columns; i++) {
        double here = 2 * problem->input[0][i], before = i % columns ? 2 * problem->input[0][i - 1] : 0;
        problem->expected[i] = here;
        z->expected[i] = 3 * here + before;
        z->slack[i] = 2 * F32_ROUNDOFF * (fabs(3 * here) + fabs(before)) + F32_TINY;
        t->expected[i % columns] += z->expected[i];
        t->slack[i % columns] += z->slack[i] + reference_serial_slack(rows, fabs(z->expected[i]));
    }
    for (int64_t m = 0; m < rows; m++) {
        r->expected[m] = columns ? z->expected[m * columns + columns - 1] : 0;
        r->slack[m] = columns ? z->slack[m * columns + columns - 1] : 0;
    }
}

void reference_bits(const Problem *problem) {
    int width = 8 * (int)type_bytes(problem->type);
    uint64_t all = (UINT64_C(1) << width) - 1; /* of types narrower than 64 bits */
    for (int64_t n = 0; n < size(problem, 'N'); n++) {
        int64_t x = (int64_t)problem->input[0][n], y = (int64_t)problem->input[1][n];
        uint64_t bits = (uint64_t)x & all;
        problem->expected[n] = __builtin_popcountll(bits);
        problem->further[0].expected[n] = bits ? __builtin_clzll(bits) - (64 - width) : width;
        problem->further[1].expected[n] = bits ? __builtin_ctzll(bits) : width;
        problem->further[2].expected[n] = (double)(x * y >> width);
    }
}

/* The next number of the type towards infinity (of -0 and 0 the least one above 0), or away from it. */
static double next_number(Type type, double x, bool up) {
    unsigned char storage[8];
    uint64_t sign = UINT64_C(1) << (8 * type_bytes(type) - 1), bits;
    value_store(type, storage, x);
    bits = value_bits(type, storage);
    bool away = (x > 0) == up;
    bits = x == 0 ? (up ? 1 : sign | 1) : away ? bits + 1 : bits - 1;
    memcpy(storage, &bits, type_bytes(type)); /* little-endian */
    return value_load(type, storage);
}

void reference_parts(const Problem *problem) {
    for (int64_t n = 0; n < size(problem, 'N'); n++) {
        int exponent;
        problem->expected[n] = frexp(problem->input[0][n], &exponent);
        problem->further[0].expected[n] = exponent;
        problem->further[1].expected[n] = problem->input[0][n];
        problem->further[2].expected[n] = next_number(problem->type, problem->input[0][n], true);
    }
}

/* ---- 8-bit floats: each operation in f32, rounded ---- */

static double rounded(const Problem *problem, double value) { return value_round(problem->type, (float)value); }

void reference_operators(const Problem *problem) {
    for (int64_t n = 0; n < size(problem, 'N'); n++) {
        double x = problem->input[0][n], y = problem->input[1][n], rest = fmod(-x, 3);
        problem->expected[n] = (float)(x + rounded(problem, 2 * y));
        problem->further[0].expected[n] = (float)(x / y);
        problem->further[1].expected[n] = (float)(rest < 0 ? rest + 3 : rest);
        problem->further[2].expected[n] = (float)(x - y);
        problem->further[3].expected[n] = x < y;
    }
}

void reference_functions(const Problem *problem) {
    for (int64_t n = 0; n < size(problem, 'N'); n++) {
        double x = problem->input[0][n], y = problem->input[1][n];
        int exponent;
        double fraction = frexp(x, &exponent);
        problem->expected[n] = exp(x);
        problem->slack[n] = 4 * F32_ROUNDOFF * exp(x);
        problem->further[0].expected[n] = fmax(x, y);
        problem->further[1].expected[n] = fmin(fmax(x, -1), 1);
        problem->further[2].expected[n] = (float)(rounded(problem, rounded(problem, fraction) * rounded(problem, exponent)) + rounded(problem, 2 * y));
        problem->further[3].expected[n] = x == y ? y : next_number(problem->type, x, y > x);
        problem->further[4].expected[n] = 0;
    }
}

void reference_lines(const Problem *problem) {
    int64_t columns = size(problem, 'N');
    for (int64_t m = 0; m < size(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        double sum = 0, magnitude = 0, *sorted = problem->further[3].expected + m * columns;
        int64_t at = 0;
        for (int64_t n = 0; n < columns; n++) {
            sum += x[n];
            magnitude += fabs(x[n]);
            if (x[n] > x[at]) at = n;
            problem->further[2].expected[m * columns + n] = sum;
            problem->further[2].slack[m * columns + n] = reference_serial_slack(n + 1, magnitude);
            int64_t place = n;
            for (; place > 0 && sorted[place - 1] > x[n]; place--) sorted[place] = sorted[place - 1];
            sorted[place] = x[n];
        }
        problem->expected[m] = sum;
        problem->slack[m] = reference_serial_slack(columns, magnitude);
        problem->further[0].expected[m] = x[at];
        problem->further[1].expected[m] = (double)at;
    }
}

void reference_accumulate(const Problem *problem) {
    int64_t columns = size(problem, 'N');
    for (int64_t n = 0; n < columns; n++) {
        double sum = problem->input[1][n];
        for (int64_t m = 0; m < size(problem, 'M'); m++) sum = rounded(problem, sum + problem->input[0][m * columns + n]);
        problem->expected[n] = sum;
    }
}

void reference_folded(const Problem *problem) {
    int64_t columns = size(problem, 'N');
    for (int64_t m = 0; m < size(problem, 'M'); m++) {
        problem->expected[m] = problem->input[0][m * columns];
        for (int64_t n = 1; n < columns; n++) problem->expected[m] = fmax(problem->expected[m], problem->input[0][m * columns + n]);
    }
}

/* ---- conditions, temporaries, constants, and tests' own kernels ---- */

void reference_flat(const Problem *problem) {
    enum { TILE = 4 };
    int64_t rows = size(problem, 'M'), columns = size(problem, 'N'), count = size(problem, 'P'), all = rows * columns;
    const double *x = problem->input[0], *at = problem->input[1];
    for (int64_t i = 0; i < all; i++) {
        int64_t m = i / columns - 1, n = i % columns + 1;
        problem->expected[i] = x[i];
        problem->further[2].expected[i] = m >= 0 && n < columns ? x[m * columns + n] : -3;
    }
    for (int64_t p = 0; p < count; p++) {
        bool inside = true;
        for (int64_t k = p / TILE * TILE; k < count && k < (p / TILE + 1) * TILE; k++) inside = inside && at[k] >= 0 && at[k] < (double)all;
        bool here = at[p] >= 0 && at[p] < (double)all;
        problem->further[0].expected[p] = inside ? x[(int64_t)at[p]] : -1;
        problem->further[1].expected[p] = here ? x[(int64_t)at[p]] : -2;
    }
}

/* A number that occurs twice has one of its places. */
void reference_places(const Problem *problem) {
    enum { COUNT = 16 };
    for (int64_t m = 0; m < size(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * COUNT;
        double sum = 0;
        bool exact = true;
        for (int64_t i = 0; i < COUNT; i++) {
            int found = 0;
            problem->expected[m * COUNT + i] = -1;
            for (int64_t k = 0; k < COUNT; k++) {
                if (x[k] != (double)i) continue;
                problem->expected[m * COUNT + i] = (double)k;
                found++;
            }
            problem->slack[m * COUNT + i] = found > 1 ? -1 : 0;
            sum += x[i];
            problem->further[0].expected[m * COUNT + i] = sum;
            exact = exact && fabs(sum) < 0x1p53 && fabs(x[i]) < 0x1p53;
            problem->further[0].slack[m * COUNT + i] = exact ? 0 : -1; /* of numbers that a double has not */
        }
    }
}

void reference_constants(const Problem *problem) {
    for (int64_t n = 0; n < size(problem, 'N'); n++) problem->expected[n] = problem->input[0][n] + 0x1p40;
}

void reference_scale(const Problem *problem) {
    for (int64_t n = 0; n < size(problem, 'N'); n++) {
        problem->expected[n] = problem->input[0][n] * (float)problem->scalar[0];
        problem->slack[n] = F32_ROUNDOFF * fabs(problem->expected[n]) + F32_STEP;
    }
}

void reference_convert(const Problem *problem) {
    for (int64_t i = 0; i < size(problem, 'M') * size(problem, 'N'); i++) problem->expected[i] = problem->input[0][i];
}

void reference_truncated(const Problem *problem) {
    for (int64_t i = 0; i < size(problem, 'M') * size(problem, 'N'); i++) problem->expected[i] = trunc(problem->input[0][i]);
}

void reference_take_nearest(const Problem *problem) {
    int64_t rows = size(problem, 'M'), columns = size(problem, 'N');
    for (int64_t i = 0; i < size(problem, 'K') * columns; i++) {
        double row = fmin(fmax(problem->input[1][i / columns], 0), (double)rows - 1);
        problem->expected[i] = problem->input[0][(int64_t)row * columns + i % columns];
    }
}

void reference_halves(const Problem *problem) {
    int64_t rows = size(problem, 'M'), columns = size(problem, 'N');
    for (int64_t i = 0; i < rows * columns; i++) {
        const double *x = problem->input[0] + i / columns * 2 * columns + i % columns;
        problem->expected[i] = x[0] - x[columns];
        problem->slack[i] = F32_ROUNDOFF * (fabs(x[0]) + fabs(x[columns]));
    }
    problem->further[0].expected[0] = problem->input[1][0] + (double)rows;
    problem->further[0].expected[1] = problem->input[1][1];
}

void reference_total(const Problem *problem) {
    double sum = 0, magnitude = 0;
    for (int64_t n = 0; n < size(problem, 'N'); n++) {
        sum += problem->input[0][n];
        magnitude += fabs(problem->input[0][n]);
    }
    problem->expected[0] = sum;
    problem->slack[0] = reference_serial_slack(size(problem, 'N'), magnitude);
}
