/* The kernels of tests/programs/convolutions.tile, and the gradients of conv2d. */
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

/* ---- gradients ---- */

/* The position of y at which element i of a window meets row (or column) h of x; false: it is between two positions. No
 * overflow, however large the padding: such a position is outside of y. */
static bool position_of(const Problem *problem, int64_t h, int64_t i, int64_t *position) {
    int64_t ahead = h - i * problem_dimension(problem, 'Y') + problem_dimension(problem, 'Z');
    int64_t stride = problem_dimension(problem, 'X');
    *position = ahead / stride;
    return ahead % stride == 0;
}

/* Around dy there are zeros. */
void reference_conv2d_input_gradient(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'H'), columns = problem_dimension(problem, 'W');
    int64_t channels = problem_dimension(problem, 'C'), outputs = problem_dimension(problem, 'O');
    int64_t r = problem_dimension(problem, 'R'), s = problem_dimension(problem, 'S');
    int64_t height = problem_dimension(problem, 'P'), width = problem_dimension(problem, 'Q');
    int64_t count = problem_dimension(problem, 'B') * rows * columns * channels, window = r * s * outputs, p, q;
    for (int64_t n = 0; n < count * window; n++) {
        int64_t at = n / window, c = at % channels, w = at / channels % columns, h = at / channels / columns % rows;
        int64_t o = n % outputs, j = n / outputs % s, i = n % window / outputs / s;
        if (!position_of(problem, h, i, &p) || !position_of(problem, w, j, &q)) continue;
        double dy = 0;
        if (is_inside(p, height) && is_inside(q, width))
            dy = problem->input[0][((at / channels / columns / rows * height + p) * width + q) * outputs + o];
        add(problem, at, dy, problem->input[1][((i * s + j) * channels + c) * outputs + o]);
    }
    finish(problem, count, window);
}

/* Around x there are zeros. */
void reference_conv2d_weight_gradient(const Problem *problem) {
    int64_t rows = problem_dimension(problem, 'H'), columns = problem_dimension(problem, 'W');
    int64_t channels = problem_dimension(problem, 'C'), outputs = problem_dimension(problem, 'O');
    int64_t s = problem_dimension(problem, 'S'), stride = problem_dimension(problem, 'X');
    int64_t height = problem_dimension(problem, 'P'), width = problem_dimension(problem, 'Q');
    int64_t count = problem_dimension(problem, 'R') * s * channels * outputs;
    int64_t positions = problem_dimension(problem, 'B') * height * width;
    for (int64_t n = 0; n < count * positions; n++) {
        int64_t at = n / positions, o = at % outputs, c = at / outputs % channels, j = at / outputs / channels % s;
        int64_t i = at / outputs / channels / s, q = n % width, p = n / width % height, b = n % positions / width / height;
        int64_t h = p * stride + (i * problem_dimension(problem, 'Y') - problem_dimension(problem, 'Z'));
        int64_t w = q * stride + (j * problem_dimension(problem, 'Y') - problem_dimension(problem, 'Z'));
        double x = 0;
        if (is_inside(h, rows) && is_inside(w, columns))
            x = problem->input[0][((b * rows + h) * columns + w) * channels + c];
        add(problem, at, x, problem->input[1][((b * height + p) * width + q) * outputs + o]);
    }
    finish(problem, count, positions);
}
