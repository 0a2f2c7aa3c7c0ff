/* The kernels of the table as plain C loops, for clang -O3 -march=native -ffast-math. scripts/bench.sh compiles this
 * file to a separate shared object. */
#include "bench/peers.h"

#include <math.h>

#define ROWS(...)                                                                                                      \
    for (long r = 0; r < rows; r++, x += columns, y += columns) {                                                      \
        __VA_ARGS__                                                                                                    \
    }

void peer_softmax(PEER_ARGUMENTS) {
    ROWS(
        float top = x[0], sum = 0; for (long c = 0; c < columns; c++) top = x[c] > top ? x[c] : top;
        for (long c = 0; c < columns; c++) {
            float e = expf(x[c] - top);
            y[c] = e;
            sum += e;
        } float scale = 1.f / sum;
        for (long c = 0; c < columns; c++) y[c] *= scale;)
}

#ifndef ONLY_SOFTMAX /* compile times are compared for softmax only */
static inline float sigmoid(float t) { return 1.f / (1.f + expf(-t)); }

void peer_add(PEER_ARGUMENTS) {
    for (long i = 0; i < rows * columns; i++) y[i] = x[i] + w[i];
}

void peer_axpy(PEER_ARGUMENTS) {
    for (long i = 0; i < rows * columns; i++) y[i] = -1.7f * x[i] + y[i];
}

void peer_relu(PEER_ARGUMENTS) {
    for (long i = 0; i < rows * columns; i++) y[i] = x[i] > 0 ? x[i] : 0;
}

void peer_gelu_tanh(PEER_ARGUMENTS) {
    for (long i = 0; i < rows * columns; i++) {
        float t = x[i];
        y[i] = t * sigmoid(1.5957691216057307f * (t + 0.044715f * t * t * t));
    }
}

void peer_silu(PEER_ARGUMENTS) {
    for (long i = 0; i < rows * columns; i++) y[i] = x[i] / (1.f + expf(-x[i]));
}

static inline float relu(float t) { return t > 0 ? t : 0; }
static inline float chain_head(float t) { return relu(cosf(sinf(t + 0.1f) * 1.1f) + 0.2f); }

static inline float chain30(float t) {
    float b = sigmoid(expf((chain_head(t) - 0.1f) * 0.5f) + 0.3f);
    float d = sigmoid(expf((relu(cosf(sinf(b * 1.2f) + 0.4f) - 0.2f) + 0.5f) * 0.4f) * 1.3f);
    return sigmoid(expf((chain_head(d) - 0.1f) * 0.5f) + 0.3f);
}

void peer_chain(PEER_ARGUMENTS) {
    for (long r = 0; r < rows; r++, x += columns) {
        float sum = 0;
        for (long c = 0; c < columns; c++) sum += chain30(x[c]);
        y[r] = sum;
    }
}

void peer_layernorm(PEER_ARGUMENTS) {
    ROWS(float sum = 0, squares = 0; for (long c = 0; c < columns; c++) sum += x[c]; float mean = sum / columns;
         for (long c = 0; c < columns; c++) squares += (x[c] - mean) * (x[c] - mean);
         float scale = 1.f / sqrtf(squares / columns + 1e-5f);
         for (long c = 0; c < columns; c++) y[c] = (x[c] - mean) * scale * w[c] + b[c];)
}

void peer_rmsnorm(PEER_ARGUMENTS) {
    ROWS(float squares = 0; for (long c = 0; c < columns; c++) squares += x[c] * x[c];
         float scale = 1.f / sqrtf(squares / columns + 1e-5f);
         for (long c = 0; c < columns; c++) y[c] = x[c] * scale * w[c];)
}

void peer_sum_rows(PEER_ARGUMENTS) {
    for (long r = 0; r < rows; r++, x += columns) {
        float sum = 0;
        for (long c = 0; c < columns; c++) sum += x[c];
        y[r] = sum;
    }
}

void peer_sum_columns(PEER_ARGUMENTS) {
    for (long c = 0; c < columns; c++) y[c] = 0;
    for (long r = 0; r < rows; r++, x += columns)
        for (long c = 0; c < columns; c++) y[c] += x[c];
}

void peer_argmax_rows(PEER_ARGUMENTS) {
    long *index = (long *)y;
    for (long r = 0; r < rows; r++, x += columns) {
        long best = 0;
        for (long c = 1; c < columns; c++) best = x[c] > x[best] ? c : best;
        index[r] = best;
    }
}

void peer_transpose(PEER_ARGUMENTS) {
    for (long r = 0; r < rows; r++)
        for (long c = 0; c < columns; c++) y[c * rows + r] = x[r * columns + c];
}

static inline float row_logsumexp(const float *x, long columns) {
    float top = x[0], sum = 0;
    for (long c = 0; c < columns; c++) top = x[c] > top ? x[c] : top;
    for (long c = 0; c < columns; c++) sum += expf(x[c] - top);
    return top + logf(sum);
}

void peer_logsumexp(PEER_ARGUMENTS) {
    for (long r = 0; r < rows; r++, x += columns) y[r] = row_logsumexp(x, columns);
}

void peer_cross_entropy(PEER_ARGUMENTS) {
    const long *target = all[1];
    float *loss = all[2], *lse = all[3];
    for (long r = 0; r < rows; r++, x += columns) {
        lse[r] = row_logsumexp(x, columns);
        loss[r] = lse[r] - x[target[r]];
    }
}

void peer_cross_entropy_backward(PEER_ARGUMENTS) {
    const long *target = all[1];
    const float *lse = all[2], *dloss = all[3];
    ROWS(float scale = dloss[r], shift = lse[r]; for (long c = 0; c < columns; c++) y[c] = expf(x[c] - shift) * scale;
         y[target[r]] -= scale;)
}

/* x is dy, w is x, b is gamma. */
void peer_layernorm_backward(PEER_ARGUMENTS) {
    const float *mean = all[3], *rstd = all[4];
    for (long r = 0; r < rows; r++, x += columns, w += columns, y += columns) {
        float sum = 0, along = 0, mu = mean[r], scale = rstd[r];
        for (long c = 0; c < columns; c++) {
            float g = x[c] * b[c];
            sum += g;
            along += g * (w[c] - mu) * scale;
        }
        sum /= columns;
        along /= columns;
        for (long c = 0; c < columns; c++) y[c] = (x[c] * b[c] - sum - (w[c] - mu) * scale * along) * scale;
    }
}

void peer_rmsnorm_backward(PEER_ARGUMENTS) {
    const float *rstd = all[3];
    for (long r = 0; r < rows; r++, x += columns, w += columns, y += columns) {
        float along = 0, scale = rstd[r];
        for (long c = 0; c < columns; c++) along += x[c] * b[c] * w[c] * scale;
        along /= columns;
        for (long c = 0; c < columns; c++) y[c] = (x[c] * b[c] - w[c] * scale * along) * scale;
    }
}

void peer_layernorm_backward_params(PEER_ARGUMENTS) {
    const float *mean = all[2], *rstd = all[3];
    float *restrict dgamma = all[4], *restrict dbeta = all[5];
    for (long c = 0; c < columns; c++) dgamma[c] = dbeta[c] = 0;
    for (long r = 0; r < rows; r++, x += columns, w += columns)
        for (long c = 0; c < columns; c++) {
            dgamma[c] += x[c] * (w[c] - mean[r]) * rstd[r];
            dbeta[c] += x[c];
        }
}

void peer_sum_all(PEER_ARGUMENTS) {
    float sum = 0;
    for (long i = 0; i < rows * columns; i++) sum += x[i];
    y[0] = sum;
}

void peer_norm_all(PEER_ARGUMENTS) {
    float sum = 0;
    for (long i = 0; i < rows * columns; i++) sum += x[i] * x[i];
    y[0] = sqrtf(sum);
}

void peer_cumsum_rows(PEER_ARGUMENTS) { ROWS(float sum = 0; for (long c = 0; c < columns; c++) y[c] = sum += x[c];) }

void peer_cumsum_columns(PEER_ARGUMENTS) {
    for (long c = 0; c < columns; c++) y[c] = x[c];
    for (long r = 1; r < rows; r++)
        for (long c = 0; c < columns; c++) y[r * columns + c] = y[(r - 1) * columns + c] + x[r * columns + c];
}

void peer_take_rows(PEER_ARGUMENTS) {
    const long *at = all[1];
    for (long r = 0; r < rows; r++)
        for (long c = 0; c < columns; c++) y[r * columns + c] = x[at[r] * columns + c];
}
#endif
