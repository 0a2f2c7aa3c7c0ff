/* Running sums, indexing, rotary embedding and dropout. An index is only used if it is in bounds. */
#include <math.h>

#include "reference.h"

/* ---- running sums ---- */

static void running_sum(const Problem *problem, int64_t first, int64_t step, int64_t count) {
    double total = 0, magnitude = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = first + i * step;
        total += problem->input[0][at];
        magnitude += fabs(problem->input[0][at]);
        problem->expected[at] = total;
        problem->slack[at] = reference_serial_slack(i + 1, magnitude);
    }
}

void reference_cumsum_rows(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) running_sum(problem, m * columns, 1, columns);
}

void reference_cumsum_columns(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t n = 0; n < columns; n++) running_sum(problem, n, columns, problem_dimension(problem, 'M'));
}

/* ---- indices ---- */

static bool is_inside(double index, int64_t count) { return index >= 0 && index < (double)count; }

/* Rows of `table` selected by index, or zeros. */
static void take(const Problem *problem, const double *table, int64_t rows, int64_t width, int64_t count) {
    for (int64_t k = 0; k < count; k++) {
        double row = problem->input[1][k];
        for (int64_t d = 0; d < width && is_inside(row, rows); d++)
            problem->expected[k * width + d] = table[(int64_t)row * width + d];
    }
}

void reference_take_rows(const Problem *problem) {
    take(problem, problem->input[0], problem_dimension(problem, 'N'), problem_dimension(problem, 'D'),
         problem_dimension(problem, 'K'));
}

void reference_embedding(const Problem *problem) {
    take(problem, problem->input[0], problem_dimension(problem, 'V'), problem_dimension(problem, 'D'),
         problem_dimension(problem, 'B') * problem_dimension(problem, 'S'));
}

/* Inputs: dy, token, dtable. */
void reference_embedding_backward(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'V'), width = problem_dimension(problem, 'D');
    for (int64_t i = 0; i < rows * width; i++) {
        problem->expected[i] = problem->input[2][i];
        problem->slack[i] = fabs(problem->input[2][i]);
    }
    int64_t count = problem_dimension(problem, 'K');
    for (int64_t k = 0; k < count; k++) {
        double row = problem->input[1][k];
        for (int64_t d = 0; d < width && is_inside(row, rows); d++) {
            problem->expected[(int64_t)row * width + d] += problem->input[0][k * width + d];
            problem->slack[(int64_t)row * width + d] += fabs(problem->input[0][k * width + d]);
        }
    }
    for (int64_t i = 0; i < rows * width; i++) problem->slack[i] = reference_serial_slack(count, problem->slack[i]);
}

void reference_take_along_rows(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), count = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * count; i++) {
        double at = problem->input[1][i];
        problem->expected[i] = is_inside(at, columns) ? problem->input[0][i / count * columns + (int64_t)at] : 0;
    }
}

void reference_one_hot(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t k = 0; k < problem_dimension(problem, 'K'); k++)
        for (int64_t n = 0; n < columns; n++) problem->expected[k * columns + n] = (double)n == problem->input[0][k];
}

void reference_masked_fill(const Problem *problem) {
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * problem_dimension(problem, 'N'); i++)
        problem->expected[i] = problem->input[1][i] != 0 ? problem->scalar[0] : problem->input[0][i];
}

/* ---- rotary embedding ---- */

/* Rotates the pairs of all heads; the elements of pair d are at d * step and d * step + gap. Two products, one of them
 * fused with the sum. */
static void rotate(const Problem *problem, int64_t step, int64_t gap) {
    int64_t pairs = problem_dimension(problem, 'D'), heads = problem_dimension(problem, 'H');
    int64_t positions = problem_dimension(problem, 'S'), lines = problem_dimension(problem, 'B') * positions * heads;
    for (int64_t line = 0; line < lines; line++)
        for (int64_t d = 0; d < pairs; d++) {
            int64_t angle = line / heads % positions * pairs + d, low = line * 2 * pairs + d * step, high = low + gap;
            double c = problem->input[1][angle], s = problem->input[2][angle];
            double a = problem->input[0][low], b = problem->input[0][high];
            problem->expected[low] = a * c - b * s;
            problem->expected[high] = b * c + a * s;
            problem->slack[low] = 2 * F32_ROUNDOFF * (fabs(a * c) + fabs(b * s)) + F32_TINY;
            problem->slack[high] = 2 * F32_ROUNDOFF * (fabs(b * c) + fabs(a * s)) + F32_TINY;
        }
}

void reference_rotary_halves(const Problem *problem) { rotate(problem, 1, problem_dimension(problem, 'D')); }
void reference_rotary_pairs(const Problem *problem) { rotate(problem, 2, 1); }

/* ---- dropout ---- */

/* Philox4x32-10 (Salmon et al., 2011): word index mod 4 of block index / 4, as a number in [0, 1). */
static double philox(uint64_t seed, uint64_t index) {
    uint32_t counter[4] = {(uint32_t)(index / 4), (uint32_t)(index / 4 >> 32), 0, 0};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)counter[0] * 0xd2511f53u, b = (uint64_t)counter[2] * 0xcd9e8d57u;
        counter[0] = (uint32_t)(b >> 32) ^ counter[1] ^ key[0];
        counter[1] = (uint32_t)b;
        counter[2] = (uint32_t)(a >> 32) ^ counter[3] ^ key[1];
        counter[3] = (uint32_t)a;
        key[0] += 0x9e3779b9u;
        key[1] += 0xbb67ae85u;
    }
    return (double)(counter[index % 4] >> 8) * 0x1p-24;
}

void reference_dropout(const Problem *problem) {
    double p = (double)(float)problem->scalar[0];
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * problem_dimension(problem, 'N'); i++) {
        bool kept = philox((uint64_t)problem->scalar[1], (uint64_t)i) >= p;
        problem->expected[i] = kept ? problem->input[0][i] / (1 - p) : 0;
        problem->slack[i] = 3 * F32_ROUNDOFF * fabs(problem->expected[i]) + F32_TINY;
    }
}
