/* Convolutions and pooling of channels-last tensors: position p of y reads the elements p * stride + i * dilation - pad
 * of x. One-dimensional ones have height 1 for rows, windows and results, without padding. */
#include <math.h>

#include "reference.h"

typedef struct Window {
    int64_t height, width, channels; /* of x */
    int64_t window_rows, window_columns, outputs;
    int64_t rows, columns; /* of y */
    int64_t stride, dilation, pad, pad_rows;
    bool depthwise;
    const double *x, *weight; /* x: of the current image */
} Window;

typedef struct Sum {
    double value, magnitude, greatest;
    int64_t count; /* of elements in bounds of x */
} Sum;

/* The element of x at (i, j) of the window at (p, q), or -1 if it is out of bounds. No overflow, however large the
 * padding. */
static int64_t element(const Window *w, int64_t p, int64_t q, int64_t i, int64_t j) {
    double row = (double)(p * w->stride + i * w->dilation) - (double)w->pad_rows;
    double column = (double)(q * w->stride + j * w->dilation) - (double)w->pad;
    if (row < 0 || row >= (double)w->height || column < 0 || column >= (double)w->width) return -1;
    return ((int64_t)row * w->width + (int64_t)column) * w->channels;
}

static void add_element(const Window *w, Sum *sum, int64_t at, int64_t tap, int64_t output) {
    int64_t first = w->depthwise ? output : 0, end = w->depthwise ? output + 1 : w->channels;
    for (int64_t c = first; c < end; c++) {
        double weight = 1;
        if (w->weight)
            weight = w->weight[w->depthwise ? tap * w->channels + c : (tap * w->channels + c) * w->outputs + output];
        double x = at < 0 ? 0 : w->x[at + c], term = x * weight;
        sum->value += term;
        sum->magnitude += fabs(term);
        if (at >= 0 && !isnan(sum->greatest) && (isnan(x) || x > sum->greatest)) sum->greatest = x;
    }
    sum->count += at >= 0;
}

static Sum look(const Window *w, int64_t p, int64_t q, int64_t output) {
    Sum sum = {.greatest = -INFINITY};
    for (int64_t i = 0; i < w->window_rows; i++)
        for (int64_t j = 0; j < w->window_columns; j++)
            add_element(w, &sum, element(w, p, q, i, j), i * w->window_columns + j, output);
    return sum;
}

/* Y: dilation, Z: padding, X: stride. */
static Window window_of(const Problem *problem, bool two_dimensions) {
    Window w = {
        .height = two_dimensions ? problem_dimension(problem, 'H') : 1,
        .width = problem_dimension(problem, 'W'),
        .channels = problem_dimension(problem, 'C'),
        .window_rows = two_dimensions ? problem_dimension(problem, 'R') : 1,
        .window_columns = problem_dimension(problem, 'S'),
        .outputs = problem_dimension(problem, 'O'),
        .rows = two_dimensions ? problem_dimension(problem, 'P') : 1,
        .columns = problem_dimension(problem, 'Q'),
        .stride = problem_dimension(problem, 'X'),
        .dilation = problem_dimension(problem, 'Y'),
        .pad = problem_dimension(problem, 'Z'),
    };
    w.pad_rows = two_dimensions ? w.pad : 0;
    return w;
}

static Window pool_of(const Problem *problem) {
    Window w = window_of(problem, true);
    w.window_rows = w.window_columns = problem_dimension(problem, 'R');
    w.dilation = 1;
    w.outputs = w.channels;
    w.depthwise = true;
    return w;
}

/* Computes every element of y; `judge` sets what is expected. */
static void slide(const Problem *problem, Window *w, void (*judge)(const Problem *, const Window *, Sum, int64_t)) {
    int64_t batches = problem_dimension(problem, 'B'), index = 0;
    for (int64_t b = 0; b < batches; b++) {
        w->x = problem->input[0] + b * w->height * w->width * w->channels;
        for (int64_t position = 0; position < w->rows * w->columns; position++)
            for (int64_t output = 0; output < w->outputs; output++)
                judge(problem, w, look(w, position / w->columns, position % w->columns, output), index++);
    }
}

static void judge_convolution(const Problem *problem, const Window *w, Sum sum, int64_t index) {
    int64_t terms = w->window_rows * w->window_columns * (w->depthwise ? 1 : w->channels);
    double value = sum.value + problem->input[2][index % w->outputs];
    problem->expected[index] = value;
    problem->slack[index] = reference_serial_slack(terms, sum.magnitude) + 2 * F32_ROUNDOFF * fabs(value) + F32_TINY;
}

static void convolution(const Problem *problem, bool two_dimensions, bool depthwise) {
    Window w = window_of(problem, two_dimensions);
    w.weight = problem->input[1];
    w.depthwise = depthwise;
    if (depthwise) w.outputs = w.channels;
    slide(problem, &w, judge_convolution);
}

void reference_conv1d(const Problem *problem) { convolution(problem, false, false); }
void reference_conv1d_depthwise(const Problem *problem) { convolution(problem, false, true); }
void reference_conv2d(const Problem *problem) { convolution(problem, true, false); }
void reference_conv2d_depthwise(const Problem *problem) { convolution(problem, true, true); }

static void judge_greatest(const Problem *problem, const Window *w, Sum sum, int64_t index) {
    (void)w;
    problem->expected[index] = sum.greatest;
}

static void judge_average(const Problem *problem, const Window *w, Sum sum, int64_t index) {
    bool count_outside = problem->scalar[3] != 0;
    double count = (double)(count_outside ? w->window_rows * w->window_columns : sum.count);
    problem->expected[index] = sum.value / count;
    problem->slack[index] =
        (reference_serial_slack(w->window_rows * w->window_columns, sum.magnitude) + F32_TINY) / fmax(count, 1) +
        F32_ROUNDOFF * fabs(sum.value / count) + F32_TINY;
}

void reference_max_pool2d(const Problem *problem) {
    Window w = pool_of(problem);
    slide(problem, &w, judge_greatest);
}

void reference_avg_pool2d(const Problem *problem) {
    Window w = pool_of(problem);
    slide(problem, &w, judge_average);
}
