#include "lang/assertion.h"

typedef struct Collection {
    TileArena *arena;
    TileOpId id;
    TileAssertions found;
} Collection;

static void collect(TileOp *op, void *state) {
    Collection *collection = state;
    if (op->id == collection->id) tile_list_push(collection->arena, &collection->found, op);
}

TileAssertions tile_func_assertions(TileFunc *func, TileArena *arena) {
    Collection collection = {.arena = arena, .id = TILE_OP_ASSERT};
    tile_block_walk(&func->body, collect, &collection);
    return collection.found;
}

TileAssertions tile_func_prints(TileFunc *func, TileArena *arena) {
    Collection collection = {.arena = arena, .id = TILE_OP_PRINT_ITEMS};
    tile_block_walk(&func->body, collect, &collection);
    return collection.found;
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
