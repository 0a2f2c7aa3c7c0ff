/* Matrix products other than matmul with a bias: transposed, several, batched, split, of integers, by vectors. */
#include <math.h>

#include "reference.h"

/* Consecutive elements along the contraction are `step` apart. */
typedef struct Line {
    const double *first;
    int64_t step;
} Line;

typedef struct Sum {
    double value, magnitude;
} Sum;

static Sum product(Line a, Line b, int64_t depth) {
    Sum sum = {0, 0};
    for (int64_t k = 0; k < depth; k++) {
        double term = a.first[k * a.step] * b.first[k * b.step];
        sum.value += term;
        sum.magnitude += fabs(term);
    }
    return sum;
}

static void expect(const Problem *problem, int64_t index, double value, double slack) {
    problem->expected[index] = value;
    problem->slack[index] = slack + F32_ROUNDOFF * fabs(value) + F32_TINY;
}

static void transposed(const Problem *problem, bool a_is, bool b_is) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    int64_t depth = problem_dimension(problem, 'K');
    for (int64_t m = 0; m < rows; m++)
        for (int64_t n = 0; n < columns; n++) {
            Line a = a_is ? (Line){problem->input[0] + m, rows} : (Line){problem->input[0] + m * depth, 1};
            Line b = b_is ? (Line){problem->input[1] + n * depth, 1} : (Line){problem->input[1] + n, columns};
            Sum sum = product(a, b, depth);
            expect(problem, m * columns + n, sum.value, reference_serial_slack(depth, sum.magnitude));
        }
}

void reference_matmul_tn(const Problem *problem) { transposed(problem, true, false); }
void reference_matmul_nt(const Problem *problem) { transposed(problem, false, true); }
void reference_matmul_tt(const Problem *problem) { transposed(problem, true, true); }

/* Applied to the product: scaling by the case's number, or addition of the third input. */
void reference_matmul_scaled(const Problem *problem) {
    double alpha = (float)problem->scalar[0];
    int64_t count = problem_dimension(problem, 'M') * problem_dimension(problem, 'N');
    transposed(problem, false, false);
    for (int64_t i = 0; i < count; i++)
        expect(problem, i, alpha * problem->expected[i], fabs(alpha) * problem->slack[i]);
}

void reference_matmul_residual(const Problem *problem) {
    int64_t count = problem_dimension(problem, 'M') * problem_dimension(problem, 'N');
    transposed(problem, false, false);
    for (int64_t i = 0; i < count; i++)
        expect(problem, i, problem->expected[i] + problem->input[2][i], problem->slack[i]);
}

void reference_product_shared(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), count = problem_dimension(problem, 'M') * columns;
    transposed(problem, true, false);
    for (int64_t i = 0; i < count; i++)
        expect(problem, i, problem->expected[i] + problem->input[2][i % columns], problem->slack[i] + F32_ROUNDOFF * fabs(problem->expected[i]));
}

/* Of the second output: the greatest sum of each column in the first 64 rows, of which those that there are not are 0. */
void reference_gram_shared(const Problem *problem) {
    enum { FIRST = 64 };
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    int64_t depth = problem_dimension(problem, 'B') * problem_dimension(problem, 'H') * problem_dimension(problem, 'W');
    const Expectation *most = &problem->further[0];
    for (int64_t n = 0; n < columns; n++) {
        most->expected[n] = rows < FIRST ? 0 : -INFINITY;
        most->slack[n] = 0;
        for (int64_t m = 0; m < rows; m++) {
            Sum sum = product((Line){problem->input[0] + m, rows}, (Line){problem->input[1] + n, columns}, depth);
            double slack = reference_serial_slack(depth + 1, sum.magnitude + 1);
            expect(problem, m * columns + n, sum.value + 1, slack);
            if (m >= FIRST) continue;
            most->expected[n] = fmax(most->expected[n], sum.value);
            most->slack[n] = fmax(most->slack[n], slack);
        }
    }
}

/* The slope of silu is at most 1.1. */
void reference_matmul_swiglu(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    int64_t depth = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < rows * columns; i++) {
        Line a = {problem->input[0] + i / columns * depth, 1};
        Sum gate = product(a, (Line){problem->input[1] + i % columns, columns}, depth);
        Sum up = product(a, (Line){problem->input[2] + i % columns, columns}, depth);
        Approximate left = reference_silu_of(gate.value);
        left.slack += 1.1 * reference_serial_slack(depth, gate.magnitude);
        double right = reference_serial_slack(depth, up.magnitude);
        expect(problem, i, left.value * up.value, left.slack * (fabs(up.value) + right) + fabs(left.value) * right);
    }
}

/* The partial sums, of at least 16 products each, are added up, too. */
void reference_matmul_split_k(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    int64_t depth = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < rows * columns; i++) {
        Line a = {problem->input[0] + i / columns * depth, 1}, b = {problem->input[1] + i % columns, columns};
        Sum sum = product(a, b, depth);
        expect(problem, i, sum.value, reference_serial_slack(depth + depth / 16 + 1, sum.magnitude));
    }
}

void reference_matmul_batched(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    int64_t depth = problem_dimension(problem, 'K'), count = problem_dimension(problem, 'B') * rows * columns;
    for (int64_t i = 0; i < count; i++) {
        int64_t batch = i / columns / rows, row = i / columns % rows, column = i % columns;
        Line a = {problem->input[0] + (batch * rows + row) * depth, 1};
        Line b = {problem->input[1] + batch * depth * columns + column, columns};
        Sum sum = product(a, b, depth);
        expect(problem, i, sum.value, reference_serial_slack(depth, sum.magnitude));
    }
}

/* The integer sum is exact; it is rounded to f32, and then twice by the scales. A product with a subnormal scale has an
 * absolute error, which the other scale multiplies. */
void reference_matmul_i8(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    int64_t depth = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < rows * columns; i++) {
        Line a = {problem->input[0] + i / columns * depth, 1}, b = {problem->input[1] + i % columns, columns};
        double row = problem->input[2][i / columns], column = problem->input[3][i % columns];
        double value = product(a, b, depth).value * row * column;
        expect(problem, i, value, 3 * F32_ROUNDOFF * fabs(value) + F32_TINY * fabs(column));
    }
}

/* Of at most 128 products of 8-bit floats, and of their sum after each 32, tensor cores cut off what is more than 13 bits
 * below the greatest; then these sums are added in f32. */
double reference_cut_off(double magnitude) {
    enum { PRODUCTS = 128, STEPS = PRODUCTS / 32, BELOW = 13 };
    return magnitude * ldexp(PRODUCTS + 2 * STEPS, -BELOW);
}

/* Products of 8-bit floats are exact; their sum is rounded in each step, then twice by the scales. */
void reference_matmul_f8(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N');
    int64_t depth = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < rows * columns; i++) {
        Line a = {problem->input[0] + i / columns * depth, 1}, b = {problem->input[1] + i % columns * depth, 1};
        double row = problem->input[2][i / columns], column = problem->input[3][i % columns];
        Sum sum = product(a, b, depth);
        double value = sum.value * row * column,
               slack = reference_serial_slack(depth, sum.magnitude) + (problem->on_tensor_cores ? reference_cut_off(sum.magnitude) : 0);
        expect(problem, i, value,
               slack * fabs(row * column) + 3 * F32_ROUNDOFF * fabs(value) +
                   F32_TINY * fabs(column));
    }
}

/* Each product is rounded before it is added. */
void reference_gemv(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), depth = problem_dimension(problem, 'K');
    for (int64_t m = 0; m < rows; m++) {
        Sum sum = product((Line){problem->input[0] + m * depth, 1}, (Line){problem->input[1], 1}, depth);
        expect(problem, m, sum.value,
               reference_lanes_slack(depth, sum.magnitude) + F32_ROUNDOFF * sum.magnitude + F32_TINY * (double)depth);
    }
}

/* Sequentially within tiles of at least 16, and then over the tiles. */
void reference_gemv_t(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    for (int64_t n = 0; n < columns; n++) {
        Sum sum = product((Line){problem->input[0] + n, columns}, (Line){problem->input[1], 1}, depth);
        expect(problem, n, sum.value,
               reference_serial_slack(depth + depth / 16 + 2, sum.magnitude) + F32_TINY * (double)depth);
    }
}
