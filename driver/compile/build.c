/* Code that the launcher runs: native, from the disk cache, or on the executor. */
#include <stdlib.h>

#include "driver/compile/built.h"
#include "driver/compile/cached.h"

static void destroy_code(TileImageCode *code) {
    TileBuiltCode *built = (TileBuiltCode *)code;
    tile_built_release(built);
    if (built->unit) tile_unit_destroy(built->unit);
    tile_arena_destroy(built->arena);
    pthread_mutex_destroy(&built->mutex);
    free(built);
}

/* By the executor: the interpreter's tile form, or a target's machine form. */
static bool is_executed(const TileUnit *unit) {
    return !unit->input->target || (unit->input->flags & TILE_COMPILE_EMULATE);
}

/* ---- code from the disk ---- */

static void keep(TileUnit *unit, const TileFunc *kernel, const TileImageSignature *signature,
                 const TileImageRequest *request, const TileCodeKey *key, const TileBuiltCode *built) {
    TileCached cached = {.phases = tile_image_list_phases(unit, kernel, unit->arena, built->code.phase_count),
                         .phase_count = built->code.phase_count,
                         .code = unit->code.data,
                         .code_bytes = unit->code.size};
    tile_cached_put(unit, key, signature, request, &built->code, &cached);
}

static tile_status load_cached(TileUnit *unit, const TileCached *cached, const TileImageSignature *signature,
                               TileBuiltCode *built) {
    TileBackendCode code = {cached->code, cached->code_bytes, cached->phases, cached->phase_count, false};
    TILE_TRY(tile_built_load(unit, &code, built));
    TILE_TRY(tile_cached_read(cached, built->arena, built->loaded.entries, signature, &built->code));
    built->code.gpu = built->loaded.device;
    return TILE_OK;
}

/* False where the kernel must be compiled: the cache has no code, or code that cannot be loaded. */
static bool restore(TileUnit *unit, const TileImageSignature *signature, const TileImageRequest *request,
                    const TileCodeKey *key, TileBuiltCode *built) {
    TileCached cached;
    if (!tile_cached_get(unit, key, signature, request, &cached)) return false;
    bool good = load_cached(unit, &cached, signature, built) == TILE_OK;
    tile_input_step(unit->input, TILE_STEP_LOAD, &unit->clock);
    if (good) return true;
    tile_built_release(built);
    unit->message.length = 0;
    return false;
}

/* ---- both ---- */

/* The code owns its arena. */
static TileBuiltCode *create_code(TileUnit *unit) {
    TileBuiltCode *built = calloc(1, sizeof *built);
    if (!built) return NULL;
    built->arena = tile_arena_create(unit->arena);
    if (!built->arena) {
        free(built);
        return NULL;
    }
    pthread_mutex_init(&built->mutex, NULL);
    built->code.destroy = destroy_code;
    return built;
}

static tile_status build_executed(TileUnit *unit, TileFunc *kernel, TileBuiltCode *built) {
    built->unit = unit;
    built->kernel = kernel;
    built->machine = unit->input->target != NULL;
    built->code.interpret = tile_built_interpret;
    built->code.temp_count = 0; /* the executor allocates temporaries itself */
    unit->keep = true;
    return TILE_OK;
}

/* May the code be in the disk cache? Its keys do not cover passes of other projects or options of tests. */
static bool is_cacheable(const TileUnit *unit) {
    const TileCompiler *compiler = unit->input->compiler;
    bool plain = !compiler->passes.count && !compiler->between_count && !compiler->behind_count && !compiler->names;
    return compiler->cache && plain && !is_executed(unit) && !tile_unit_is_foreign(unit) && !unit->verify;
}

static tile_status build(TileImageJob *job, TileBuiltCode *built) {
    TileUnit *unit = job->unit;
    TileCodeKey key;
    TILE_TRY(tile_image_run(job, TILE_IMAGE_CHECK));
    bool kept = is_cacheable(unit) && tile_cached_key(unit, job->func, job->signature, job->request, &key);
    if (kept && restore(unit, job->signature, job->request, &key, built)) return TILE_OK;
    TILE_TRY(tile_image_run(job, TILE_IMAGE_COLLECT));
    TileExplanation *explanation = unit->input->compiler->explanation;
    if (explanation) TILE_TRY(tile_unit_explain(unit, job->func, job->signature, job->request, job->code, explanation));
    if (is_executed(unit)) return build_executed(unit, job->func, built);
    TILE_TRY(tile_image_run(job, TILE_IMAGE_LOAD));
    if (kept) keep(unit, job->func, job->signature, job->request, &key, built);
    return TILE_OK;
}

tile_status tile_image_build(TileImageJob *job, TileImageCode **code) {
    const TileBackend *backend = tile_unit_backend(job->unit);
    TileBuiltCode *built = create_code(job->unit);
    if (!built) return TILE_OUT_OF_MEMORY;
    *code = &built->code; /* before anything can run out of memory and not return here: the caller destroys it */
    job->code = &built->code;
    job->arena = built->arena;
    if (backend) job->kind = backend->code;
    tile_status status = build(job, built);
    tile_arena_set_guard(built->arena, NULL);
    return status;
}
