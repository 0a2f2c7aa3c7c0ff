#include "lang/ir/tensor_map.h"

#include <string.h>

/* ---- the parameter ---- */

static bool same_map(const TileTensorMap *a, const TileTensorMap *b) {
    bool same = a->rank == b->rank && a->swizzle == b->swizzle && a->cut == b->cut && memcmp(a->box, b->box, a->rank * sizeof *a->box) == 0;
    for (uint32_t d = 0; same && d < a->rank; d++) same = tile_map_step(a, d) == tile_map_step(b, d);
    same &= a->positions == b->positions;
    for (uint32_t d = 0; same && d < tile_map_image_axes(a); d++)
        same = a->corner[d] == b->corner[d] && a->over[d].argument == b->over[d].argument && a->over[d].axis == b->over[d].axis;
    return same;
}

/* Exchanges the last parameter with the one before it. */
static void exchange_last(TileFunc *func) {
    TileValue **last = &func->body.arguments[func->body.argument_count - 1];
    TileParameter *parameter = &func->parameters[func->body.argument_count - 1], moved = *parameter;
    TileValue *value = *last;
    *last = last[-1];
    last[-1] = value;
    *parameter = parameter[-1];
    parameter[-1] = moved;
    (*last)->index++;
    value->index--;
}

static TileParameter *data_of(const TileFunc *phase, uint32_t argument) {
    for (uint32_t i = 0; i < phase->body.argument_count; i++)
        if (phase->parameters[i].role == TILE_ROLE_DATA && phase->parameters[i].argument == argument)
            return &phase->parameters[i];
    return NULL;
}

TileValue *tile_func_add_map(TileFunc *phase, uint32_t argument, const TileTensorMap *map) {
    uint32_t maps = 0, own = 0;
    for (uint32_t i = 0; i < phase->body.argument_count; i++) {
        const TileParameter *parameter = &phase->parameters[i];
        if (parameter->role != TILE_ROLE_MAP) continue;
        if (parameter->argument == argument && same_map(&parameter->map, map)) return phase->body.arguments[i];
        own += parameter->argument == argument;
        maps++;
    }
    if (maps == TILE_MAX_MAPS) return NULL;
    const char *tensor = data_of(phase, argument)->name;
    const char *name = own ? tile_arena_format(phase->module->arena, "%s.map%u", tensor, own)
                           : tile_arena_format(phase->module->arena, "%s.map", tensor);
    TileValue *value = tile_func_add_parameter(phase, name, tile_type_pointer(phase->module->context, TILE_SPACE_MAP));
    tile_func_set_role(phase, value, TILE_ROLE_MAP, argument, 0);
    phase->parameters[value->index].map = *map;
    exchange_last(phase);
    data_of(phase, argument)->used_map = true;
    return value;
}

bool tile_parameter_fits_map(TileParameter *parameter, unsigned rank) {
    if (rank < 1 || rank > TILE_MAP_MOST_RANK) return false;
    parameter->asked_map = true;
    parameter->used_map |= parameter->facts.map;
    return parameter->facts.map;
}

const TileTensorMap *tile_value_map(const TileValue *value) {
    const TileBlock *block = value->block;
    if (!block || block->op || value->index >= block->argument_count) return NULL;
    const TileParameter *parameter = &block->func->parameters[value->index];
    return parameter->role == TILE_ROLE_MAP ? &parameter->map : NULL;
}

/* ---- its tensor ---- */

bool tile_func_map_tensor(const TileFunc *phase, uint32_t index, uint32_t *data) {
    const TileParameter *own = &phase->parameters[index], *found = data_of(phase, own->argument);
    if (!found) return false;
    *data = (uint32_t)(found - phase->parameters);
    if (*data + 2 * own->map.rank >= phase->body.argument_count) return false;
    for (uint32_t i = 0; i < 2 * own->map.rank; i++) {
        const TileParameter *part = &found[1 + i];
        bool extent = i < own->map.rank;
        if (part->role != (extent ? TILE_ROLE_EXTENT : TILE_ROLE_STRIDE) || part->argument != own->argument ||
            part->axis != (extent ? i : i - own->map.rank))
            return false;
    }
    return true;
}

bool tile_func_map_counts(const TileFunc *phase, uint32_t index, uint32_t counts[TILE_MAP_MOST_IMAGE_AXES]) {
    const TileTensorMap *map = &phase->parameters[index].map;
    for (uint32_t d = 0; d < tile_map_image_axes(map); d++) {
        const TileParameter *data = data_of(phase, map->over[d].argument);
        uint32_t at = data ? (uint32_t)(data - phase->parameters) + 1 + map->over[d].axis : 0;
        const TileParameter *extent = data && at < phase->body.argument_count ? &phase->parameters[at] : NULL;
        if (!extent || extent->role != TILE_ROLE_EXTENT || extent->argument != map->over[d].argument || extent->axis != map->over[d].axis)
            return false;
        counts[d] = at;
    }
    return true;
}

const TileType *tile_func_argument_type(const TileFunc *phase, uint32_t argument) {
    const TileFunc *kernel = phase->kernel;
    if (!kernel) return NULL;
    const TileType *type = argument < kernel->body.argument_count ? kernel->body.arguments[argument]->type : NULL;
    uint32_t temps = kernel->body.argument_count;
    for (const TileOp *op = kernel->body.first; op && !type; op = op->next)
        if (op->id == TILE_OP_TEMP && temps++ == argument) type = op->results[0].type;
    return type && type->kind == TILE_TYPE_TENSOR ? type : NULL;
}

/* ---- its box ---- */

int64_t tile_map_box_bytes(const TileTensorMap *map, TileScalar scalar) {
    int64_t bytes = (int64_t)tile_scalar_bytes(scalar) * (map->positions ? map->positions : 1);
    for (uint32_t d = 0; d < map->rank; d++) bytes *= map->box[d];
    return bytes;
}

static const char *image_misfit(const TileTensorMap *map) {
    if (map->rank < TILE_MAP_LEAST_IMAGE_RANK) return "a batch of images has at least three axes";
    if (map->positions > TILE_MAP_MOST_POSITIONS) return "a box has more than 1024 positions";
    if (map->cut) return "a box of positions is cut";
    if (tile_map_step(map, 0) != 1) return "the axis of the images has a step";
    for (uint32_t d = 0; d + 1 < map->rank; d++)
        if (map->box[d] != 1) return "a box of positions has an extent";
    for (uint32_t d = 0; d < tile_map_image_axes(map); d++)
        if (!tile_map_corner_fits(map->rank, map->corner[d])) return "a corner is not one that a map has";
    return NULL;
}

const char *tile_map_misfit(const TileTensorMap *map, const TileType *tensor) {
    if (map->rank != tensor->rank) return "the box has not as many axes as the tensor";
    for (uint32_t d = 0; d < map->rank; d++)
        if (map->box[d] < 1 || map->box[d] > TILE_MAP_MOST_EXTENT) return "an extent of the box is not 1 .. 256";
    for (uint32_t d = 0; d < map->rank; d++) {
        if (tile_map_step(map, d) > TILE_MAP_MOST_STEP) return "a step of the box is more than 8";
        if (tile_map_reach(map->box[d], tile_map_step(map, d)) > TILE_MAP_MOST_EXTENT) return "the box reaches over more than 256 elements";
    }
    if (map->cut >> (map->rank - 1)) return "a row of the box is cut";
    if (tile_map_step(map, map->rank - 1) != 1) return "the last axis of the box has a step";
    const char *image = map->positions ? image_misfit(map) : NULL;
    if (image) return image;
    int64_t row = (int64_t)map->box[map->rank - 1] * (int64_t)tile_scalar_bytes(tensor->scalar);
    if (row % TILE_MAP_GRAIN) return "a row of the box is no multiple of 16 bytes";
    if (map->swizzle && map->swizzle != 32 && map->swizzle != 64 && map->swizzle != 128)
        return "the swizzle is not of 32, 64 or 128 bytes";
    return map->swizzle && row != (int64_t)map->swizzle ? "a row of the box has not as many bytes as the swizzle"
                                                        : NULL;
}
