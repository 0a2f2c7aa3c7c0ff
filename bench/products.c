/* Kernels that consist of products, compared with OpenBLAS, if it has the product, or with plain C loops. */
#include "bench/products.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

enum { MOST_TENSORS = 6, MOST_RANK = 4, MOST_SCALARS = 4, PRODUCT_ROUNDS = 7 };
static const double sample_seconds = 0.004;

typedef enum Number { NUMBER_F32, NUMBER_I8, NUMBER_I32 } Number;

static const struct {
    uint8_t code, bytes;
} numbers[] = {[NUMBER_F32] = {kDLFloat, 4}, [NUMBER_I8] = {kDLInt, 1}, [NUMBER_I32] = {kDLInt, 4}};

typedef struct Shape {
    int64_t extents[MOST_RANK]; /* 0 after the last */
    Number number;
} Shape;

/* Square products that OpenBLAS has; otherwise the peer is a C loop. */
typedef struct Product {
    const char *name, *file, *kernel, *peer;
    Shape shapes[MOST_TENSORS];
    TileArg scalars[MOST_SCALARS];
    double flops;
    TileSetting setting;
    int transposed_a, transposed_b; /* of OpenBLAS */
    int m, n, k;                    /* 0: no such peer */
} Product;

#define SQUARES                                                                                                        \
    .shapes = {{{SQUARE, SQUARE}, 0}, {{SQUARE, SQUARE}, 0}, {{SQUARE, SQUARE}, 0}},                                   \
    .flops = 2.0 * SQUARE * SQUARE * SQUARE, .m = SQUARE, .n = SQUARE, .k = SQUARE
#define PICTURE                                                                                                        \
    { {IMAGES, SIDE, SIDE, CHANNELS}, 0 }
#define MATRIX(rows, columns)                                                                                          \
    { {rows, columns}, 0 }
#define ATTEND                                                                                                         \
    {{1, HEADS, TOKENS, HEAD}, 0}, {{1, HEADS, TOKENS, HEAD}, 0}, {{1, HEADS, TOKENS, HEAD}, 0}, {                     \
        {1, HEADS, TOKENS, HEAD}, 0                                                                                    \
    }
#define INTEGER(x)                                                                                                     \
    {                                                                                                                  \
        .kind = TILE_ARG_INTEGER, .value = {.integer = x }                                                             \
    }
#define REAL(x)                                                                                                        \
    {                                                                                                                  \
        .kind = TILE_ARG_NUMBER, .value = {.number = x }                                                               \
    }
#define TRUTH(x)                                                                                                       \
    {                                                                                                                  \
        .kind = TILE_ARG_BOOL, .value = {.integer = x }                                                                \
    }
#define ATTENTION_FLOPS (4.0 * HEADS * TOKENS * TOKENS * HEAD)

static const Product products[] = {
    {"matmul", "matmul", "matmul", NULL, SQUARES},
    {"matmul_tn", "matmul", "matmul_tn", NULL, SQUARES, .transposed_a = 1},
    {"matmul_nt", "matmul", "matmul_nt", NULL, SQUARES, .transposed_b = 1},
    {"matmul_tt", "matmul", "matmul_tt", NULL, SQUARES, .transposed_a = 1, .transposed_b = 1},
    {"matmul_split_k 64 x 64 x 16384", "matmul", "matmul_split_k", NULL,
     .shapes = {MATRIX(THIN, LONG), MATRIX(LONG, THIN), MATRIX(THIN, THIN)}, .flops = 2.0 * THIN * THIN * LONG,
     .m = THIN, .n = THIN, .k = LONG},
    {"matmul_i8 512", "matmul", "matmul_i8", "peer_matmul_i8",
     .shapes = {{{SQUARE, SQUARE}, NUMBER_I8},
                {{SQUARE, SQUARE}, NUMBER_I8},
                {{SQUARE}, 0},
                {{SQUARE}, 0},
                MATRIX(SQUARE, SQUARE)},
     .flops = 2.0 * SQUARE * SQUARE * SQUARE},
    {"gemv 2048", "matmul", "gemv", "peer_gemv", .shapes = {MATRIX(VECTOR, VECTOR), {{VECTOR}, 0}, {{VECTOR}, 0}},
     .flops = 2.0 * VECTOR * VECTOR},
    {"gemv_t 2048", "matmul", "gemv_t", "peer_gemv_t", .shapes = {MATRIX(VECTOR, VECTOR), {{VECTOR}, 0}, {{VECTOR}, 0}},
     .flops = 2.0 * VECTOR * VECTOR},
    {"conv1d 4096 x 64, 3", "conv", "conv1d", "peer_conv1d",
     .shapes = {{{1, LINE, CHANNELS}, 0}, {{WINDOW, CHANNELS, CHANNELS}, 0}, {{CHANNELS}, 0}, {{1, LINE, CHANNELS}, 0}},
     .scalars = {INTEGER(1), INTEGER(1), INTEGER(1)}, .flops = 2.0 * LINE * CHANNELS * CHANNELS * WINDOW},
    {"conv1d_depthwise 4096 x 64, 3", "conv", "conv1d_depthwise", "peer_conv1d_depthwise",
     .shapes = {{{1, LINE, CHANNELS}, 0}, MATRIX(WINDOW, CHANNELS), {{CHANNELS}, 0}, {{1, LINE, CHANNELS}, 0}},
     .scalars = {INTEGER(1), INTEGER(1), INTEGER(1)}, .flops = 2.0 * LINE * CHANNELS * WINDOW},
    {"conv2d 2 x 56 x 56 x 64, 3 x 3", "conv", "conv2d", "peer_conv2d",
     .shapes = {PICTURE, {{WINDOW, WINDOW, CHANNELS, CHANNELS}, 0}, {{CHANNELS}, 0}, PICTURE},
     .scalars = {INTEGER(1), INTEGER(1), INTEGER(1)},
     .flops = 2.0 * IMAGES * SIDE * SIDE * CHANNELS * CHANNELS * WINDOW * WINDOW},
    {"conv2d_depthwise", "conv", "conv2d_depthwise", "peer_conv2d_depthwise",
     .shapes = {PICTURE, {{WINDOW, WINDOW, CHANNELS}, 0}, {{CHANNELS}, 0}, PICTURE},
     .scalars = {INTEGER(1), INTEGER(1), INTEGER(1)}, .flops = 2.0 * IMAGES * SIDE * SIDE * CHANNELS * WINDOW * WINDOW},
    {"max_pool2d, 3 x 3", "pool", "max_pool2d", "peer_max_pool2d", .shapes = {PICTURE, PICTURE},
     .scalars = {INTEGER(WINDOW), INTEGER(1), INTEGER(1)},
     .flops = 1.0 * IMAGES * SIDE * SIDE * CHANNELS * WINDOW * WINDOW},
    {"avg_pool2d, 3 x 3", "pool", "avg_pool2d", "peer_avg_pool2d", .shapes = {PICTURE, PICTURE},
     .scalars = {INTEGER(WINDOW), INTEGER(1), INTEGER(1), TRUTH(0)},
     .flops = 1.0 * IMAGES * SIDE * SIDE * CHANNELS * WINDOW * WINDOW},
    {"attention 4 x 512 x 64", "attention", "attention", "peer_attention", .shapes = {ATTEND},
     .scalars = {REAL(0.125), TRUTH(0)}, .flops = ATTENTION_FLOPS},
    {"attention, causal", "attention", "attention", "peer_attention_causal", .shapes = {ATTEND},
     .scalars = {REAL(0.125), TRUTH(1)}, .flops = ATTENTION_FLOPS / 2},
    {"attention_window 128", "attention", "attention_window", "peer_attention_window", .shapes = {ATTEND},
     .scalars = {REAL(0.125), INTEGER(SIGHT)}, .flops = ATTENTION_FLOPS * SIGHT / TOKENS},
    {"attention_paged, 4 x 4 x 256", "attention", "attention_paged", "peer_attention_paged",
     .shapes = {{{SEQUENCES, HEADS, HEAD}, 0},
                {{PAGES, PAGE, HEADS, HEAD}, 0},
                {{PAGES, PAGE, HEADS, HEAD}, 0},
                {{SEQUENCES, PAGES / SEQUENCES}, NUMBER_I32},
                {{SEQUENCES}, NUMBER_I32},
                {{SEQUENCES, HEADS, HEAD}, 0}},
     .scalars = {REAL(0.125)}, .flops = 4.0 * SEQUENCES * HEADS * (PAGES / SEQUENCES) * PAGE * HEAD},
};

typedef struct Job {
    const Bench *bench;
    const Product *product;
    TileLibrary *library;
    TileKernel *kernel;
    DLTensor tensors[MOST_TENSORS];
    void *data[MOST_TENSORS];
    TileArg arguments[MOST_TENSORS + MOST_SCALARS];
    size_t count;
    ProductPeer *peer;
    Sgemm *sgemm;
    TileError error;
} Job;

static bool run_kernel(void *state) {
    Job *job = state;
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &job->error, .threads = job->bench->pool};
    if (tile_launch(job->kernel, job->arguments, job->count, &options) == TILE_OK) return true;
    fprintf(stderr, "%s\n", job->error.message);
    return false;
}

static bool run_peer(void *state) {
    Job *job = state;
    const Product *p = job->product;
    enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };
    if (job->peer)
        job->peer(job->data);
    else
        job->sgemm(ROW_MAJOR, p->transposed_a ? TRANSPOSED : PLAIN, p->transposed_b ? TRANSPOSED : PLAIN, p->m, p->n,
                   p->k, 1, job->data[0], p->transposed_a ? p->m : p->k, job->data[1], p->transposed_b ? p->k : p->n, 0,
                   job->data[2], p->n);
    return true;
}

/* Floats in -2 .. 2; bytes; 32-bit integers count up: those of rank 1 are lengths. */
static void fill(void *data, const Shape *shape, int64_t count, int rank) {
    uint32_t seed = 1;
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        if (shape->number == NUMBER_F32) ((float *)data)[i] = (float)(seed >> 8) * 0x1p-22f - 2;
        if (shape->number == NUMBER_I8) ((int8_t *)data)[i] = (int8_t)(seed >> 24);
        if (shape->number == NUMBER_I32) ((int32_t *)data)[i] = rank == 1 ? PAGES / SEQUENCES * PAGE : (int32_t)i;
    }
}

static bool make_tensor(Job *job, int index) {
    const Shape *shape = &job->product->shapes[index];
    int64_t count = 1;
    int rank = 0;
    while (rank < MOST_RANK && shape->extents[rank]) count *= shape->extents[rank++];
    size_t bytes = ((size_t)count * numbers[shape->number].bytes + 63) / 64 * 64;
    job->data[index] = aligned_alloc(64, bytes);
    if (!job->data[index]) return false;
    fill(job->data[index], shape, count, rank);
    job->tensors[index] =
        (DLTensor){.data = job->data[index],
                   .device = {kDLCPU, 0},
                   .ndim = rank,
                   .dtype = {numbers[shape->number].code, (uint8_t)(8 * numbers[shape->number].bytes), 1},
                   .shape = (int64_t *)shape->extents};
    job->arguments[job->count++] = TILE_TENSOR(&job->tensors[index]);
    return true;
}

static bool prepare(Job *job, Sgemm *sgemm) {
    const Product *product = job->product;
    TileSetting none = {NULL, NULL};
    if (!bench_open(job->bench, &job->library, &job->kernel, product->file, product->kernel, &none)) return false;
    for (int i = 0; i < MOST_TENSORS && product->shapes[i].extents[0]; i++)
        if (!make_tensor(job, i)) return false;
    for (int i = 0; i < MOST_SCALARS && product->scalars[i].kind; i++)
        job->arguments[job->count++] = product->scalars[i];
    if (product->peer) *(void **)&job->peer = dlsym(job->bench->peers, product->peer);
    job->sgemm = sgemm;
    return product->peer ? job->peer != NULL : true;
}

static bool bench_product(const Bench *bench, const Product *product, Sgemm *sgemm) {
    Job job = {.bench = bench, .product = product};
    bool has_peer = product->peer || sgemm, good = prepare(&job, sgemm);
    TileCandidate candidates[] = {{run_kernel, &job, 0, 0}, {run_peer, &job, 0, 0}};
    good = good && tile_measure(candidates, has_peer ? 2 : 1, TILE_CLOCK_OF_THREAD, PRODUCT_ROUNDS, sample_seconds);
    if (!good)
        printf("| %s | failed | | | |\n", product->name);
    else if (has_peer)
        printf("| %s | %.1f | %s | %.1f | %.2f |\n", product->name, 1e-9 * product->flops / candidates[0].seconds,
               product->peer ? "clang" : "OpenBLAS", 1e-9 * product->flops / candidates[1].seconds,
               1 / candidates[1].ratio);
    else
        printf("| %s | %.1f | not installed | | |\n", product->name, 1e-9 * product->flops / candidates[0].seconds);
    fflush(stdout);
    for (int i = 0; i < MOST_TENSORS; i++) free(job.data[i]);
    tile_library_destroy(job.library);
    return good;
}

bool bench_products(const Bench *bench, Sgemm *sgemm) {
    printf("\n## Kernels made of products, f32 or i8, one thread\n\n"
           "| kernel | Tile Gop/s | peer | its Gop/s | Tile / peer time |\n|---|---|---|---|---|\n");
    bool good = true;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        if (bench_wanted(bench, products[i].name)) good &= bench_product(bench, &products[i], sgemm);
    return good;
}
