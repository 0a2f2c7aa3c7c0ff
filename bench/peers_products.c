/* Kernels that consist of products as plain C loops, for clang -O3 -march=native -ffast-math, with loops in an order
 * that it can vectorise. Compiled into the same shared object as peers.c. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "bench/products.h"

void peer_matmul_i8(void *const *t) {
    const int8_t *restrict a = t[0], *restrict b = t[1];
    const float *restrict row_scale = t[2], *restrict column_scale = t[3];
    float *restrict c = t[4];
    for (long m = 0; m < SQUARE; m++) {
        int32_t sums[SQUARE] = {0};
        for (long k = 0; k < SQUARE; k++)
            for (long n = 0; n < SQUARE; n++) sums[n] += (int32_t)a[m * SQUARE + k] * b[k * SQUARE + n];
        for (long n = 0; n < SQUARE; n++) c[m * SQUARE + n] = (float)sums[n] * row_scale[m] * column_scale[n];
    }
}

void peer_gemv(void *const *t) {
    const float *restrict a = t[0], *restrict x = t[1];
    float *restrict y = t[2];
    for (long m = 0; m < VECTOR; m++) {
        float sum = 0;
        for (long k = 0; k < VECTOR; k++) sum += a[m * VECTOR + k] * x[k];
        y[m] = sum;
    }
}

void peer_gemv_t(void *const *t) {
    const float *restrict a = t[0], *restrict x = t[1];
    float *restrict y = t[2];
    memset(y, 0, sizeof(float) * VECTOR);
    for (long k = 0; k < VECTOR; k++)
        for (long n = 0; n < VECTOR; n++) y[n] += a[k * VECTOR + n] * x[k];
}

/* Convolution along a line: x [count, C], wt [3, C, C], zero padding of one element on both sides. */
static void convolve_position(const float *restrict x, const float *restrict wt, float *restrict y, long position,
                              long count) {
    for (long i = 0; i < WINDOW; i++) {
        long at = position + i - 1;
        if (at < 0 || at >= count) continue;
        for (long c = 0; c < CHANNELS; c++)
            for (long o = 0; o < CHANNELS; o++) y[o] += x[at * CHANNELS + c] * wt[(i * CHANNELS + c) * CHANNELS + o];
    }
}

void peer_conv1d(void *const *t) {
    float *y = t[3];
    for (long q = 0; q < LINE; q++) {
        memcpy(y + q * CHANNELS, t[2], sizeof(float) * CHANNELS);
        convolve_position(t[0], t[1], y + q * CHANNELS, q, LINE);
    }
}

void peer_conv2d(void *const *t) {
    const float *wt = t[1];
    enum { PLANE = SIDE * SIDE * CHANNELS, ROW = SIDE * CHANNELS };
    for (long b = 0; b < IMAGES; b++)
        for (long p = 0; p < SIDE; p++)
            for (long q = 0; q < SIDE; q++) {
                float *y = (float *)t[3] + b * PLANE + p * ROW + q * CHANNELS;
                memcpy(y, t[2], sizeof(float) * CHANNELS);
                for (long i = 0; i < WINDOW; i++) {
                    if (p + i - 1 < 0 || p + i - 1 >= SIDE) continue;
                    convolve_position((const float *)t[0] + b * PLANE + (p + i - 1) * ROW,
                                      wt + i * WINDOW * CHANNELS * CHANNELS, y, q, SIDE);
                }
            }
}

static void convolve_channels(const float *restrict x, const float *restrict wt, float *restrict y, long position,
                              long count) {
    for (long i = 0; i < WINDOW; i++) {
        long at = position + i - 1;
        if (at < 0 || at >= count) continue;
        for (long c = 0; c < CHANNELS; c++) y[c] += x[at * CHANNELS + c] * wt[i * CHANNELS + c];
    }
}

void peer_conv1d_depthwise(void *const *t) {
    float *y = t[3];
    for (long q = 0; q < LINE; q++) {
        memcpy(y + q * CHANNELS, t[2], sizeof(float) * CHANNELS);
        convolve_channels(t[0], t[1], y + q * CHANNELS, q, LINE);
    }
}

/* Called for each position of y and each row of the window inside x: its row of x, and its row of weights. */
#define FOR_EACH_WINDOW_ROW(BEGIN, BODY, END)                                                                          \
    for (long b = 0; b < IMAGES; b++)                                                                                  \
        for (long p = 0; p < SIDE; p++)                                                                                \
            for (long q = 0; q < SIDE; q++) {                                                                          \
                float *restrict y = (float *)result + ((b * SIDE + p) * SIDE + q) * CHANNELS;                          \
                BEGIN;                                                                                                 \
                for (long i = 0; i < WINDOW; i++) {                                                                    \
                    if (p + i - 1 < 0 || p + i - 1 >= SIDE) continue;                                                  \
                    const float *restrict x = (const float *)image + (b * SIDE + p + i - 1) * SIDE * CHANNELS;         \
                    BODY;                                                                                              \
                }                                                                                                      \
                END;                                                                                                   \
            }

void peer_conv2d_depthwise(void *const *t) {
    const void *image = t[0];
    void *result = t[3];
    const float *wt = t[1];
    FOR_EACH_WINDOW_ROW(memcpy(y, t[2], sizeof(float) * CHANNELS),
                        convolve_channels(x, wt + i * WINDOW * CHANNELS, y, q, SIDE), )
}

static void greatest(const float *restrict x, float *restrict y, long position) {
    for (long j = 0; j < WINDOW; j++) {
        long at = position + j - 1;
        if (at < 0 || at >= SIDE) continue;
        for (long c = 0; c < CHANNELS; c++) y[c] = x[at * CHANNELS + c] > y[c] ? x[at * CHANNELS + c] : y[c];
    }
}

static long add_up(const float *restrict x, float *restrict y, long position) {
    long count = 0;
    for (long j = 0; j < WINDOW; j++) {
        long at = position + j - 1;
        if (at < 0 || at >= SIDE) continue;
        count++;
        for (long c = 0; c < CHANNELS; c++) y[c] += x[at * CHANNELS + c];
    }
    return count;
}

void peer_max_pool2d(void *const *t) {
    const void *image = t[0];
    void *result = t[1];
    FOR_EACH_WINDOW_ROW(for (long c = 0; c < CHANNELS; c++) y[c] = -3e38f, greatest(x, y, q), )
}

void peer_avg_pool2d(void *const *t) {
    const void *image = t[0];
    void *result = t[1];
    long count = 0;
    FOR_EACH_WINDOW_ROW(count = 0; memset(y, 0, sizeof(float) * CHANNELS), count += add_up(x, y, q),
                                   for (long c = 0; c < CHANNELS; c++) y[c] /= (float)count)
}

/* One query over the keys first .. last - 1, whose rows are `step` apart. */
static void attend(const float *restrict q, const float *restrict k, const float *restrict v, float *restrict o,
                   long first, long last, long step) {
    float score[TOKENS * 2], top = -3e38f, total = 0;
    for (long t = first; t < last; t++) {
        float sum = 0;
        for (long d = 0; d < HEAD; d++) sum += q[d] * k[t * step + d];
        score[t] = sum * 0.125f;
        top = score[t] > top ? score[t] : top;
    }
    for (long t = first; t < last; t++) total += score[t] = expf(score[t] - top);
    for (long d = 0; d < HEAD; d++) o[d] = 0;
    for (long t = first; t < last; t++)
        for (long d = 0; d < HEAD; d++) o[d] += score[t] / total * v[t * step + d];
}

static void attend_all(void *const *t, long sight, long causal) {
    for (long h = 0; h < HEADS; h++)
        for (long s = 0; s < TOKENS; s++) {
            long head = h * TOKENS * HEAD, last = causal ? s + 1 : TOKENS, first = last > sight ? last - sight : 0;
            attend((float *)t[0] + head + s * HEAD, (float *)t[1] + head, (float *)t[2] + head,
                   (float *)t[3] + head + s * HEAD, first, last, HEAD);
        }
}

void peer_attention(void *const *t) { attend_all(t, TOKENS, 0); }
void peer_attention_causal(void *const *t) { attend_all(t, TOKENS, 1); }
void peer_attention_window(void *const *t) { attend_all(t, SIGHT, 1); }

/* Pages in order: the measurement does not depend on their numbers. */
void peer_attention_paged(void *const *t) {
    for (long b = 0; b < SEQUENCES; b++)
        for (long h = 0; h < HEADS; h++) {
            long begin = b * PAGES / SEQUENCES * PAGE * HEADS * HEAD + h * HEAD, row = (b * HEADS + h) * HEAD;
            attend((float *)t[0] + row, (float *)t[1] + begin, (float *)t[2] + begin, (float *)t[5] + row, 0,
                   PAGES / SEQUENCES * PAGE, HEADS * HEAD);
        }
}
