/* A program in C that has two kernels linked into it, and compares what they compute with plain loops in double
 * precision: contiguous rows, and rows that lie apart. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "network.h"

enum { BATCH = 33, INPUTS = 70, OUTPUTS = 45, GAP = 3 };

typedef struct Matrix {
    int64_t shape[2], strides[2];
    float *data;
    DLTensor tensor;
} Matrix;

static void make(Matrix *matrix, int64_t rows, int64_t columns, int64_t gap) {
    *matrix = (Matrix){.shape = {rows, columns}, .strides = {columns + gap, 1}};
    matrix->data = calloc((size_t)(rows * (columns + gap)), sizeof(float));
    if (!matrix->data) exit(2);
    for (int64_t i = 0; i < rows * (columns + gap); i++) matrix->data[i] = (float)(rand() % 2001 - 1000) / 1000;
    matrix->tensor = (DLTensor){matrix->data, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, matrix->shape, matrix->strides, 0};
}

static double at(const Matrix *matrix, int64_t row, int64_t column) {
    return (double)matrix->data[row * matrix->strides[0] + column];
}

static double layer_error(const Matrix *x, const Matrix *w, const float *b, const Matrix *y) {
    double worst = 0;
    for (int64_t m = 0; m < BATCH; m++)
        for (int64_t n = 0; n < OUTPUTS; n++) {
            double sum = b[n];
            for (int64_t k = 0; k < INPUTS; k++) sum += at(x, m, k) * at(w, k, n);
            worst = fmax(worst, fabs(at(y, m, n) - fmax(sum, 0)));
        }
    return worst;
}

static double softmax_error(const Matrix *s, const Matrix *p) {
    double worst = 0;
    for (int64_t m = 0; m < BATCH; m++) {
        double sum = 0;
        for (int64_t n = 0; n < OUTPUTS; n++) sum += exp(at(s, m, n));
        for (int64_t n = 0; n < OUTPUTS; n++) worst = fmax(worst, fabs(at(p, m, n) - exp(at(s, m, n)) / sum));
    }
    return worst;
}

/* Both kernels on matrices whose rows are `gap` elements longer than the matrix is wide. */
static tile_status run(const TileLaunchOptions *options, int64_t gap) {
    Matrix x, w, y, p;
    float bias[OUTPUTS];
    int64_t bias_shape[1] = {OUTPUTS};
    DLTensor b = {bias, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, bias_shape, NULL, 0};
    for (int i = 0; i < OUTPUTS; i++) bias[i] = (float)i / OUTPUTS - 0.5f;
    make(&x, BATCH, INPUTS, gap);
    make(&w, INPUTS, OUTPUTS, gap);
    make(&y, BATCH, OUTPUTS, gap);
    make(&p, BATCH, OUTPUTS, gap);
    tile_status status = layer(options, &x.tensor, &w.tensor, &b, &y.tensor);
    if (status == TILE_OK) status = softmax_f32(options, &y.tensor, &p.tensor);
    if (status == TILE_OK) {
        double layer_off = layer_error(&x, &w, bias, &y), softmax_off = softmax_error(&y, &p);
        printf("rows %d apart: %s\n", (int)gap, layer_off < 1e-4 && softmax_off < 1e-6 ? "right" : "WRONG");
    }
    free(x.data);
    free(w.data);
    free(y.data);
    free(p.data);
    return status;
}

int main(void) {
    TileError error = {.status = TILE_OK};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    tile_status status = run(&options, 0);
    if (status == TILE_OK) status = run(&options, GAP);
    if (status != TILE_OK) fprintf(stderr, "%s\n", error.message);
    return tile_status_exit_code(status);
}
