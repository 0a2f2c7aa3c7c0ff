#include "lowering/each.h"

static bool walk(TilePassContext *context, TileBlock *block, TileOpId id, TileTry try, const char **error) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) changed |= walk(context, &op->regions[i], id, try, error);
        if (op->id == id) changed |= try(context, op, error);
    }
    return changed;
}

TileResult tile_try_each(TilePassContext *context, TileFunc *func, TileOpId id, TileTry try, const char *pass) {
    const char *error = NULL;
    bool changed = walk(context, &func->body, id, try, &error);
    if (error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "%s: %s", pass, error);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}

static void find(TileBlock *block, TileOpId id, TileArena *arena, TileOps *found) {
    for (TileOp *op = block->first; op; op = op->next) {
        if (op->id == id) tile_list_push(arena, found, op);
        for (unsigned i = 0; i < op->region_count; i++) find(&op->regions[i], id, arena, found);
    }
}

TileOps tile_find_each(TileBlock *block, TileOpId id, TileArena *arena) {
    TileOps found = {0};
    find(block, id, arena, &found);
    return found;
}
