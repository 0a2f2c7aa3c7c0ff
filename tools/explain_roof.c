/* tilec explain --html: the roofline of a launch. Its roofs are measured on this machine, for code that could run here, or
 * are the model's, for GPUs. The launch itself is not run: its point is what the roofs allow, or what the model predicts. */
#include <string.h>

#include "tools/bench.h"
#include "tools/explain.h"
#include "tools/limits.h"
#include "tools/measure.h"

static bool runs_here(const char *target) {
    TileTargetInfo info;
    for (size_t i = 0; tile_target_at(i, &info); i++)
        if (strcmp(info.name, target) == 0) return info.usable;
    return false;
}

static void measure_roofs(TileExplainedRoof *roof, double bytes, bool products) {
    enum { ROUNDS = 7 };
    TileCopyWork copy;
    TileFmaWork fma = tile_fma_work();
    if (!tile_copy_create(&copy, bytes)) return;
    TileCandidate candidates[] = {{.run = tile_copy_run, .state = &copy}, {.run = tile_fma_run, .state = &fma}};
    TileClock clock = tile_thread_pool_size(NULL) == 1 ? TILE_CLOCK_OF_THREAD : TILE_CLOCK_ON_WALL;
    if (tile_measure(candidates, products ? 2 : 1, clock, ROUNDS, 0.01)) {
        roof->bytes_a_second = 2 * (double)copy.bytes / candidates[0].seconds;
        if (products) roof->flops_a_second = fma.flops / candidates[1].seconds;
    }
    tile_copy_destroy(&copy);
}

static double greater(double a, double b) { return a > b ? a : b; }

TileExplainedRoof tile_explain_roof(const TileExplanation *explanation, const TileExplainedWork *work) {
    TileExplainedRoof roof = {0};
    if (explanation->chosen < explanation->candidates.count) {
        const TileEstimate *estimate = &explanation->candidates.items[explanation->chosen].estimate;
        roof.of_model = true;
        roof.seconds = 1e-6 * estimate->time;
        if (estimate->memory > 0) roof.bytes_a_second = work->bytes / (1e-6 * estimate->memory);
        if (work->has_flops && estimate->compute > 0) roof.flops_a_second = work->flops / (1e-6 * estimate->compute);
    } else if (!explanation->ptx && work->bytes > 0 && runs_here(explanation->target)) {
        measure_roofs(&roof, work->bytes, work->has_flops);
        if (roof.bytes_a_second > 0) roof.seconds = work->bytes / roof.bytes_a_second;
        if (roof.flops_a_second > 0) roof.seconds = greater(roof.seconds, work->flops / roof.flops_a_second);
    }
    return roof;
}

void tile_explain_draw_roof(const TileExplanation *explanation, const TileExplainedWork *work, TileText *svg) {
    const TileExplainedRoof *roof = &work->roof;
    TileBench bench = {.subjects = 1, .names = {roof->of_model ? "predicted" : "at best"}, .kernels = {explanation->kernel}};
    TileBenchSize size = {.value = "",
                          .copy_rate = roof->bytes_a_second,
                          .flop_rate = roof->flops_a_second,
                          .results = {{.seconds = roof->seconds,
                                       .ratio = 1,
                                       .bytes = work->bytes,
                                       .flops_known = TILE_FLOPS_COUNTED,
                                       .flops = work->flops}}};
    if (!work->has_flops || work->flops <= 0 || roof->seconds <= 0 || roof->bytes_a_second <= 0) return;
    tile_list_push(svg->arena, &bench.sizes, size);
    tile_bench_draw(&bench, svg);
}
