/* The parser of a file, and of texts that are not files. */
#include <string.h>

#include "parser/syntax/parse.h"
#include "parser/syntax/syntax.h"

static void skip_separators(TileParser *parser) {
    while (tile_parse_peek(parser) == TILE_TOKEN_NEWLINE || tile_parse_peek(parser) == TILE_TOKEN_SEMICOLON)
        tile_parse_advance(parser);
}

static void add_item(TileParser *parser, TileItem *item) {
    TileAst *ast = parser->ast;
    tile_list_push(parser->arena, &ast->items, item);
    bool named = item->kind == TILE_ITEM_CONST || item->kind == TILE_ITEM_FN || item->kind == TILE_ITEM_KERNEL;
    if (named && *item->name && !tile_map_find(&ast->named, item->name)) tile_map_set(&ast->named, item->name, item);
}

static void parse_items(TileParser *parser) {
    for (;;) {
        skip_separators(parser);
        if (tile_parse_peek(parser) == TILE_TOKEN_END) return;
        size_t begin = parser->item = parser->position;
        uint32_t errors = parser->item_errors = parser->diagnostics->error_count;
        TileItem *item = tile_parse_item(parser);
        bool panic = parser->panic; /* errors beyond the limit are not counted */
        if (panic) tile_parse_resume_item(parser, begin);
        bool whole = !panic && parser->diagnostics->error_count == errors;
        if (item) item->broken = !whole;
        bool named = item && item->name && *item->name;
        if (whole || named) add_item(parser, item);
        bool kernel = item && item->kind == TILE_ITEM_KERNEL;
        if (!whole && !named) *(kernel ? &parser->ast->lost_kernel : &parser->ast->lost) = true;
    }
}

tile_status tile_parse_program_file(TileArena *arena, TileDiagnostics *diagnostics, TileInterner *names,
                                    const char *name, const char *text, size_t length, TileAst **out) {
    uint32_t errors = diagnostics->error_count;
    uint32_t file = tile_diagnostics_add_file(diagnostics, name, text, length);
    TileAst *ast = TILE_NEW(arena, TileAst);
    ast->arena = arena;
    ast->names = names;
    ast->file = file;
    tile_map_init(&ast->named, arena);
    TileParser parser = {.arena = arena, .diagnostics = diagnostics, .ast = ast, .text = text, .file = file};
    tile_lex(arena, diagnostics, file, &parser.tokens);
    parse_items(&parser);
    *out = ast;
    return diagnostics->error_count == errors ? TILE_OK : TILE_INVALID_SOURCE;
}

tile_status tile_parse_file(TileArena *arena, TileDiagnostics *diagnostics, const char *name, const char *text,
                            size_t length, TileAst **out) {
    return tile_parse_program_file(arena, diagnostics, tile_interner_create(arena), name, text, length, out);
}

/* ---- texts that are not files ---- */

static TileParser begin_clause(TileDiagnostics *diagnostics, TileAst *ast, const char *name, const char *text) {
    size_t length = strlen(text);
    uint32_t file = tile_diagnostics_add_file(diagnostics, name, text, length);
    TileParser parser = {
        .arena = ast->arena, .diagnostics = diagnostics, .ast = ast, .text = text, .file = file, .header = true};
    tile_lex(ast->arena, diagnostics, file, &parser.tokens);
    return parser;
}

static tile_status end_clause(TileParser *parser, uint32_t errors) {
    if (!parser->panic && tile_parse_peek(parser) != TILE_TOKEN_END) tile_parse_fail(parser, "the end");
    return parser->diagnostics->error_count == errors ? TILE_OK : TILE_INVALID_SOURCE;
}

tile_status tile_parse_exports(TileDiagnostics *diagnostics, TileAst *ast, const char *name, const char *text) {
    uint32_t errors = diagnostics->error_count;
    TileParser parser = begin_clause(diagnostics, ast, name, text);
    TileItem *item = TILE_NEW(ast->arena, TileItem);
    tile_parse_export_list(&parser, item);
    TILE_TRY(end_clause(&parser, errors));
    tile_list_push(ast->arena, &ast->items, item);
    return TILE_OK;
}

tile_status tile_parse_value(TileDiagnostics *diagnostics, TileAst *ast, const char *name, const char *text,
                             TileExpr **value) {
    uint32_t errors = diagnostics->error_count;
    TileParser parser = begin_clause(diagnostics, ast, name, text);
    *value = tile_parse_expression(&parser);
    return end_clause(&parser, errors);
}

tile_status tile_parse_condition(TileDiagnostics *diagnostics, TileAst *ast, const TileAst *owner, const char *kernel,
                                 const char *name, const char *text) {
    uint32_t errors = diagnostics->error_count;
    TileParser parser = begin_clause(diagnostics, ast, name, text);
    TileRequire require = {.span = tile_parse_span(&parser)};
    TileExpr *condition = tile_parse_expression(&parser);
    TILE_TRY(end_clause(&parser, errors));
    tile_list_push(ast->arena, &require.conditions, condition);
    TileItem *item = tile_map_get(&owner->named, tile_intern_string(ast->names, kernel));
    if (item) tile_list_push(ast->arena, &item->requires, require);
    return TILE_OK;
}
