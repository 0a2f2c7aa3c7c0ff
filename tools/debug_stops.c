/* tilec debug: places of statements, and the programs of grids. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tools/debug.h"

static const char *const *files_of(const TileOp *op) { return op->block->func->module->context->files.items; }

TileDebugPlace tile_debug_place(const TileOp *statement) {
    const TileLocation *at = &statement->location;
    return (TileDebugPlace){files_of(statement)[at->file], at->line, at->column};
}

const char *tile_debug_function(const TileOp *statement, TileArena *arena) {
    const char *text = tile_op_get(statement, TILE_ATTRIBUTE_TEXT)->text;
    return tile_arena_string(arena, text, strlen(text));
}

/* ---- places ---- */

typedef struct Search {
    const char *file, *function; /* one of them */
    uint32_t line;               /* of the file: the first statement there or behind it */
    bool found;
    TileDebugPlace place;
} Search;

static bool is_before(TileDebugPlace a, TileDebugPlace b) {
    return a.line != b.line ? a.line < b.line : a.column < b.column;
}

/* The whole name of a file, or what stands behind its last `/`. */
static bool is_file(const char *name, const char *wanted) {
    const char *base = strrchr(name, '/');
    return strcmp(name, wanted) == 0 || (base && strcmp(base + 1, wanted) == 0);
}

static void look_at(TileOp *op, void *state) {
    Search *search = state;
    if (op->id != TILE_OP_STATEMENT || !op->location.file) return;
    TileDebugPlace place = tile_debug_place(op);
    if (search->function) {
        if (strcmp(tile_op_get(op, TILE_ATTRIBUTE_TEXT)->text, search->function) != 0) return;
    } else if (!is_file(place.file, search->file) || place.line < search->line) {
        return;
    }
    if (search->found && !is_before(place, search->place)) return;
    search->found = true;
    search->place = place;
}

static bool is_number(const char *text) {
    const char *at = text;
    while (isdigit((unsigned char)*at)) at++;
    return at != text && !*at;
}

bool tile_debug_find_place(const TileOp *statement, const char *words, TileArena *arena, TileDebugPlace *place,
                           TileText *error) {
    const char *colon = strrchr(words, ':'), *line = colon ? colon + 1 : words;
    Search search = {.file = tile_debug_place(statement).file};
    if (colon) search.file = tile_arena_string(arena, words, (size_t)(colon - words));
    if (is_number(line))
        search.line = (uint32_t)strtoul(line, NULL, 10);
    else
        search.function = words;
    tile_block_walk(&statement->block->func->body, look_at, &search);
    *place = search.place;
    if (search.found) return true;
    if (search.function)
        tile_text_format(error, "no function that this kernel calls is '%s'", words);
    else
        tile_text_format(error, "no statement of a grid stands at or behind line %u of %s", search.line, search.file);
    return false;
}

/* ---- programs ---- */

unsigned tile_debug_program(const TileExecutor *executor, const TileOp *statement, TileBlock **body, int64_t *indices,
                            int64_t *counts) {
    TileBlock *block = statement->block;
    while (block->op && block->op->id != TILE_OP_GRID) block = block->op->block;
    *body = block;
    for (uint32_t i = 0; block->op && i < block->argument_count; i++) {
        const uint8_t *poison;
        indices[i] = (int64_t)*tile_executor_lanes(executor, block->arguments[i], &poison);
        counts[i] = (int64_t)*tile_executor_lanes(executor, tile_op_operand(block->op, i), &poison);
    }
    return block->op ? block->argument_count : 0;
}
