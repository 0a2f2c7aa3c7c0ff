/* The target's code into this process, or to an emulator. */
#include "driver/compile/built.h"
#include "launch/cuda.h"

bool tile_unit_is_foreign(const TileUnit *unit) {
    const TileBackend *backend = tile_unit_backend(unit);
    return unit->input->foreign && backend && backend->emulated && backend->obstacle(unit->input->target);
}

void tile_built_release(TileBuiltCode *built) {
    tile_loaded_release(built->loaded.native);
    tile_cuda_module_destroy(built->loaded.device);
    built->loaded = (TileBackendLoaded){0};
    built->code.gpu = NULL;
}

/* Hands the code to the emulator, which gives an entry for each phase. */
static tile_status link_foreign(TileUnit *unit, const TileFunc *kernel, const TileImageSignature *signature,
                                const TileImageRequest *request, TileBuiltCode *built) {
    TileImagePhase *phases = (TileImagePhase *)built->code.phases;
    uint32_t count = built->code.phase_count;
    const char **symbols = TILE_NEW_ARRAY(built->arena, const char *, count);
    TilePhaseEntry *entries = TILE_NEW_ARRAY(built->arena, TilePhaseEntry, count);
    for (uint32_t i = 0; i < count; i++) symbols[i] = tile_func_phase(kernel, i)->name;
    TileForeignObject object = {unit->code.data, unit->code.size, symbols, &built->code, signature, request, entries};
    const TileForeign *foreign = unit->input->foreign;
    TILE_TRY(foreign->load(foreign->state, &object));
    for (uint32_t i = 0; i < count; i++) phases[i].entry = entries[i];
    return TILE_OK;
}

tile_status tile_built_load(TileUnit *unit, const TileBackendCode *code, TileBuiltCode *built) {
    built->loaded.entries = TILE_NEW_ARRAY(unit->arena, TilePhaseEntry, code->phase_count);
    return tile_unit_backend(unit)->load(code, &built->loaded, &unit->message);
}

tile_status tile_image_load(TileImageJob *job) {
    TileUnit *unit = job->unit;
    TileBuiltCode *built = (TileBuiltCode *)job->code;
    uint32_t count = built->code.phase_count;
    if (tile_unit_is_foreign(unit)) return link_foreign(unit, job->func, job->signature, job->request, built);
    TileBackendCode code = {unit->code.data, unit->code.size,
                            tile_image_list_phases(unit, job->func, unit->arena, count), count,
                            unit->input->compiler->debugger};
    tile_status status = tile_built_load(unit, &code, built);
    TileImagePhase *phases = (TileImagePhase *)built->code.phases;
    for (uint32_t i = 0; i < count && status == TILE_OK; i++) phases[i].entry = built->loaded.entries[i];
    built->code.gpu = built->loaded.device;
    tile_input_step(unit->input, TILE_STEP_LOAD, &unit->clock);
    return status;
}
