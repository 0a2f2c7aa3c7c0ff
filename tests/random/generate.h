/* Random kernels, well typed, as text. Each is made from a list of choices, so that a shorter or smaller list is a
 * simpler kernel: shrinking needs to know nothing of the language. */
#ifndef TESTS_RANDOM_GENERATE_H
#define TESTS_RANDOM_GENERATE_H

#include <stddef.h>
#include <stdint.h>

enum { MAX_CHOICES = 600, MAX_TEXT = 1 << 16 };

typedef struct Choices {
    uint8_t items[MAX_CHOICES];
    size_t count; /* behind them all choices are 0, the simplest */
} Choices;

typedef struct Sizes {
    int64_t m, n, k, l;
} Sizes;

/* The text of a kernel `k` over x: f32[M, N], h: T[M, N] (f16 or bf16), v: i32[M, N], b: f32[N], a: f32[M, K], w:
 * f32[K, N], ix: i64[N], c: f32[L, M, N], o: f32[], alpha: f32, step: i64, with results y: f32[M, N], q: i32[M, N],
 * s: f32[M]; and the extents to run it with. Returns how many choices it took. */
size_t generate_kernel(const Choices *choices, char *text, size_t size, Sizes *sizes);

#endif
