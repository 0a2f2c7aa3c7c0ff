/* Shared by the tables of tile_bench. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "tools/measure.h"
#include "driver/compile/compile.h"

typedef struct Bench {
    const char *stdlib, *tilec, *pattern;
    char *long_texts[2]; /* files of 10,000 lines: many kernels, one */
    void *peers;
    TileCompiler *compiler;
    TileThreadPool *pool;
} Bench;

/* cblas_sgemm. */
typedef void Sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                   const float *b, int ldb, float beta, float *c, int ldc);

/* kernels.c: does the pattern of the command line match the name? */
bool bench_wanted(const Bench *bench, const char *name);
/* Compiles a kernel of the standard library, with one setting unless its name is NULL; false after a message. */
bool bench_open(const Bench *bench, TileLibrary **library, TileKernel **kernel, const char *file, const char *name,
                const TileSetting *setting);
/* products.c; if OpenBLAS is NULL, its products have no peer. */
bool bench_products(const Bench *bench, Sgemm *sgemm);

#endif
