/* The kernels that the tables of tile_bench measure. */
#include "bench/bench.h"

#include <stdio.h>
#include <string.h>

bool bench_wanted(const Bench *bench, const char *name) { return !bench->pattern || strstr(name, bench->pattern); }

bool bench_open(const Bench *bench, TileLibrary **library, TileKernel **kernel, const char *file, const char *name,
                const TileSetting *setting) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.tile", bench->stdlib, file);
    TileCompileOptions options = {
        .struct_size = sizeof options, .settings = setting, .setting_count = setting->name ? 1 : 0};
    TileReport *report = NULL;
    bool good = tile_compile_file(bench->compiler, path, &options, library, &report) == TILE_OK &&
                tile_library_kernel(*library, name, kernel) == TILE_OK;
    if (!good) fprintf(stderr, "%s: %s\n", path, report ? tile_report_text(report, false) : "cannot be compiled");
    tile_report_destroy(report);
    return good;
}
