#include "lowering/family.h"

#include <string.h>

const TileTarget *tile_family_target(const TileFamily *family, const char *name) {
    const TileTarget *target;
    for (unsigned i = 0; (target = family->target_at(i)); i++)
        if (strcmp(target->name, name) == 0) return target;
    return NULL;
}

tile_status tile_family_pipeline(const TileFamily *family, const TileTarget *target, TilePipeline *pipeline,
                                 TileArena *arena, TileText *message) {
    const TilePassTable *tables[] = {tile_lowering_passes(), family->passes};
    tile_status status = tile_pipeline_read(pipeline, arena, tables, 2, family->pipeline(target), message);
    return status == TILE_OK ? TILE_OK : TILE_INTERNAL;
}
