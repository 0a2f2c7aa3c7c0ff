/* The measurements of tilec bench, for tables and plots. */
#ifndef TILE_TOOLS_BENCH_H
#define TILE_TOOLS_BENCH_H

#include "tools/flops.h"

enum { TILE_BENCH_SUBJECTS = 2 }; /* the kernel, and the subjects that it is compared with */

/* One kernel at one size. */
typedef struct TileBenchResult {
    double seconds; /* median of one launch */
    double ratio;   /* to the first subject: median over the rounds */
    double bytes;   /* of the tensors: each element read or written once, inout ones both */
    TileFlopsKnown flops_known;
    double flops; /* of dots */
    bool on_gpu;
} TileBenchResult;

typedef struct TileBenchSize {
    const char *value;     /* of the swept name; "" without one */
    const char *arguments; /* "x: f32[4, 8], y: f32[4, 8]" */
    TileBenchResult results[TILE_BENCH_SUBJECTS];
    double copy_rate; /* bytes per second, read and written, of a copy with as many bytes */
    double flop_rate; /* per second, f32; 0 where no subject has dots */
} TileBenchSize;

typedef struct TileBench {
    TileSession *session;
    const char *names[TILE_BENCH_SUBJECTS], *kernels[TILE_BENCH_SUBJECTS]; /* names of the lines; signatures */
    unsigned subjects;
    int threads;
    const char *swept; /* NULL when nothing is */
    TILE_LIST(TileBenchSize) sizes;
} TileBench;

/* Lower bounds in seconds on this machine: by copy bandwidth, and by FMA throughput. 0: unknown. */
double tile_bench_least(const TileBenchSize *size, const TileBenchResult *result, bool *arithmetic);

/* bench_report.c: the lines of one size as they are measured; everything as JSON. */
void tile_bench_print_head(const TileBench *bench);
void tile_bench_print_size(const TileBench *bench, const TileBenchSize *size);
void tile_bench_print_json(const TileBench *bench);
/* bench_plot.c: a roofline if there are dots, and the sizes if several were measured or there are no dots. */
void tile_bench_draw(const TileBench *bench, TileText *svg);

#endif
