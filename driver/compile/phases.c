/* What the launcher knows of a kernel's phases. */
#include <string.h>

#include "driver/compile/backend.h"
#include "lang/ir/assertion.h"

static tile_status refuse_phase(TileUnit *unit, const TileFunc *kernel, uint32_t number) {
    tile_text_format(&unit->message, "%s: grid %u has no code", kernel->name, number);
    return TILE_INTERNAL;
}

/* The launcher's messages for the phase's assertions, by number. */
static void keep_assertions(TileUnit *unit, TileFunc *func, TileArena *arena, TileImagePhase *phase) {
    TileAssertions found = tile_func_assertions(func, unit->arena);
    const char **texts = TILE_NEW_ARRAY(arena, const char *, found.count);
    for (size_t k = 0; k < found.count; k++) {
        TileText text = {.arena = arena};
        tile_assertion_describe(&text, found.items[k], "");
        texts[k] = tile_text_get(&text);
    }
    phase->assertions = texts;
    phase->assertion_count = (uint32_t)found.count;
}

/* The templates of the lines that the phase prints. */
static void keep_prints(TileUnit *unit, TileFunc *func, TileArena *arena, TileImagePhase *phase) {
    TileAssertions found = tile_func_prints(func, unit->arena);
    const char **texts = TILE_NEW_ARRAY(arena, const char *, found.count);
    for (size_t k = 0; k < found.count; k++) {
        const char *text = tile_op_get(found.items[k], TILE_ATTRIBUTE_TEXT)->text;
        texts[k] = tile_arena_string(arena, text, strlen(text));
    }
    phase->prints = texts;
    phase->print_count = (uint32_t)found.count;
}

tile_status tile_image_describe_phases(TileUnit *unit, const TileFunc *kernel, TileArena *arena, TileImageCode *code) {
    TileImagePhase *phases = (TileImagePhase *)code->phases;
    for (uint32_t i = 0; i < code->phase_count; i++) {
        TileFunc *func = tile_func_phase(kernel, i);
        if (!func) return refuse_phase(unit, kernel, i);
        phases[i].scratch_bytes = func->scratch_bytes;
        keep_assertions(unit, func, arena, &phases[i]);
        keep_prints(unit, func, arena, &phases[i]);
    }
    return TILE_OK;
}

/* Does its code wait for the grid before, so that it may be launched before that has ended? */
static bool waits(const TileFunc *phase) {
    const TileOp *op = phase->body.first;
    while (op && op->id != TILE_OP_GRID_WAIT) op = op->next;
    return op != NULL;
}

TileCudaPhase *tile_image_list_phases(TileUnit *unit, const TileFunc *kernel, TileArena *arena, uint32_t count) {
    const TileBackend *backend = tile_unit_backend(unit);
    TileCudaPhase *phases = TILE_NEW_ARRAY(arena, TileCudaPhase, count);
    for (uint32_t i = 0; i < count; i++) {
        const TileFunc *func = tile_func_phase(kernel, i);
        phases[i] = (TileCudaPhase){backend->symbol(func, arena), func->threads, func->scratch_bytes, waits(func)};
    }
    return phases;
}
