#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostile/kinds.h"

Fixture tile_fixture;

void tile_fixture_need(bool made, const char *what) {
    if (made) return;
    fprintf(stderr, "there is no %s\n", what);
    exit(3);
}

TileCompiler *tile_fixture_compiler(void) {
    if (!tile_fixture.compiler)
        tile_fixture_need(tile_compiler_create(NULL, &tile_fixture.compiler) == TILE_OK, "compiler");
    return tile_fixture.compiler;
}

TileKernel *tile_fixture_kernel(void) {
    static const char text[] = "/// Scales.\nkernel scale(x: in f32[M, N], y: out f32[M, N], by: f32)\n"
                               "    tune BM in {2}\n{\n"
                               "    grid (m, n) in (tiles(M, BM), tiles(N, 16)) { y[m, n] = by * x[m, n] }\n"
                               "}\n";
    TileReport *report = NULL;
    if (tile_fixture.kernel) return tile_fixture.kernel;
    tile_status status =
        tile_compile(tile_fixture_compiler(), text, sizeof text - 1, NULL, &tile_fixture.library, &report);
    tile_fixture_need(status == TILE_OK, tile_report_text(report, false));
    tile_report_destroy(report);
    tile_fixture_need(tile_library_kernel(tile_fixture.library, "scale", &tile_fixture.kernel) == TILE_OK, "kernel");
    return tile_fixture.kernel;
}

void tile_fixture_clean(bool all) {
    Fixture *f = &tile_fixture;
    tile_ir_destroy(f->ir);
    tile_ir_destroy(f->other);
    tile_ir_destroy(f->ir_out);
    tile_bound_destroy(f->bound_out); /* before its library */
    tile_library_destroy(f->library_out);
    tile_report_destroy(f->report_out);
    tile_thread_pool_destroy(f->pool_out);
    tile_build_destroy(f->build_out);
    tile_string_destroy(f->string_out);
    tile_compiler_destroy(f->compiler_out);
    tile_compiler_destroy(f->own_compiler);
    tile_device_release(0, f->memory_out);
    Fixture kept = {.compiler = f->compiler,
                    .library = f->library,
                    .kernel = f->kernel,
                    .report = f->report,
                    .bound = f->bound,
                    .build = f->build,
                    .pool = f->pool,
                    .device_memory = f->device_memory};
    *f = kept;
    if (!all) return;
    tile_build_destroy(f->build);
    tile_bound_destroy(f->bound);
    tile_library_destroy(f->library);
    tile_report_destroy(f->report);
    tile_thread_pool_destroy(f->pool);
    tile_compiler_destroy(f->compiler);
    tile_device_release(0, f->device_memory);
    *f = (Fixture){0};
}
