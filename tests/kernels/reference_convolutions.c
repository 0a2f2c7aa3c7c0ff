/* The kernels of tests/programs/convolutions.tile. */
#include <math.h>

#include "reference.h"

/* Adds a product to element i; what was added before is in the slack until `finish`. */
static void add(const Problem *problem, int64_t i, double x, double w) {
    problem->expected[i] += x * w;
    problem->slack[i] += fabs(x * w);
}

static void finish(const Problem *problem, int64_t count, int64_t terms) {
    for (int64_t i = 0; i < count; i++) problem->slack[i] = reference_serial_slack(terms, problem->slack[i]);
}

static bool is_inside(int64_t index, int64_t extent) { return index >= 0 && index < extent; }

void reference_conv2d_nchw(const Problem *problem) {
    int64_t channels = problem_dimension(problem, 'C'), rows = problem_dimension(problem, 'H');
    int64_t columns = problem_dimension(problem, 'W'), outputs = problem_dimension(problem, 'O');
    int64_t r = problem_dimension(problem, 'R'), s = problem_dimension(problem, 'S');
    int64_t count = problem_dimension(problem, 'B') * outputs * rows * columns, window = channels * r * s;
    for (int64_t n = 0; n < count * window; n++) {
        int64_t at = n / window, w = at % columns, h = at / columns % rows, o = at / columns / rows % outputs;
        int64_t j = n % s, i = n / s % r, c = n % window / s / r, row = h + i - r / 2, column = w + j - s / 2;
        double x = 0;
        if (is_inside(row, rows) && is_inside(column, columns))
            x = problem->input[0][((at / columns / rows / outputs * channels + c) * rows + row) * columns + column];
        add(problem, at, x, problem->input[1][((o * channels + c) * r + i) * s + j]);
    }
    finish(problem, count, window);
}

void reference_conv2d_grouped(const Problem *problem) {
    int64_t groups = problem_dimension(problem, 'G'), depth = problem_dimension(problem, 'D');
    int64_t rows = problem_dimension(problem, 'H'), columns = problem_dimension(problem, 'W');
    int64_t outputs = problem_dimension(problem, 'O'), r = problem_dimension(problem, 'R'), s = problem_dimension(problem, 'S');
    int64_t count = problem_dimension(problem, 'B') * rows * columns * groups * outputs, window = r * s * depth;
    for (int64_t n = 0; n < count * window; n++) {
        int64_t at = n / window, o = at % outputs, g = at / outputs % groups, w = at / outputs / groups % columns;
        int64_t h = at / outputs / groups / columns % rows, b = at / outputs / groups / columns / rows;
        int64_t d = n % depth, j = n / depth % s, i = n % window / depth / s, row = h + i - r / 2, column = w + j - s / 2;
        double x = 0;
        if (is_inside(row, rows) && is_inside(column, columns))
            x = problem->input[0][(((b * rows + row) * columns + column) * groups + g) * depth + d];
        add(problem, at, x, problem->input[1][(((g * r + i) * s + j) * depth + d) * outputs + o]);
    }
    finish(problem, count, window);
}

void reference_conv2d_transposed(const Problem *problem) {
    int64_t channels = problem_dimension(problem, 'C'), rows = problem_dimension(problem, 'H');
    int64_t columns = problem_dimension(problem, 'W'), outputs = problem_dimension(problem, 'O');
    int64_t r = problem_dimension(problem, 'R'), s = problem_dimension(problem, 'S');
    int64_t height = problem_dimension(problem, 'P'), width = problem_dimension(problem, 'Q');
    int64_t count = problem_dimension(problem, 'B') * height * width * outputs, window = r * s * channels;
    for (int64_t n = 0; n < count * window; n++) {
        int64_t at = n / window, o = at % outputs, q = at / outputs % width, p = at / outputs / width % height;
        int64_t c = n % channels, j = n / channels % s, i = n % window / channels / s, row = p + 1 - i, column = q + 1 - j;
        double x = 0;
        if (row % 2 == 0 && column % 2 == 0 && is_inside(row / 2, rows) && is_inside(column / 2, columns))
            x = problem->input[0][((at / outputs / width / height * rows + row / 2) * columns + column / 2) * channels + c];
        add(problem, at, x, problem->input[1][((i * s + j) * channels + c) * outputs + o]);
    }
    finish(problem, count, window);
}
