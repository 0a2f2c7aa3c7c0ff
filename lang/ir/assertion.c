#include "lang/ir/assertion.h"

typedef struct Collection {
    TileArena *arena;
    TileOpId id, other;
    TileAssertions found;
} Collection;

static void collect(TileOp *op, void *state) {
    Collection *collection = state;
    if (op->id == collection->id || op->id == collection->other)
        tile_list_push(collection->arena, &collection->found, op);
}

TileAssertions tile_func_assertions(TileFunc *func, TileArena *arena) {
    Collection collection = {.arena = arena, .id = TILE_OP_ASSERT, .other = TILE_OP_ASSERT};
    tile_block_walk(&func->body, collect, &collection);
    return collection.found;
}

TileAssertions tile_func_prints(TileFunc *func, TileArena *arena) {
    Collection collection = {.arena = arena, .id = TILE_OP_PRINT_ITEMS, .other = TILE_OP_NEW_RECORD};
    tile_block_walk(&func->body, collect, &collection);
    return collection.found;
}

const char **tile_func_templates(TileFunc *func, TileArena *arena, size_t *count) {
    TileAssertions prints = tile_func_prints(func, arena);
    const char **templates = TILE_NEW_ARRAY(arena, const char *, prints.count + 1);
    for (size_t i = 0; i < prints.count; i++) templates[i] = tile_op_get(prints.items[i], TILE_ATTRIBUTE_TEXT)->text;
    *count = prints.count;
    return templates;
}

void tile_assertion_describe(TileText *text, const TileOp *op, const char *values) {
    TileLocation at = op->location;
    const TileContext *context = tile_op_func(op)->module->context;
    if (at.line && at.file && at.file < context->files.count)
        tile_text_format(text, "%s:", context->files.items[at.file]);
    if (at.line) tile_text_format(text, "%u:%u: ", at.line, at.column);
    tile_text_format(text, "assertion failed: %s", tile_op_get(op, TILE_ATTRIBUTE_TEXT)->text);
    if (*values) tile_text_format(text, ", where %s", values);
}
