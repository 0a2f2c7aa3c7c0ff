/* tilec bench: tables and JSON. */
#include <stdio.h>
#include <string.h>

#include "tools/bench.h"

double tile_bench_least(const TileBenchSize *size, const TileBenchResult *result, bool *arithmetic) {
    double copying = size->copy_rate > 0 ? result->bytes / size->copy_rate : 0;
    bool counted = result->flops_known == TILE_FLOPS_COUNTED && size->flop_rate > 0;
    double computing = counted ? result->flops / size->flop_rate : 0;
    *arithmetic = computing > copying;
    if (result->on_gpu) return 0;
    return *arithmetic ? computing : copying;
}

static void print_time(double seconds) {
    if (seconds < 1e-3)
        printf("%9.2f us", 1e6 * seconds);
    else if (seconds < 1)
        printf("%9.3f ms", 1e3 * seconds);
    else
        printf("%9.3f s ", seconds);
}

void tile_bench_print_head(const TileBench *bench) {
    bool same = bench->subjects > 1 && strcmp(bench->kernels[0], bench->kernels[1]) == 0;
    if (bench->subjects == 1 || same) printf("%s\n", bench->kernels[0]);
    for (unsigned i = 0; i < bench->subjects && bench->subjects > 1 && !same; i++)
        printf("%s: %s\n", bench->names[i], bench->kernels[i]);
    printf("medians, measured alternately, %d thread%s; limits are this machine's, measured in the same run\n", bench->threads,
           bench->threads == 1 ? " (its processor time)" : "s");
}

static void print_result(const TileBench *bench, const TileBenchSize *size, unsigned index, int width) {
    const TileBenchResult *result = &size->results[index];
    bool arithmetic;
    double least = tile_bench_least(size, result, &arithmetic);
    printf("  %-*s ", width, bench->names[index]);
    print_time(result->seconds);
    printf(" %9.2f GB/s ", 1e-9 * result->bytes / result->seconds);
    if (result->flops_known == TILE_FLOPS_COUNTED) printf(" %9.2f GFLOP/s ", 1e-9 * result->flops / result->seconds);
    if (least > 0) printf(" %5.1f %% of %s", 100 * least / result->seconds, arithmetic ? "the FMA peak" : "copying");
    if (index) printf("  %.3f of the time", result->ratio);
    putchar('\n');
}

void tile_bench_print_size(const TileBench *bench, const TileBenchSize *size) {
    int width = (int)strlen("FMA peak, f32");
    for (unsigned i = 0; i < bench->subjects; i++)
        if ((int)strlen(bench->names[i]) > width) width = (int)strlen(bench->names[i]);
    printf("\n");
    if (bench->swept) printf("%s = %s: ", bench->swept, size->value);
    printf("%s; %.4g MB read and written", size->arguments, 1e-6 * size->results[0].bytes);
    if (size->results[0].flops_known == TILE_FLOPS_COUNTED)
        printf(", %.4g MFLOP in dots", 1e-6 * size->results[0].flops);
    if (size->results[0].flops_known == TILE_FLOPS_UNKNOWN) printf(", dots not counted: data decides how many");
    printf("\n");
    for (unsigned i = 0; i < bench->subjects; i++) print_result(bench, size, i, width);
    if (size->copy_rate > 0) printf("  %-*s %12s %9.2f GB/s\n", width, "copying", "", 1e-9 * size->copy_rate);
    if (size->flop_rate > 0)
        printf("  %-*s %12s %9s %15.2f GFLOP/s\n", width, "FMA peak, f32", "", "", 1e-9 * size->flop_rate);
    fflush(stdout);
}

/* ---- JSON ---- */

static void print_json_result(const TileBench *bench, const TileBenchSize *size, unsigned index) {
    const TileBenchResult *result = &size->results[index];
    bool arithmetic;
    double least = tile_bench_least(size, result, &arithmetic);
    printf("      {\"name\": ");
    tile_print_json_string(stdout, bench->names[index]);
    printf(", \"seconds\": %.9g, \"time_ratio\": %.6g, \"bytes\": %.17g, \"bytes_per_second\": %.9g", result->seconds,
           result->ratio, result->bytes, result->bytes / result->seconds);
    if (result->flops_known == TILE_FLOPS_COUNTED)
        printf(", \"flops\": %.17g, \"flops_per_second\": %.9g", result->flops, result->flops / result->seconds);
    else
        printf(", \"flops\": %s", result->flops_known == TILE_FLOPS_NONE ? "0" : "null");
    if (least > 0)
        printf(", \"share_of_limit\": %.6g, \"limit\": \"%s\"", least / result->seconds, arithmetic ? "fma" : "copy");
    printf("}");
}

void tile_bench_print_json(const TileBench *bench) {
    printf("{\n  \"kernels\": [");
    for (unsigned i = 0; i < bench->subjects; i++) {
        if (i) printf(", ");
        tile_print_json_string(stdout, bench->kernels[i]);
    }
    printf("],\n  \"threads\": %d,\n  \"swept\": ", bench->threads);
    if (bench->swept)
        tile_print_json_string(stdout, bench->swept);
    else
        printf("null");
    printf(",\n  \"sizes\": [\n");
    for (size_t s = 0; s < bench->sizes.count; s++) {
        const TileBenchSize *size = &bench->sizes.items[s];
        printf("%s    {\"value\": ", s ? ",\n" : "");
        tile_print_json_string(stdout, size->value);
        printf(", \"arguments\": ");
        tile_print_json_string(stdout, size->arguments);
        if (size->copy_rate > 0) printf(", \"copy_bytes_per_second\": %.9g", size->copy_rate);
        if (size->flop_rate > 0) printf(", \"fma_flops_per_second\": %.9g", size->flop_rate);
        printf(", \"results\": [\n");
        for (unsigned i = 0; i < bench->subjects; i++) {
            if (i) printf(",\n");
            print_json_result(bench, size, i);
        }
        printf("]}");
    }
    printf("\n  ]\n}\n");
}
