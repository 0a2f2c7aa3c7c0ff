/* The table of this folder's passes, and pipelines given by names of passes. */
#include "lowering/pass.h"

#include <string.h>

enum { TILE = TILE_FORM_TILE, MACHINE = TILE_FORM_MACHINE, BOTH = TILE_FORM_TILE | TILE_FORM_MACHINE };

static const TilePassInfo passes[] = {
#define PASS(id, name, stage, input, output, needs, keeps, doc)                                                            \
    {name, doc, TILE_STAGE_##stage, input, output, TILE_ANALYSIS_##needs, TILE_ANALYSIS_##keeps, tile_pass_##id},
#include "lowering/passes.def"
#undef PASS
};

static const TilePassTable table = {passes, sizeof passes / sizeof *passes};

const TilePassTable *tile_lowering_passes(void) { return &table; }
const TilePassInfo *tile_lowering_pass(TileLoweringPass id) { return &passes[id]; }

const TilePassInfo *tile_pass_find(const TilePassTable *const *tables, size_t table_count, const char *name,
                                   size_t length) {
    for (size_t t = 0; t < table_count; t++)
        for (size_t i = 0; i < tables[t]->count; i++) {
            const TilePassInfo *info = &tables[t]->passes[i];
            if (strncmp(info->name, name, length) == 0 && info->name[length] == 0) return info;
        }
    return NULL;
}

tile_status tile_pipeline_read(TilePipeline *pipeline, TileArena *arena, const TilePassTable *const *tables,
                               size_t table_count, const char *names, TileText *message) {
    while (*names) {
        size_t length = strcspn(names, ",");
        const TilePassInfo *info = tile_pass_find(tables, table_count, names, length);
        if (!info) {
            tile_text_format(message, "there is no pass `%.*s`", (int)length, names);
            return TILE_NOT_FOUND;
        }
        tile_list_push(arena, pipeline, info);
        names += length;
        if (*names == ',') names++;
    }
    return TILE_OK;
}

void tile_pipeline_interleave(TilePipeline *pipeline, TileArena *arena, const TilePassInfo *const *between,
                              size_t count) {
    TilePipeline all = {0};
    for (size_t i = 0; i < pipeline->count; i++) {
        tile_list_push(arena, &all, pipeline->items[i]);
        for (size_t k = 0; k < count && i + 1 < pipeline->count; k++) tile_list_push(arena, &all, between[k]);
    }
    *pipeline = all;
}
