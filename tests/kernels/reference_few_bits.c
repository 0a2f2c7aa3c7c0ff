/* Kernels of tests/programs: numbers of 4 bits in bytes, and sorts within a tile. */
#include <math.h>

#include "reference.h"

static int64_t size(const Problem *problem, char letter) { return problem_dimension(problem, letter); }

/* ---- numbers of 4 bits: the lower half of a byte is the first ---- */

static int half_of(const double *bytes, int64_t at) { return (int)bytes[at / 2] >> (at % 2 ? 4 : 0) & 15; }

static int as_signed(int code) { return code < 8 ? code : code - 16; }

/* 1 bit of sign, 2 of exponent, 1 of fraction. */
static double as_float4(int code) {
    static const double sizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return copysign(sizes[code & 7], code & 8 ? -1 : 1);
}

void reference_wide_i4(const Problem *problem) {
    for (int64_t i = 0; i < size(problem, 'N') * size(problem, 'K'); i++) problem->expected[i] = as_signed(half_of(problem->input[0], i));
}

void reference_single_u4(const Problem *problem) {
    for (int64_t i = 0; i < size(problem, 'N') * size(problem, 'K'); i++) problem->expected[i] = half_of(problem->input[0], i);
}

void reference_sums_u4(const Problem *problem) {
    int64_t depth = size(problem, 'K');
    for (int64_t i = 0; i < size(problem, 'N') * depth; i++) problem->expected[i / depth] += half_of(problem->input[0], i);
}

void reference_column_i4(const Problem *problem) {
    int64_t depth = 2 * size(problem, 'H'), at = (int64_t)problem->scalar[0];
    for (int64_t n = 0; n < size(problem, 'N'); n++)
        problem->expected[n] = at >= 0 && at < depth ? as_signed(half_of(problem->input[0], n * depth + at)) : 7;
}

void reference_gathered(const Problem *problem) {
    int64_t depth = size(problem, 'K'), columns = size(problem, 'M');
    for (int64_t i = 0; i < size(problem, 'N') * columns; i++) {
        double at = problem->input[1][i % columns];
        problem->expected[i] = at >= 0 && at < (double)depth ? as_float4(half_of(problem->input[0], i / columns * depth + (int64_t)at)) : 0;
    }
}

void reference_gathered_flat(const Problem *problem) {
    int64_t depth = size(problem, 'K');
    for (int64_t m = 0; m < size(problem, 'M'); m++) {
        double row = problem->input[1][m], at = problem->input[2][m];
        bool inside = row >= 0 && row < (double)size(problem, 'N') && at >= 0 && at < (double)depth;
        problem->expected[m] = inside ? as_signed(half_of(problem->input[0], (int64_t)row * depth + (int64_t)at)) : 0;
    }
}

/* The nearest of the 16 numbers, ties to the even code. */
static int to_float4(double x) {
    int best = 0;
    for (int code = 1; code < 8; code++) {
        double here = fabs(as_float4(code) - fabs(x)), there = fabs(as_float4(best) - fabs(x));
        if (here < there || (here == there && code % 2 == 0)) best = code;
    }
    return best | (signbit(x) ? 8 : 0);
}

/* The bytes of rows of `count` numbers; the half behind an odd number of them is 0. */
static void pack_rows(const Problem *problem, int code(double x), double round(double x)) {
    int64_t count = size(problem, 'K'), bytes = (count + 1) / 2;
    for (int64_t i = 0; i < size(problem, 'N') * bytes; i++) {
        const double *x = problem->input[0] + i / bytes * count;
        int64_t at = 2 * (i % bytes);
        int low = code(round(x[at])), high = at + 1 < count ? code(round(x[at + 1])) : 0;
        problem->expected[i] = low | high << 4;
    }
}

static int to_half(double x) { return (int)x & 15; }
static double unchanged(double x) { return x; }
static double to_float8(double x) { return value_round(TYPE_F8E4M3, x); }

void reference_narrow_i4(const Problem *problem) { pack_rows(problem, to_half, unchanged); }
void reference_narrow_f4(const Problem *problem) { pack_rows(problem, to_float4, to_float8); }

void reference_added(const Problem *problem) {
    for (int64_t i = 0; i < size(problem, 'N') * size(problem, 'H'); i++) {
        int byte = (int)problem->input[0][i], by = (int)problem->scalar[0];
        problem->expected[i] = ((byte & 15) + by) % 16 + ((byte >> 4) + by) % 16 * 16;
    }
}

void reference_through(const Problem *problem) {
    for (int64_t i = 0; i < size(problem, 'N') * size(problem, 'K'); i++) problem->expected[i] = as_signed((int)problem->input[0][i] & 15);
}

void reference_products_i4(const Problem *problem) {
    int64_t columns = size(problem, 'N'), depth = size(problem, 'K');
    for (int64_t i = 0; i < size(problem, 'M') * columns; i++)
        for (int64_t k = 0; k < depth; k++)
            problem->expected[i] += problem->input[0][i / columns * depth + k] * as_signed(half_of(problem->input[1], i % columns * depth + k));
}

void reference_powers(const Problem *problem) {
    for (int64_t n = 0; n < size(problem, 'N'); n++)
        problem->expected[n] = problem->input[0][n] == 255 ? NAN : ldexp(1, (int)problem->input[0][n] - 127);
}

void reference_formats(const Problem *problem) {
    int64_t bytes = size(problem, 'N');
    for (int64_t i = 0; i < 2 * bytes; i++) {
        int code = half_of(problem->input[0], i);
        problem->expected[i] = as_signed(code);
        problem->further[0].expected[i] = code;
        problem->further[1].expected[i] = as_float4(code);
    }
    for (int64_t i = 0; i < 3 * bytes; i++) problem->further[2].expected[i] = problem->input[0][i % bytes];
}

/* ---- sorts ---- */

/* The order of `count` numbers, `step` apart: equal ones stay in it. */
static void order_of(int64_t *order, const double *x, int64_t step, int64_t count, bool descending) {
    for (int64_t i = 0; i < count; i++) {
        int64_t place = i;
        double here = x[i * step];
        for (; place > 0; place--) {
            double other = x[order[place - 1] * step];
            if (descending ? other >= here : other <= here) break;
            order[place] = order[place - 1];
        }
        order[place] = i;
    }
}

enum { MOST = 256 };

void reference_sorted_in_tile(const Problem *problem) {
    int64_t columns = size(problem, 'N'), order[MOST];
    for (int64_t m = 0; m < size(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        order_of(order, x, 1, columns, false);
        for (int64_t n = 0; n < columns; n++) problem->expected[m * columns + n] = x[order[n]];
    }
}

void reference_ranked_rows(const Problem *problem) {
    int64_t columns = size(problem, 'N'), order[MOST];
    for (int64_t m = 0; m < size(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        order_of(order, x, 1, columns, true);
        for (int64_t n = 0; n < columns; n++) {
            problem->expected[m * columns + n] = x[order[n]];
            problem->further[0].expected[m * columns + n] = (double)order[n];
        }
    }
}

void reference_sorted_columns(const Problem *problem) {
    enum { TILE = 16 };
    int64_t rows = size(problem, 'M'), columns = size(problem, 'N'), order[TILE];
    for (int64_t first = 0; first < rows; first += TILE) {
        int64_t count = rows - first < TILE ? rows - first : TILE;
        for (int64_t n = 0; n < columns; n++) {
            const double *x = problem->input[0] + first * columns + n;
            order_of(order, x, columns, count, false);
            for (int64_t i = 0; i < count; i++) {
                problem->expected[(first + i) * columns + n] = x[order[i] * columns];
                problem->further[0].expected[(first + i) * columns + n] = (double)(first + order[i]);
            }
        }
    }
}

void reference_sorted_kept(const Problem *problem) {
    enum { TILE = 16 };
    int64_t columns = size(problem, 'N'), order[TILE];
    for (int64_t i = 0; i < size(problem, 'M') * columns; i++) problem->expected[i] = -1;
    for (int64_t m = 0; m < size(problem, 'M'); m++)
        for (int64_t first = 0; first < columns; first += TILE) {
            double kept[TILE];
            int64_t count = 0;
            for (int64_t n = first; n < columns && n < first + TILE; n++)
                if (problem->input[0][m * columns + n] >= (float)problem->scalar[0]) kept[count++] = problem->input[0][m * columns + n];
            order_of(order, kept, 1, count, false);
            for (int64_t i = 0; i < count; i++) problem->expected[m * columns + first + i] = kept[order[i]];
        }
}

void reference_top_three(const Problem *problem) {
    int64_t columns = size(problem, 'N'), order[MOST];
    for (int64_t m = 0; m < size(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        order_of(order, x, 1, columns, true);
        for (int64_t i = 0; i < 3; i++) {
            problem->expected[3 * m + i] = i < columns ? x[order[i]] : -1;
            problem->further[0].expected[3 * m + i] = i < columns ? (double)order[i] : -1;
        }
    }
}

void reference_counts(const Problem *problem) {
    for (int64_t i = 0; i < 10; i++) problem->expected[i] = problem->input[1][i];
    for (int64_t n = 0; n < size(problem, 'N'); n++) {
        double x = problem->input[0][n];
        if (x >= 0 && x < 10) problem->expected[(int64_t)x]++;
    }
}

void reference_row_counts(const Problem *problem) {
    for (int64_t i = 0; i < size(problem, 'M') * size(problem, 'N'); i++) {
        double x = problem->input[0][i];
        if (x >= 0 && x < 320) problem->expected[i / size(problem, 'N') * 320 + (int64_t)x]++;
    }
}

void reference_table_places(const Problem *problem) {
    for (int64_t m = 0; m < size(problem, 'M'); m++)
        for (int64_t n = 0; n < size(problem, 'N'); n++) {
            problem->expected[m] += problem->input[0][n] < problem->input[1][m];
            problem->further[0].expected[m] += problem->input[0][n] <= problem->input[1][m];
        }
}
