/* Types. */
#include <string.h>

#include "parser/syntax/parse.h"

static void parse_type_list(TileParser *parser, TileTypeExpr *type) {
    if (!tile_parse_expect(parser, TILE_TOKEN_LEFT_PAREN)) return;
    while (!parser->panic && tile_parse_peek(parser) != TILE_TOKEN_RIGHT_PAREN) {
        if (type->kind == TILE_TYPE_EXPR_FN && tile_parse_accept(parser, TILE_TOKEN_ELLIPSIS)) {
            type->open = true;
            break;
        }
        TileTypeExpr *item = tile_parse_type(parser);
        tile_list_push(parser->arena, &type->items, item);
        if (!tile_parse_accept(parser, TILE_TOKEN_COMMA)) break;
    }
    tile_parse_expect(parser, TILE_TOKEN_RIGHT_PAREN);
}

static void parse_extents(TileParser *parser, TileTypeExpr *type) {
    type->has_extents = true;
    while (!parser->panic && tile_parse_peek(parser) != TILE_TOKEN_RIGHT_BRACKET) {
        TileExpr *extent = tile_parse_expression(parser);
        if (parser->panic) return;
        tile_list_push(parser->arena, &type->extents, extent);
        if (!tile_parse_accept(parser, TILE_TOKEN_COMMA)) break;
    }
    tile_parse_expect(parser, TILE_TOKEN_RIGHT_BRACKET);
}

/* `tl.float32`, a type of a module of another language. */
static void fail_dotted(TileParser *parser, TileTypeExpr *type) {
    TileSpan dot = tile_parse_span(parser);
    tile_parse_advance(parser);
    TileNameRef member = tile_parse_name(parser);
    if (parser->panic) return;
    const char *own = tile_foreign_type(parser->arena, member.name);
    TileDiagnostic *d = tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, dot, "the end of the type", "`.`");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "types belong to no module");
    TileSpan whole = {parser->file, type->name_span.begin, member.span.end};
    tile_diagnostic_edit(parser->diagnostics, d, whole, "%s", own ? own : member.name);
}

static void parse_named_type(TileParser *parser, TileTypeExpr *type) {
    TileNameRef ref = tile_parse_name(parser);
    type->name = ref.name;
    type->name_span = ref.span;
    if (tile_parse_peek(parser) == TILE_TOKEN_DOT && !parser->panic) fail_dotted(parser, type);
    type->kind = strcmp(ref.name, "range") == 0 ? TILE_TYPE_EXPR_RANGE : TILE_TYPE_EXPR_NAME;
    if (tile_parse_accept(parser, TILE_TOKEN_LEFT_BRACKET)) {
        parse_extents(parser, type);
        if (type->kind == TILE_TYPE_EXPR_RANGE && type->extents.count != 1)
            tile_parse_fail(parser, "one size of the range");
    } else if (type->kind == TILE_TYPE_EXPR_RANGE) {
        tile_parse_fail(parser, "`[` and the size of the range");
    } else {
        tile_parse_fail_pointer(parser, type);
    }
}

TileTypeExpr *tile_parse_type(TileParser *parser) {
    TileTypeExpr *type = TILE_NEW(parser->arena, TileTypeExpr);
    TileSpan begin = tile_parse_span(parser);
    type->span = begin;
    if (!tile_parse_enter(parser)) return type;
    if (tile_parse_accept(parser, TILE_TOKEN_CONST)) type->is_const = true;
    if (tile_parse_accept(parser, TILE_TOKEN_IN))
        type->access = TILE_WORD_IN;
    else if (tile_parse_accept(parser, TILE_TOKEN_OUT))
        type->access = TILE_WORD_OUT;
    else if (tile_parse_accept(parser, TILE_TOKEN_INOUT))
        type->access = TILE_WORD_INOUT;
    if (tile_parse_peek(parser) == TILE_TOKEN_LEFT_PAREN) {
        type->kind = TILE_TYPE_EXPR_TUPLE;
        parse_type_list(parser, type);
    } else if (tile_parse_accept(parser, TILE_TOKEN_FN)) {
        type->kind = TILE_TYPE_EXPR_FN;
        parse_type_list(parser, type);
        if (tile_parse_accept(parser, TILE_TOKEN_ARROW)) type->result = tile_parse_type(parser);
    } else if (tile_parse_peek(parser) == TILE_TOKEN_NAME) {
        parse_named_type(parser, type);
    } else if (!tile_parse_fail_reference(parser)) {
        tile_parse_fail(parser, "a type");
    }
    tile_parse_leave(parser);
    type->span = tile_parse_span_from(parser, begin);
    return type;
}
