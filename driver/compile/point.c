#include "driver/compile/point.h"

#include <string.h>

#include "driver/compile/backend.h"
#include "driver/compile/image.h"

static size_t bind(const TilePoint *point, TileBinding *bindings) {
    size_t count = 0;
    const TileImageSignature *signature = point->signature;
    for (uint32_t i = 0; i < signature->generic_count; i++)
        bindings[count++] = (TileBinding){.name = signature->generics[i].name,
                                          .kind = TILE_BINDING_TYPE,
                                          .type = (TileScalar)point->request->generics[i]};
    for (uint32_t i = 0; i < signature->static_count; i++)
        bindings[count++] = tile_static_binding(signature, i, point->request->statics[i]);
    for (size_t i = 0; i < point->count; i++)
        bindings[count++] =
            (TileBinding){.name = point->names[i], .kind = TILE_BINDING_INTEGER, .integer = point->values[i]};
    return count;
}

bool tile_point_lower(TileUnit *unit, const TileKernelInfo *kernel, const TilePoint *point, const char *last) {
    const TileFamily *family = tile_unit_backend(unit)->family;
    TilePipeline pipeline = {0};
    size_t passes = 0;
    TileBinding *bindings =
        TILE_NEW_ARRAY(unit->arena, TileBinding, TILE_MAX_GENERICS + TILE_MAX_STATICS + point->count);
    if (tile_unit_lower(unit, kernel, bindings, bind(point, bindings)) != TILE_OK) return false;
    TileFunc *func = tile_unit_kernel(unit, kernel);
    tile_image_schedule(func, point->schedule);
    tile_image_assume(func, point->signature, point->request);
    if (tile_family_pipeline(family, unit->input->target, &pipeline, unit->arena, &unit->message) != TILE_OK)
        return false;
    while (passes < pipeline.count && strcmp(pipeline.items[passes]->name, last) != 0) passes++;
    return passes < pipeline.count && tile_unit_passes(unit, pipeline.items, passes + 1) == TILE_OK;
}

typedef struct Room {
    const TilePoint *point;
    bool found;
} Room;

static tile_status find_room(TileUnit *unit, void *state) {
    Room *room = state;
    const TileFamily *family = tile_unit_backend(unit)->family;
    TileProgramInfo program = {0};
    TILE_TRY(tile_unit_list(unit, &program));
    const TileKernelInfo *kernel = &program.kernels.items[room->point->signature - unit->input->signatures];
    room->found = tile_point_lower(unit, kernel, room->point, family->measured_behind);
    for (const TileFunc *func = room->found ? unit->module->first : NULL; func; func = func->next)
        room->found &= func->kind != TILE_FUNC_PHASE || family->has_room(unit->input->target, func);
    return TILE_OK;
}

bool tile_point_has_room(TileInput *input, const TilePoint *point) {
    Room room = {point, false};
    return tile_unit_run(input, find_room, &room, NULL) == TILE_OK && room.found;
}
