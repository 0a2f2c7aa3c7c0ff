/* The list of stages.def as calls: each stage is a function of a few lines here, and tile_image_run calls them in
 * order. Who runs how much of it:
 *
 *     tile_unit_run       PARSE, for every use of a text
 *     tile_image_build    for launches: up to CHECK, looks into the disk cache, then up to LOAD, or COLLECT where the
 *                         executor runs the kernel
 *     tile_ahead_compile  for objects: up to EMIT
 *     tile_emit_stage     for `tilec emit`: up to what is wanted; without job->code, since nobody launches it */
#include "driver/compile/stages.h"

#include "driver/compile/image.h"
#include "lang/ir/text.h"

static tile_status parse(TileImageJob *job) { return tile_unit_parse(job->unit); }

static tile_status check(TileImageJob *job) {
    TILE_TRY(tile_unit_lower(job->unit, job->kernel, job->bindings, job->binding_count));
    job->func = tile_unit_kernel(job->unit, job->kernel);
    tile_image_schedule(job->func, job->schedule);
    return TILE_OK;
}

static tile_status assume(TileImageJob *job) {
    tile_image_assume(job->func, job->signature, job->request);
    TILE_TRY(tile_unit_pipeline(job->unit, &job->pipeline));
    job->shared_pass_count = tile_unit_shared_passes(&job->pipeline);
    return TILE_OK;
}

static size_t count_shared(const TileImageJob *job) {
    return job->pipeline.count < job->shared_pass_count ? job->pipeline.count : job->shared_pass_count;
}

/* NULL: nobody wants to read the forms. */
static TileExplanation *explained(const TileImageJob *job) {
    TileExplanation *explanation = job->unit->input->compiler->explanation;
    return explanation && explanation->texts ? explanation : NULL;
}

static const char *print_form(const TileImageJob *job, const TileExplanation *explanation) {
    TileText text = {.arena = explanation->arena};
    tile_module_print(&text, job->unit->module, TILE_PRINT_LOCATIONS);
    return tile_text_get(&text);
}

static tile_status lower(TileImageJob *job) {
    TILE_TRY(tile_unit_passes(job->unit, job->pipeline.items, count_shared(job)));
    TileExplanation *explanation = explained(job);
    if (explanation) explanation->tile_form = print_form(job, explanation);
    return TILE_OK;
}

/* Not later: the target's passes take the grids out of the kernel, and then temporaries look unused. */
static tile_status describe(TileImageJob *job) {
    if (!job->code) return TILE_OK;
    return tile_image_describe(job->unit, job->func, job->signature, job->arena, job->code);
}

/* The passes of the target in front of the one that lowers tile form: what they decide is in the ops. */
static size_t count_deciding(const TileImageJob *job) {
    size_t count = count_shared(job);
    while (count < job->pipeline.count && !tile_pass_lowers(job->pipeline.items[count])) count++;
    return count;
}

static tile_status target(TileImageJob *job) {
    size_t done = count_shared(job);
    TileExplanation *explanation = explained(job);
    if (explanation) {
        size_t deciding = count_deciding(job);
        TILE_TRY(tile_unit_passes(job->unit, job->pipeline.items + done, deciding - done));
        explanation->decided_form = print_form(job, explanation);
        done = deciding;
    }
    return tile_unit_passes(job->unit, job->pipeline.items + done, job->pipeline.count - done);
}

static tile_status collect(TileImageJob *job) {
    if (job->code) tile_image_collect(job->unit->module, job->func, job->signature, job->code);
    return TILE_OK;
}

static tile_status phases(TileImageJob *job) {
    return job->code ? tile_image_describe_phases(job->unit, job->func, job->arena, job->code) : TILE_OK;
}

static tile_status emit(TileImageJob *job) { return tile_unit_emit(job->unit, job->kind); }

static tile_status load(TileImageJob *job) { return tile_image_load(job); }

tile_status tile_image_run(TileImageJob *job, TileImageStage last) {
    static tile_status (*const stages[TILE_IMAGE_STAGE_COUNT])(TileImageJob * job) = {
#define STAGE(id, function, assumes, gives) [TILE_IMAGE_##id] = function,
#include "driver/compile/stages.def"
    };
    for (; job->unit->stages <= (unsigned)last; job->unit->stages++) TILE_TRY(stages[job->unit->stages](job));
    return TILE_OK;
}

/* ---- names ---- */

const char *tile_step_name(TileStep step) {
    static const char *const names[TILE_STEP_COUNT] = {
#define STEP(id, name) [TILE_STEP_##id] = name,
#include "driver/compile/stages.def"
    };
    return names[step];
}

const char *tile_stage_name(TileStage stage) {
    static const char *const names[] = {
#define FORM(id, name, stage) [TILE_STAGE_##id] = name,
#include "driver/compile/stages.def"
    };
    _Static_assert(sizeof names / sizeof *names == TILE_STAGE_COUNT,
                   "each TileStage of tile.h has a row in stages.def");
    return (unsigned)stage < TILE_STAGE_COUNT ? names[stage] : NULL;
}

TileImageStage tile_stage_end(TileStage stage) {
    static const TileImageStage ends[TILE_STAGE_COUNT] = {
#define FORM(id, name, stage) [TILE_STAGE_##id] = TILE_IMAGE_##stage,
#include "driver/compile/stages.def"
    };
    return ends[stage];
}
