/* What the launcher knows of a kernel's phases. */
#include <string.h>

#include "driver/compile/backend.h"
#include "lang/ir/assertion.h"
#include "lang/ir/tensor_map.h"

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
        phases[i].bands = func->bands;
        keep_assertions(unit, func, arena, &phases[i]);
        keep_prints(unit, func, arena, &phases[i]);
    }
    return TILE_OK;
}

/* Does its code wait for the grid before, so that it may be launched before that has ended? */
static bool waits(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_GRID_WAIT) return true;
        for (unsigned i = 0; i < op->region_count; i++)
            if (waits(&op->regions[i])) return true;
    }
    return false;
}

/* The verifier has seen that maps stand behind all others but the shared memory, and that the words of their tensors
 * stand side by side: slots are the phase's first parameters. */
void tile_image_list_maps(const TileFunc *func, TileArena *arena, TileCudaPhase *phase) {
    TileImageMap *maps = TILE_NEW_ARRAY(arena, TileImageMap, TILE_MAX_MAPS);
    phase->maps = maps;
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        const TileParameter *parameter = &func->parameters[i];
        uint32_t data;
        if (parameter->role != TILE_ROLE_MAP || !tile_func_map_tensor(func, i, &data)) continue;
        const TileType *tensor = tile_func_argument_type(func, parameter->argument);
        TileImageMap *map = &maps[phase->map_count++];
        *map = (TileImageMap){.slot = data,
                              .rank = (uint8_t)parameter->map.rank,
                              .element_bytes = (uint8_t)tile_scalar_bytes(tensor->scalar),
                              .swizzle = (uint8_t)parameter->map.swizzle,
                              .cut = (uint8_t)parameter->map.cut};
        for (unsigned d = 0; d < map->rank; d++) {
            map->box[d] = (uint16_t)parameter->map.box[d];
            map->step[d] = (uint8_t)tile_map_step(&parameter->map, d);
        }
        map->positions = (uint16_t)parameter->map.positions;
        tile_func_map_counts(func, i, map->over);
        for (unsigned d = 0; d < tile_image_map_axes(map); d++) map->corner[d] = (int16_t)parameter->map.corner[d];
    }
}

TileCudaPhase *tile_image_list_phases(TileUnit *unit, const TileFunc *kernel, TileArena *arena, uint32_t count) {
    const TileBackend *backend = tile_unit_backend(unit);
    TileCudaPhase *phases = TILE_NEW_ARRAY(arena, TileCudaPhase, count);
    for (uint32_t i = 0; i < count; i++) {
        const TileFunc *func = tile_func_phase(kernel, i);
        phases[i] = (TileCudaPhase){.symbol = backend->symbol(func, arena),
                                    .threads = func->threads,
                                    .shared_bytes = func->scratch_bytes,
                                    .waits = waits(&func->body),
                                    .resident = func->resident};
        tile_image_list_maps(func, arena, &phases[i]);
    }
    return phases;
}
