/* Kernels of the standard library: sorts, draws, routing, losses of distributions, scans of state spaces, points of images,
 * Fourier transforms, groups of few bits. */
#include <math.h>
#include <stdlib.h>

#include "reference.h"

/* ---- sorts ---- */

typedef struct Element {
    double value;
    int64_t place;
} Element;

/* NaNs last, -0 before +0, equal ones by their places. */
static int ascending(const void *a, const void *b) {
    const Element *x = a, *y = b;
    int by_place = x->place < y->place ? -1 : 1;
    if (isnan(x->value) || isnan(y->value)) return isnan(x->value) && isnan(y->value) ? by_place : isnan(x->value) ? 1 : -1;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    if (!signbit(x->value) != !signbit(y->value)) return signbit(x->value) ? -1 : 1;
    return by_place;
}

/* Of numbers; +0 is before -0. */
static int descending(const void *a, const void *b) {
    const Element *x = a, *y = b;
    if (x->value != y->value) return x->value > y->value ? -1 : 1;
    if (!signbit(x->value) != !signbit(y->value)) return signbit(x->value) ? 1 : -1;
    return x->place < y->place ? -1 : 1;
}

/* A row's elements in order; to be freed. */
static Element *sorted_row(const double *x, int64_t count, int (*order)(const void *, const void *)) {
    Element *row = malloc(sizeof *row * (size_t)(count ? count : 1));
    if (!row) abort();
    for (int64_t n = 0; n < count; n++) row[n] = (Element){x[n], n};
    qsort(row, (size_t)count, sizeof *row, order);
    return row;
}

void reference_sort_whole_rows(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        Element *row = sorted_row(problem->input[0] + m * columns, columns, ascending);
        for (int64_t n = 0; n < columns; n++) problem->expected[m * columns + n] = row[n].value;
        free(row);
    }
}

void reference_argsort_rows(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        Element *row = sorted_row(problem->input[0] + m * columns, columns, ascending);
        for (int64_t n = 0; n < columns; n++) problem->expected[m * columns + n] = (double)row[n].place;
        free(row);
    }
}

void reference_topk_rows(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), kept = problem_dimension(problem, 'K');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        Element *row = sorted_row(problem->input[0] + m * columns, columns, descending);
        for (int64_t k = 0; k < kept; k++) {
            problem->expected[m * kept + k] = k < columns ? row[k].value : (double)-INFINITY;
            problem->further[0].expected[m * kept + k] = k < columns ? (double)row[k].place : -1;
        }
        free(row);
    }
}

/* The elements in order, and what moves with them. */
void reference_sort_pairs(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        Element *row = sorted_row(problem->input[0] + m * columns, columns, ascending);
        for (int64_t n = 0; n < columns; n++) {
            problem->expected[m * columns + n] = row[n].value;
            problem->further[0].expected[m * columns + n] = problem->input[1][m * columns + row[n].place];
        }
        free(row);
    }
}

/* ---- draws ---- */

/* Philox4x32-10 (Salmon et al., 2011): word index mod 4 of block index / 4, as a number in [0, 1). */
static double philox(uint64_t seed, uint64_t index) {
    uint32_t c[4] = {(uint32_t)(index / 4), (uint32_t)(index / 4 >> 32), 0, 0};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)c[0] * 0xd2511f53u, b = (uint64_t)c[2] * 0xcd9e8d57u;
        c[0] = (uint32_t)(b >> 32) ^ c[1] ^ key[0];
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c[3] ^ key[1];
        c[3] = (uint32_t)a;
        key[0] += 0x9e3779b9u;
        key[1] += 0xbb67ae85u;
    }
    return (double)(c[index % 4] >> 8) * 0x1p-24;
}

enum { DRAWN_FROM = 8 };

/* Of the DRAWN_FROM greatest. Where a sum is as near to its bound as rounding is large, any token is right. */
void reference_sample_rows(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'V');
    double temperature = (float)problem->scalar[0], most = (float)problem->scalar[1];
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        Element *row = sorted_row(problem->input[0] + m * columns, columns, descending);
        int64_t count = columns < DRAWN_FROM ? columns : DRAWN_FROM, kept = 0;
        double weight[DRAWN_FROM], total = 0, sum = 0, near = 1;
        for (int64_t k = 0; k < count; k++) total += weight[k] = exp((row[k].value - row[0].value) / temperature);
        while (kept < count && (kept == 0 || sum < most * total)) {
            if (kept) near = fmin(near, fabs(sum - most * total) / total);
            sum += weight[kept++];
        }
        if (kept < count) near = fmin(near, fabs(sum - most * total) / total);
        double goal = philox((uint64_t)problem->scalar[2], (uint64_t)problem->scalar[3] + (uint64_t)m) * sum, before = 0;
        int64_t chosen = 0;
        for (int64_t k = 0; k < kept; k++) {
            if (before <= goal) chosen = k;
            if (k) near = fmin(near, fabs(before - goal) / total);
            before += weight[k];
        }
        problem->expected[m] = (double)row[chosen].place;
        problem->slack[m] = near < 1e-5 ? -1 : 0;
        free(row);
    }
}

/* Of all whose sum of probabilities before them is below the bound, and their equals; in the order of the row. */
void reference_sample_long(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'V');
    double temperature = (float)problem->scalar[0], most = (float)problem->scalar[1];
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        Element *row = sorted_row(x, columns, descending);
        double total = 0, sum = 0, near = 1, least = row[0].value, kept = 0, before = 0;
        for (int64_t n = 0; n < columns; n++) total += exp((row[n].value - row[0].value) / temperature);
        for (int64_t n = 0; n < columns && (n == 0 || sum < most * total); n++) {
            least = row[n].value;
            sum += exp((row[n].value - row[0].value) / temperature);
            near = fmin(near, fabs(sum - most * total) / total);
        }
        for (int64_t n = 0; n < columns; n++) kept += x[n] >= least ? exp((x[n] - row[0].value) / temperature) : 0;
        double goal = philox((uint64_t)problem->scalar[2], (uint64_t)problem->scalar[3] + (uint64_t)m) * kept;
        for (int64_t n = 0; n < columns; n++) {
            if (x[n] < least) continue;
            if (before <= goal) problem->expected[m] = (double)n;
            if (before > 0) near = fmin(near, fabs(before - goal) / total);
            before += exp((x[n] - row[0].value) / temperature);
        }
        problem->slack[m] = near < 1e-5 ? -1 : 0;
        free(row);
    }
}

void reference_multinomial(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N'), draws = problem_dimension(problem, 'K');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * draws; i++) {
        const double *w = problem->input[0] + i / draws * columns;
        double total = 0, before = 0, near = 1;
        for (int64_t n = 0; n < columns; n++) total += fmax(w[n], 0);
        double goal = philox((uint64_t)problem->scalar[0], (uint64_t)problem->scalar[1] + (uint64_t)i) * total;
        problem->expected[i] = -1;
        for (int64_t n = 0; n < columns; n++) {
            if (!(w[n] > 0)) continue;
            if (before <= goal) problem->expected[i] = (double)n;
            if (before > 0) near = fmin(near, fabs(before - goal) / total);
            before += w[n];
        }
        problem->slack[i] = near < 1e-5 ? -1 : 0;
    }
}

/* ---- routing ---- */

void reference_route(const Problem *problem) {
    int64_t experts = problem_dimension(problem, 'E'), chosen = problem_dimension(problem, 'K');
    for (int64_t e = 0; e < experts; e++) problem->further[2].expected[e] = 0;
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        Element *row = sorted_row(problem->input[0] + m * experts, experts, descending);
        double total = 0;
        for (int64_t k = 0; k < chosen; k++) total += exp(row[k].value - row[0].value);
        for (int64_t k = 0; k < chosen; k++) {
            double weight = exp(row[k].value - row[0].value) / total, gap = row[0].value - row[k].value;
            problem->expected[m * chosen + k] = weight;
            problem->slack[m * chosen + k] = (32 + 2 * gap) * F32_ROUNDOFF * weight + F32_TINY;
            problem->further[0].expected[m * chosen + k] = (double)row[k].place;
            problem->further[1].expected[m * chosen + k] = problem->further[2].expected[row[k].place]++;
        }
        free(row);
    }
}

/* ---- losses ---- */

void reference_jsd(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'N');
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        double total = 0, weights = 0;
        for (int64_t i = m * columns; i < (m + 1) * columns; i++) {
            double a = problem->input[0][i], b = problem->input[1][i], p = exp(a), q = exp(b), both = log(0.5 * (p + q));
            total += (p > 0 ? p * (a - both) : 0) + (q > 0 ? q * (b - both) : 0);
            weights += p * (fabs(a) + fabs(both) + 1) + q * (fabs(b) + fabs(both) + 1);
        }
        problem->expected[m] = 0.5 * total;
        problem->slack[m] = reference_lanes_slack(columns + 128, weights);
    }
}

void reference_focal(const Problem *problem) {
    int64_t columns = problem_dimension(problem, 'V');
    double gamma = (float)problem->scalar[0];
    for (int64_t m = 0; m < problem_dimension(problem, 'M'); m++) {
        const double *x = problem->input[0] + m * columns;
        double target = problem->input[1][m], top = -INFINITY, total = 0;
        problem->expected[m] = 0;
        if (!(target >= 0 && target < (double)columns)) continue;
        for (int64_t v = 0; v < columns; v++) top = fmax(top, x[v]);
        for (int64_t v = 0; v < columns; v++) total += exp(x[v] - top);
        double score = x[(int64_t)target] - top - log(total), rest = -expm1(score);
        double error = F32_ROUNDOFF * ((double)columns / 8 + 40 + 4 * fabs(score) + 2 * fabs(top) + fabs(x[(int64_t)target]));
        problem->expected[m] = -pow(rest, gamma) * score;
        problem->slack[m] = error * (pow(rest, gamma) + gamma * pow(rest + error, gamma - 1) * (fabs(score) + error)) +
                            16 * F32_ROUNDOFF * (gamma + 1) * fabs(problem->expected[m]) + F32_TINY;
    }
}

/* ---- scans ---- */

void reference_selective_scan(const Problem *problem) {
    int64_t length = problem_dimension(problem, 'L'), channels = problem_dimension(problem, 'D');
    int64_t states = problem_dimension(problem, 'N'), lines = problem_dimension(problem, 'B') * channels;
    const double *x = problem->input[0], *dt = problem->input[1], *a = problem->input[2], *b = problem->input[3],
                 *c = problem->input[4], *own = problem->input[5];
    for (int64_t i = 0; i < lines * length; i++) problem->expected[i] = problem->slack[i] = 0;
    for (int64_t line = 0; line < lines; line++)
        for (int64_t n = 0; n < states; n++) {
            int64_t batch = line / channels, d = line % channels;
            double h = 0, error = 0;
            for (int64_t l = 0; l < length; l++) {
                int64_t at = (batch * length + l) * channels + d, state = (batch * length + l) * states + n;
                double rate = dt[at] * a[d * states + n], decay = exp(rate), more = dt[at] * x[at] * b[state];
                error = decay * error + F32_ROUNDOFF * ((8 + fabs(rate)) * fabs(decay * h) + 4 * fabs(more)) + F32_TINY;
                h = decay * h + more;
                double direct = n ? 0 : own[d] * x[at];
                problem->expected[at] += c[state] * h + direct;
                problem->slack[at] += fabs(c[state]) * error +
                                      F32_ROUNDOFF * ((double)states + 4) * (fabs(c[state] * h) + fabs(direct)) + F32_TINY;
            }
        }
}

/* ---- points of images ---- */

static double pixel(const Problem *problem, int64_t batch, double row, double column, int64_t channel) {
    int64_t height = problem_dimension(problem, 'H'), width = problem_dimension(problem, 'W');
    if (!(row >= 0 && row < (double)height && column >= 0 && column < (double)width)) return 0;
    int64_t at = (batch * height + (int64_t)row) * width + (int64_t)column;
    return problem->input[0][at * problem_dimension(problem, 'C') + channel];
}

/* Interpolation is continuous, so a rounded coordinate changes the result by no more than pixels around it differ. */
void reference_grid_sample(const Problem *problem) {
    int64_t channels = problem_dimension(problem, 'C'), points = problem_dimension(problem, 'P');
    double width = (double)problem_dimension(problem, 'W'), height = (double)problem_dimension(problem, 'H');
    for (int64_t i = 0; i < problem_dimension(problem, 'B') * points * channels; i++) {
        const double *at = problem->input[1] + i / channels * 2;
        double h = ((at[0] + 1) * width - 1) / 2, v = ((at[1] + 1) * height - 1) / 2, sum = 0, magnitude = 0, around = 0;
        double left = floor(h), top = floor(v), s = h - left, t = v - top;
        int64_t batch = i / channels / points;
        for (int corner = 0; corner < 4; corner++) {
            int right = corner & 1, below = corner >> 1;
            double term = pixel(problem, batch, top + below, left + right, i % channels) * (right ? s : 1 - s) * (below ? t : 1 - t);
            sum += term;
            magnitude += fabs(term);
        }
        for (int k = 0; k < 16; k++) around += fabs(pixel(problem, batch, top - 1 + k / 4, left - 1 + k % 4, i % channels));
        double moved = 4 * F32_ROUNDOFF * ((fabs(at[0]) + 1) * width + (fabs(at[1]) + 1) * height + 2);
        problem->expected[i] = sum;
        problem->slack[i] = 8 * F32_ROUNDOFF * magnitude + moved * around + 4 * F32_TINY;
    }
}

/* Beyond the border are the outermost pixels. */
static double nearest_pixel(const Problem *problem, int64_t batch, double row, double column, int64_t channel) {
    double last_row = (double)problem_dimension(problem, 'H') - 1, last = (double)problem_dimension(problem, 'W') - 1;
    return pixel(problem, batch, fmin(fmax(row, 0), last_row), fmin(fmax(column, 0), last), channel);
}

/* The middle of pixel i of `to`, in pixels of `from`. */
static double middle_of(int64_t i, int64_t to, int64_t from) {
    return fmax(((double)i + 0.5) * (double)from / (double)to - 0.5, 0);
}

void reference_resize(const Problem *problem) {
    int64_t channels = problem_dimension(problem, 'C'), width = problem_dimension(problem, 'Q'), height = problem_dimension(problem, 'P');
    int64_t from_width = problem_dimension(problem, 'W'), from_height = problem_dimension(problem, 'H');
    for (int64_t i = 0; i < problem_dimension(problem, 'B') * height * width * channels; i++) {
        int64_t batch = i / channels / width / height, channel = i % channels;
        double v = middle_of(i / channels / width % height, height, from_height), h = middle_of(i / channels % width, width, from_width);
        double top = floor(v), left = floor(h), sum = 0, magnitude = 0, around = 0;
        for (int corner = 0; corner < 4; corner++) {
            int right = corner & 1, below = corner >> 1;
            double part = (right ? h - left : 1 - h + left) * (below ? v - top : 1 - v + top);
            double term = nearest_pixel(problem, batch, top + below, left + right, channel) * part;
            sum += term;
            magnitude += fabs(term);
        }
        for (int k = 0; k < 16; k++)
            around += fabs(nearest_pixel(problem, batch, top - 1 + k / 4, left - 1 + k % 4, channel));
        double moved = 4 * F32_ROUNDOFF * (double)(from_width + from_height + 2);
        problem->expected[i] = sum;
        problem->slack[i] = 8 * F32_ROUNDOFF * magnitude + moved * around + 4 * F32_TINY;
    }
}

/* ---- Fourier transforms ---- */

void reference_fft_rows(const Problem *problem) {
    int64_t count = problem_dimension(problem, 'N');
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
        problem->slack[i] = problem->further[0].slack[i] = 24 * F32_ROUNDOFF * log2((double)count) * magnitude + F32_TINY;
    }
}

/* ---- numbers of few bits ---- */

void reference_quantise_groups(const Problem *problem) {
    int64_t width = problem_dimension(problem, 'G');
    for (int64_t g = 0; g < problem_dimension(problem, 'M') * problem_dimension(problem, 'P'); g++) {
        const double *x = problem->input[0] + g * width;
        double top = (float)1e-20;
        for (int64_t i = 0; i < width; i++) top = fmax(top, fabs(x[i]));
        problem->further[0].expected[g] = top / 127;
        problem->further[0].slack[g] = 2 * F32_ROUNDOFF * top / 127;
        for (int64_t i = 0; i < width; i++) {
            double q = x[i] / (top / 127), half = fabs(fabs(q - rint(q)) - 0.5);
            problem->expected[g * width + i] = fmin(fmax(rint(q), -127), 127);
            problem->slack[g * width + i] = half <= 8 * F32_ROUNDOFF * fabs(q) ? -1 : 0;
        }
    }
}

void reference_dequantise_groups(const Problem *problem) {
    int64_t width = problem_dimension(problem, 'G');
    for (int64_t i = 0; i < problem_dimension(problem, 'M') * problem_dimension(problem, 'P') * width; i++) {
        problem->expected[i] = problem->input[0][i] * problem->input[1][i / width];
        problem->slack[i] = F32_ROUNDOFF * fabs(problem->expected[i]) + F32_TINY;
    }
}

/* Blocks of R x C elements by their greatest magnitude; 8-bit floats have 3 bits behind the point. */
void reference_quantise_blocks(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'R'), width = problem_dimension(problem, 'C'), across = problem_dimension(problem, 'Q');
    for (int64_t block = 0; block < problem_dimension(problem, 'P') * across; block++) {
        double top = (float)1e-20;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = 0; i < rows * width; i++) {
                int64_t at = ((block / across * rows + i / width) * across + block % across) * width + i % width;
                double x = problem->input[0][at], scale = top / 448;
                if (pass == 0) top = fmax(top, fabs(x));
                if (pass == 0) continue;
                problem->expected[at] = fmin(fmax(x / scale, -448), 448);
                problem->slack[at] = 8 * F32_ROUNDOFF * fabs(x / scale);
            }
        problem->further[0].expected[block] = top / 448;
        problem->further[0].slack[block] = 2 * F32_ROUNDOFF * top / 448;
    }
}

void reference_dequantise_blocks(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'R'), width = problem_dimension(problem, 'C'), across = problem_dimension(problem, 'Q');
    for (int64_t i = 0; i < problem_dimension(problem, 'P') * rows * across * width; i++) {
        int64_t block = i / width % across + i / width / across / rows * across;
        problem->expected[i] = problem->input[0][i] * problem->input[1][block];
        problem->slack[i] = F32_ROUNDOFF * fabs(problem->expected[i]) + F32_TINY;
    }
}
