/* More of the standard library: counts of elements in order, steps of optimisers that multiply, the delta rule,
 * transforms over several grids, weights of 4 bits, rows of groups. */
#include <math.h>
#include <stdlib.h>

#include "reference.h"

/* ---- elements in order ---- */

void reference_unique(const Problem *problem) {
    int64_t count = problem_dimension(problem, 'N'), last = -1;
    const double *x = problem->input[0];
    for (int64_t n = 0; n < count; n++) problem->expected[n] = problem->input[1][n];
    for (int64_t n = 0; n < count; n++) {
        if (n == 0 || x[n] != x[n - 1]) problem->expected[++last] = x[n];
        problem->further[0].expected[n] = (double)last;
    }
    problem->further[1].expected[0] = (double)(last + 1);
}

static void search(const Problem *problem, bool right) {
    const double *s = problem->input[0], *v = problem->input[1];
    for (int64_t k = 0; k < problem_dimension(problem, 'K'); k++) {
        int64_t before = 0;
        for (int64_t n = 0; n < problem_dimension(problem, 'N'); n++) before += right ? s[n] <= v[k] : s[n] < v[k];
        problem->expected[k] = (double)before;
    }
}

void reference_search_long(const Problem *problem) { search(problem, false); }
void reference_search_long_right(const Problem *problem) { search(problem, true); }

/* ---- optimisers ---- */

void reference_muon_momentum(const Problem *problem) {
    int64_t count = problem_dimension(problem, 'M') * problem_dimension(problem, 'N');
    const double *g = problem->input[0], *momentum = problem->input[1];
    double beta = (float)problem->scalar[0], norm = 0;
    for (int64_t i = 0; i < count; i++) {
        double moved = beta * momentum[i] + g[i], ahead = beta * moved + g[i];
        problem->expected[i] = moved;
        problem->slack[i] = 2 * F32_ROUNDOFF * (fabs(beta * momentum[i]) + fabs(g[i])) + F32_TINY;
        problem->further[0].expected[i] = ahead;
        norm += ahead * ahead;
    }
    norm = sqrt(norm) + (float)1e-7;
    for (int64_t i = 0; i < count; i++) {
        double magnitude = fabs(beta * beta * momentum[i]) + fabs(beta * g[i]) + fabs(g[i]);
        double *x = &problem->further[0].expected[i];
        *x /= norm;
        problem->further[0].slack[i] =
            4 * F32_ROUNDOFF * magnitude / norm + ((double)count / 32 + 24) * F32_ROUNDOFF * fabs(*x) + F32_TINY;
    }
}

/* What is multiplied has been rounded, and its errors are added up once more. */
void reference_newton_schulz_step(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'M'), columns = problem_dimension(problem, 'N'), square = rows * rows;
    const double *x = problem->input[0];
    double *a = malloc(sizeof *a * (size_t)(4 * square + 1)), *b = a + square, *off = b + square, *wrong = off + square;
    if (!a) abort();
    for (int64_t i = 0; i < square; i++) {
        double magnitude = 0;
        a[i] = 0;
        for (int64_t k = 0; k < columns; k++) {
            double term = x[i / rows * columns + k] * x[i % rows * columns + k];
            a[i] += term;
            magnitude += fabs(term);
        }
        off[i] = reference_serial_slack(columns, magnitude);
    }
    for (int64_t i = 0; i < square; i++) {
        double sum = 0, magnitude = 0, carried = 0;
        for (int64_t k = 0; k < rows; k++) {
            int64_t left = i / rows * rows + k, right = k * rows + i % rows;
            sum += a[left] * a[right];
            magnitude += fabs(a[left] * a[right]);
            carried += off[left] * (fabs(a[right]) + off[right]) + fabs(a[left]) * off[right];
        }
        b[i] = 2.0315 * sum - 4.775 * a[i];
        wrong[i] = 2.04 * (reference_serial_slack(rows, magnitude) + carried) + 4.78 * off[i] +
                   4 * F32_ROUNDOFF * (fabs(2.0315 * sum) + fabs(4.775 * a[i])) + F32_TINY;
    }
    for (int64_t i = 0; i < rows * columns; i++) {
        double sum = 0, magnitude = 0, carried = 0;
        for (int64_t k = 0; k < rows; k++) {
            int64_t left = i / columns * rows + k, right = k * columns + i % columns;
            sum += b[left] * x[right];
            magnitude += fabs(b[left] * x[right]);
            carried += wrong[left] * fabs(x[right]);
        }
        problem->expected[i] = sum + 3.4445 * x[i];
        problem->slack[i] = reference_serial_slack(rows, magnitude) + carried +
                            4 * F32_ROUNDOFF * (fabs(sum) + fabs(3.4445 * x[i])) + F32_TINY;
    }
    free(a);
}

void reference_muon_update(const Problem *problem) {
    int64_t count = problem_dimension(problem, 'M') * problem_dimension(problem, 'N');
    double rate = (float)problem->scalar[0], decay = (float)problem->scalar[1];
    for (int64_t i = 0; i < count; i++) {
        double p = problem->input[0][i], x = problem->input[1][i], moved = rate * (x + decay * p);
        problem->expected[i] = p - moved;
        problem->slack[i] = 4 * F32_ROUNDOFF * (fabs(p) + rate * (fabs(x) + fabs(decay * p))) + F32_TINY;
    }
}

/* ---- the delta rule ---- */

/* One head and one column of the state, whose numbers have the errors beside them. */
static void run_delta(const Problem *problem, int64_t batch, int64_t head, int64_t column, double *state,
                      double *error) {
    int64_t length = problem_dimension(problem, 'L'), heads = problem_dimension(problem, 'H');
    int64_t keys = problem_dimension(problem, 'K'), values = problem_dimension(problem, 'V');
    double scale = (float)problem->scalar[0], terms = (double)keys + 8;
    for (int64_t k = 0; k < keys; k++) state[k] = error[k] = 0;
    for (int64_t t = 0; t < length; t++) {
        int64_t at = (batch * length + t) * heads + head;
        const double *q = problem->input[0] + at * keys, *key = problem->input[1] + at * keys;
        double v = problem->input[2][at * values + column], decay = exp(problem->input[3][at]),
               beta = problem->input[4][at];
        double told = 0, magnitude = fabs(v), off = 0, sum = 0, wrong = 0;
        for (int64_t k = 0; k < keys; k++) {
            state[k] *= decay;
            error[k] = decay * error[k] + (8 + fabs(problem->input[3][at])) * F32_ROUNDOFF * fabs(state[k]) + F32_TINY;
            told += key[k] * state[k];
            magnitude += fabs(key[k] * state[k]);
            off += fabs(key[k]) * error[k];
        }
        double lacks = (v - told) * beta, doubt = fabs(beta) * (off + terms * F32_ROUNDOFF * magnitude) + F32_TINY;
        for (int64_t k = 0; k < keys; k++) {
            state[k] += key[k] * lacks;
            error[k] += fabs(key[k]) * doubt + 2 * F32_ROUNDOFF * (fabs(state[k]) + fabs(key[k] * lacks)) + F32_TINY;
            sum += q[k] * state[k];
            wrong += fabs(q[k]) * (error[k] + terms * F32_ROUNDOFF * fabs(state[k]));
        }
        problem->expected[at * values + column] = scale * sum;
        problem->slack[at * values + column] =
            2 * fabs(scale) * wrong + 2 * F32_ROUNDOFF * fabs(scale * sum) + F32_TINY;
    }
}

void reference_gated_delta_rule(const Problem *problem) {
    int64_t heads = problem_dimension(problem, 'H'), values = problem_dimension(problem, 'V');
    int64_t keys = problem_dimension(problem, 'K'), lines = problem_dimension(problem, 'B') * heads * values;
    double *state = malloc(sizeof *state * (size_t)(2 * keys + 1));
    if (!state) abort();
    for (int64_t i = 0; i < lines; i++)
        run_delta(problem, i / values / heads, i / values % heads, i % values, state, state + keys);
    free(state);
}

/* ---- Fourier transforms ---- */

/* Element n is at [n / B, n % B], and number k of the result at [k / A, k % A]: both are n and k. */
void reference_fft_long(const Problem *problem) {
    int64_t count = problem_dimension(problem, 'A') * problem_dimension(problem, 'B');
    const double turn = -8 * atan(1);
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * count; i++) {
        const double *re = problem->input[0] + i / count * count, *im = problem->input[1] + i / count * count;
        double u = 0, v = 0, magnitude = 0;
        for (int64_t n = 0; n < count; n++) {
            double angle = turn * (double)(n * (i % count) % count) / (double)count;
            u += re[n] * cos(angle) - im[n] * sin(angle);
            v += re[n] * sin(angle) + im[n] * cos(angle);
            magnitude += fabs(re[n]) + fabs(im[n]);
        }
        problem->expected[i] = u;
        problem->further[0].expected[i] = v;
        problem->slack[i] = problem->further[0].slack[i] =
            24 * F32_ROUNDOFF * (log2((double)count) + 2) * magnitude + F32_TINY;
    }
}

/* ---- weights of 4 bits ---- */

static int nibble(double word, int64_t place) { return (int)((uint32_t)(int32_t)word >> 4 * place & 15); }

/* One element of the product: `weight` gives the number and its scale; what is multiplied is rounded to the kernel's
 * type. */
static void multiply_packed(const Problem *problem, bool rows_packed) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    int64_t words = problem_dimension(problem, 'Z'), group = problem_dimension(problem, 'G');
    double step = problem->type == TYPE_F32 ? F32_ROUNDOFF : problem->type == TYPE_F16 ? 0x1p-11 : 0x1p-8;
    const double *q = problem->input[1], *zeros = problem->input[2], *scales = problem->input[3];
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        int64_t n = i % columns, place = rows_packed ? n % 8 : n % 8 / 2 + n % 2 * 4;
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < depth; k++) {
            int number = rows_packed ? nibble(q[k / 8 * columns + n], k % 8) : nibble(q[k * words + n / 8], place);
            int zero = nibble(zeros[k / group * words + n / 8], place) + rows_packed;
            double term =
                problem->input[0][i / columns * depth + k] * (number - zero) * scales[k / group * columns + n];
            sum += term;
            magnitude += fabs(term);
        }
        problem->expected[i] = sum;
        problem->slack[i] =
            reference_serial_slack(depth, magnitude) + 2 * step * magnitude + F32_TINY * (double)(depth + 1);
    }
}

void reference_matmul_gptq(const Problem *problem) { multiply_packed(problem, true); }
void reference_matmul_awq(const Problem *problem) { multiply_packed(problem, false); }

static void unpack_weights(const Problem *problem, bool rows_packed) {
    int64_t columns = problem_dimension(problem, 'N'), words = problem_dimension(problem, 'Z'), group = problem_dimension(problem, 'G');
    const double *q = problem->input[0], *zeros = problem->input[1], *scales = problem->input[2];
    for (int64_t i = 0; i < problem_dimension(problem, 'K') * columns; i++) {
        int64_t k = i / columns, n = i % columns, place = rows_packed ? n % 8 : n % 8 / 2 + n % 2 * 4;
        int number = rows_packed ? nibble(q[k / 8 * columns + n], k % 8) : nibble(q[k * words + n / 8], place);
        int zero = nibble(zeros[k / group * words + n / 8], place) + rows_packed;
        problem->expected[i] = (number - zero) * scales[k / group * columns + n];
        problem->slack[i] = F32_ROUNDOFF * fabs(problem->expected[i]) + F32_TINY;
    }
}

void reference_dequantise_gptq(const Problem *problem) { unpack_weights(problem, true); }
void reference_dequantise_awq(const Problem *problem) { unpack_weights(problem, false); }

/* ---- rows of groups ---- */

void reference_matmul_grouped(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), depth = problem_dimension(problem, 'K');
    const double *begins = problem->input[2];
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * columns; i++) {
        int64_t row = i / columns, group = 0;
        while ((double)row >= begins[group + 1]) group++;
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < depth; k++) {
            double term =
                problem->input[0][row * depth + k] * problem->input[1][(group * depth + k) * columns + i % columns];
            sum += term;
            magnitude += fabs(term);
        }
        problem->expected[i] = sum;
        problem->slack[i] = reference_serial_slack(depth, magnitude);
    }
}
