#include "tests/unit/cpu/passing.h"

#include <math.h>
#include <string.h>

#include "lang/scalar/scalar.h"
#include "lang/ir/text.h"
#include "lang/ir/verify.h"

Passing passing_read(const char *text) {
    Passing passing = {.context = tile_ir_context_create()};
    TileText errors = {.arena = passing.context->arena};
    tile_status status = tile_module_read(passing.context, text, strlen(text), &passing.module, &errors);
    cr_assert_eq(status, TILE_OK, "%s in\n%s", tile_text_get(&errors), text);
    cr_assert(tile_module_verify(passing.module, &errors), "%s in\n%s", tile_text_get(&errors), text);
    return passing;
}

void passing_release(Passing *passing) {
    tile_module_destroy(passing->module);
    tile_ir_context_destroy(passing->context);
}

void passing_run(Passing *passing, const char *passes, const TileTarget *target) {
    const TilePassTable *tables[] = {tile_lowering_passes(), tile_cpu_family.passes};
    TileArena *arena = passing->context->arena;
    TilePipeline pipeline = {0};
    TileText message = {.arena = arena};
    cr_assert_eq(tile_pipeline_read(&pipeline, arena, tables, 2, passes, &message), TILE_OK, "%s",
                 tile_text_get(&message));
    TilePassContext context = tile_pass_context(passing->module, arena, target);
    TilePassReport report = tile_pass_report(arena);
    TilePassOptions options = {.verify = true};
    tile_status status = tile_passes_run(&context, pipeline.items, pipeline.count, &options, &report);
    cr_assert_eq(status, TILE_OK, "%s", tile_text_get(&context.message));
}

TileExecutor *passing_executor(const Passing *passing, unsigned vector_scale) {
    TileExecutor *executor =
        tile_executor_create(passing->module->first, &(TileExecutorOptions){.vector_scale = vector_scale});
    cr_assert(executor);
    return executor;
}

void passing_execute(TileExecutor *executor) {
    TileExecution state = tile_executor_run(executor, 0);
    cr_assert_eq(state, TILE_EXECUTION_DONE, "%s", tile_executor_message(executor));
    tile_executor_destroy(executor);
}

uint64_t passing_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t special_float(uint64_t *state, TileScalar scalar) {
    static const double specials[] = {
        0.0,   -0.0,  1,    -1,   INFINITY, -INFINITY, NAN,     1e-45,   -1e-45, 1e-40,         0.5,   1.5,    -2,
        65504, 65520, 448,  464,  57344,    1e-7,      6e-8,    2.9e-8,  3e-8,   4294967296.0,  9e18,  1.9e19, -9.3e18,
        127,   128,   -128, -129, 255,      256,       32767.5, 65535.5, 3.4e38, -2147483648.0, 1e300, 5e-324, 1e-310};
    return tile_scalar_from_double(scalar, specials[passing_random(state) % (sizeof specials / sizeof *specials)]);
}

static uint64_t random_float(uint64_t *state, TileScalar scalar) {
    uint64_t kind = passing_random(state) % 4, word = passing_random(state);
    if (kind == 0) return special_float(state, scalar);
    if (kind == 1) return tile_scalar_from_double(scalar, (double)(word % 2001) / 16 - 62);
    if (kind == 2) return tile_scalar_from_double(scalar, ldexp((double)(int64_t)word, -(int)(word % 140)));
    return word & tile_scalar_mask(scalar);
}

uint64_t passing_bits(uint64_t *state, TileScalar scalar) {
    if (tile_scalar_is_float(scalar)) return random_float(state, scalar);
    uint64_t mask = tile_scalar_mask(scalar), kind = passing_random(state) % 4, word = passing_random(state);
    const uint64_t specials[] = {0, 1, mask, mask >> 1, (mask >> 1) + 1, mask - 1};
    if (kind == 0) return (word % 9 - 4) & mask;
    if (kind == 1) return specials[word % 6] & mask;
    return (kind == 2 ? word >> (word % 64) : word) & mask;
}
