/* The passes of a unit's target: their list, and running them. */
#include "driver/compile/backend.h"
#include "driver/compile/own_pass.h"
#include "launch/clock.h"

static tile_status target_pipeline(TileUnit *unit, TilePipeline *pipeline) {
    const TileTarget *target = unit->input->target;
    TILE_TRY(tile_family_pipeline(tile_backend_of(target)->family, target, pipeline, unit->arena, &unit->message));
    tile_own_pass_place(unit->input->compiler, unit->arena, pipeline);
    const TileCompiler *compiler = unit->input->compiler;
    tile_pipeline_interleave(pipeline, unit->arena, compiler->between, compiler->between_count);
    for (size_t i = 0; i < compiler->behind_count; i++) tile_list_push(unit->arena, pipeline, compiler->behind[i]);
    return TILE_OK;
}

tile_status tile_unit_pipeline(TileUnit *unit, TilePipeline *pipeline) {
    if (unit->input->target) return target_pipeline(unit, pipeline);
    TILE_TRY(tile_family_pipeline(tile_backend_cpu.family, NULL, pipeline, unit->arena, &unit->message));
    /* The interpreter defines the meaning of a kernel, so it runs only the passes that are part of the meaning. */
    size_t count = 0;
    while (count < pipeline->count && pipeline->items[count]->stage == TILE_STAGE_MEANING) count++;
    pipeline->count = count;
    return TILE_OK;
}

size_t tile_unit_shared_passes(const TilePipeline *pipeline) {
    size_t count = 0;
    while (count < pipeline->count && pipeline->items[count]->stage != TILE_STAGE_TARGET) count++;
    return count;
}

/* Exceeding a limit is reported as a diagnostic with its location. */
static void report_excess(TileUnit *unit, const TilePassExcess *excess) {
    const char *file = unit->context->files.items[excess->place.file];
    TileSpan span = tile_source_span(unit->diagnostics, file, excess->place.line, excess->place.column);
    TileDiagnostic *d = tile_diagnose(unit->diagnostics, excess->code, span, excess->words);
    tile_diagnostic_note_limit(unit->diagnostics, d, excess->limit);
}

tile_status tile_unit_passes(TileUnit *unit, const TilePassInfo *const *passes, size_t count) {
    TilePassContext context = tile_pass_context(unit->module, unit->arena, unit->input->target);
    context.settings.no_contract = unit->input->flags & TILE_COMPILE_NO_CONTRACT;
    context.settings.mark_padding = unit->input->mark_padding && unit->input->flags & TILE_COMPILE_EMULATE;
    context.settings.debug = unit->input->flags & TILE_COMPILE_DEBUG;
    context.limits = &unit->input->compiler->limits;
    if (unit->input->compiler->explanation) context.remarks = &unit->remarks;
    uint64_t names = unit->input->compiler->names;
    TilePassOptions options = {.verify = unit->verify, .names = names, .restore = names};
    TilePassReport report = tile_pass_report(unit->arena);
    tile_status status = tile_passes_run(&context, passes, count, &options, &report);
    for (size_t i = 0; i < report.times.count; i++) {
        TilePassStage stage = report.times.items[i].pass->stage;
        bool shared = stage == TILE_STAGE_MEANING || stage == TILE_STAGE_SHARED;
        atomic_fetch_add(&unit->input->step_ns[shared ? TILE_STEP_LOWER : TILE_STEP_TARGET],
                         (uint64_t)(report.times.items[i].seconds * 1e9));
    }
    unit->clock = tile_clock_ns();
    if (status == TILE_OK) return TILE_OK;
    if (context.excess.found) return report_excess(unit, &context.excess), status;
    tile_text_add(&unit->message, tile_text_get(&context.message));
    if (status == TILE_INTERNAL && unit->verify) tile_unit_write_reproducer(unit, tile_text_get(&report.reproducer));
    return status;
}
