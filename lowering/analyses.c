/* Analyses are invalidated by passes: the row of a pass says which analysis it needs and which it keeps
 * (lowering/passes.def), and the runner drops the others. Where results are verified, it recomputes those that were
 * kept and compares. */
#include "lowering/analyses.h"

TileIndices *tile_pass_indices(TilePassContext *context, TileFunc *func) {
    context->undeclared |= context->info && !(context->info->needs & TILE_ANALYSIS_INDICES);
    TileIndices *indices = tile_map_get(&context->indices, func);
    if (!indices) {
        indices = tile_indices_create(context->scratch, func);
        tile_map_set(&context->indices, func, indices);
    }
    return indices;
}

void tile_analyses_expire(TilePassContext *context, const TilePassInfo *info, TileResult result) {
    if (result == TILE_RESULT_UNCHANGED || info->keeps & TILE_ANALYSIS_INDICES) return;
    for (size_t i = 0; i < context->indices.count; i++) context->indices.entries[i].value = NULL;
}

tile_status tile_analyses_check(TilePassContext *context, const TilePassInfo *info) {
    if (context->undeclared) {
        tile_text_format(&context->message, "pass %s asks for an analysis that its row does not say it needs",
                         info->name);
        return TILE_INTERNAL;
    }
    for (size_t i = 0; i < context->indices.count; i++) {
        TileIndices *kept = context->indices.entries[i].value;
        TileFunc *func = (TileFunc *)context->indices.entries[i].key;
        const TileValue *value = kept && !func->removed ? tile_indices_compare(kept, context->scratch) : NULL;
        if (!value) continue;
        tile_text_format(&context->message, "pass %s keeps the index analysis, but of %%%s it is another now",
                         info->name, value->name ? value->name : "a value");
        return TILE_INTERNAL;
    }
    return TILE_OK;
}
