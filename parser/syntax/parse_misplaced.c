/* Items and clauses that stand in a body. Each is reported where it begins, and skipped. */
#include <string.h>

#include "lang/scalar/scalar.h"
#include "parser/syntax/parse.h"

bool tile_parse_at_misplaced(const TileParser *parser) {
    switch (tile_parse_peek(parser)) {
    case TILE_TOKEN_STATIC: {
        TileTokenKind next = tile_parse_peek_ahead(parser, 1);
        return next != TILE_TOKEN_FOR && next != TILE_TOKEN_IF;
    }
    case TILE_TOKEN_REQUIRE:
    case TILE_TOKEN_ALLOW:
    case TILE_TOKEN_TUNE:
    case TILE_TOKEN_CONST:
    case TILE_TOKEN_IMPORT:
    case TILE_TOKEN_EXPORT: return true;
    case TILE_TOKEN_FN: /* one with a name: else it is no function */
    case TILE_TOKEN_KERNEL: return tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_NAME;
    default: return false;
    }
}

static bool is_clause(TileTokenKind kind) {
    return kind == TILE_TOKEN_STATIC || kind == TILE_TOKEN_REQUIRE || kind == TILE_TOKEN_ALLOW ||
           kind == TILE_TOKEN_TUNE;
}

/* The end of the line, without a comment and blanks. */
static uint32_t line_end(const TileParser *parser, uint32_t at) {
    int braces = 0;
    for (size_t i = parser->position; i < parser->tokens.list.count; i++) {
        const TileToken *token = &parser->tokens.list.items[i];
        bool continued = i > 0 && token[-1].kind == TILE_TOKEN_COMMA;
        braces += (token->kind == TILE_TOKEN_LEFT_BRACE) - (token->kind == TILE_TOKEN_RIGHT_BRACE);
        if (braces < 0 || token->kind == TILE_TOKEN_SEMICOLON) break; /* the block's own end */
        if (i > parser->position && ((token->line_break && !continued) || token->kind == TILE_TOKEN_END)) break;
        at = token->end;
    }
    return at;
}

void tile_parse_fail_misplaced(TileParser *parser) {
    if (parser->panic) return;
    TileTokenKind kind = tile_parse_peek(parser);
    TileSpan word = tile_parse_span(parser);
    const TileToken *before = parser->position ? &parser->tokens.list.items[parser->position - 1] : NULL;
    const TileItem *item = parser->current;
    bool first = before && before->kind == TILE_TOKEN_LEFT_BRACE && parser->depth == 1 && item;
    TileDiagnostic *d =
        tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, word, "a statement", tile_token_words(kind));
    if (kind == TILE_TOKEN_STATIC && tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_WHILE) {
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                             "no `while` is unrolled: `static for i in 0..4` is, and a function with a `while` gives constants");
    } else if (is_clause(kind)) {
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                             "clauses stand behind the parameters of a kernel, before the `{` of its body");
        if (first && item->kind == TILE_ITEM_KERNEL) {
            uint32_t end = line_end(parser, word.end);
            TileSpan moved = {parser->file, before->begin, end};
            tile_diagnostic_edit(parser->diagnostics, d, moved, "%.*s {", (int)(end - word.begin),
                                 parser->text + word.begin);
        }
    } else if (kind == TILE_TOKEN_CONST) {
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "a `let` of constants is one itself");
        tile_diagnostic_edit(parser->diagnostics, d, word, "let");
    } else {
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                             "it stands at the top of a file, outside of all braces");
    }
    parser->panic = true;
}

/* `c[n] = ..`, `s += ..` */
static bool begins_assignment(const TileParser *parser) {
    TileTokenKind next = tile_parse_peek_ahead(parser, 1);
    return next == TILE_TOKEN_LEFT_BRACKET || (next >= TILE_TOKEN_ASSIGN && next <= TILE_TOKEN_SHR_ASSIGN);
}

bool tile_parse_separate(TileParser *parser) {
    TileTokenKind before = TILE_TOKEN_END;
    if (parser->position) before = (TileTokenKind)parser->tokens.list.items[parser->position - 1].kind;
    bool ends_line = parser->tokens.list.items[parser->position].line_break;
    if (ends_line && (before == TILE_TOKEN_PLUS || before == TILE_TOKEN_MINUS)) return true; /* `i++`, which was reported */
    switch (tile_parse_peek(parser)) {
    case TILE_TOKEN_LET:
    case TILE_TOKEN_VAR:
    case TILE_TOKEN_FOR:
    case TILE_TOKEN_WHILE:
    case TILE_TOKEN_RETURN:
    case TILE_TOKEN_ASSERT:
    case TILE_TOKEN_BREAK:
    case TILE_TOKEN_CONTINUE: break;
    case TILE_TOKEN_NAME: /* behind a block: nothing goes on there but a new statement */
        if (before == TILE_TOKEN_RIGHT_BRACE && begins_assignment(parser)) break;
        return false;
    default: return false;
    }
    uint32_t end = tile_parse_last_end(parser);
    TileDiagnostic *d = tile_parse_fail(parser, "the end of the statement");
    tile_diagnostic_edit(parser->diagnostics, d, (TileSpan){parser->file, end, end}, ";");
    parser->panic = false;
    return true;
}

/* The parts of a tuple, in parentheses; what is one value stays as it is. */
static const char *parts_text(const TileParser *parser, uint32_t begin, uint32_t end, bool several) {
    const char *text = parser->text + begin;
    int length = (int)(end - begin);
    while (length && text[length - 1] == ' ') length--;
    return tile_arena_format(parser->arena, several ? "(%.*s)" : "%.*s", length, text);
}

void tile_parse_fail_end(TileParser *parser, const TileStatement *statement) {
    bool comma = tile_parse_peek(parser) == TILE_TOKEN_COMMA, returns = statement->kind == TILE_STATEMENT_RETURN;
    TileDiagnostic *d = tile_parse_fail(parser, "the end of the statement");
    if (!comma || !statement->value || (!returns && statement->kind != TILE_STATEMENT_EXPR)) return;
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "the parts of a tuple stand in parentheses: `(a, b) = (b, a)`");
    uint32_t begin = statement->value->span.begin, end = line_end(parser, statement->value->span.end), split = 0, right = 0;
    bool several = false;
    int depth = 0;
    for (size_t i = parser->position; parser->tokens.list.items[i].begin < end; i++) {
        const TileToken *token = &parser->tokens.list.items[i];
        if (token->kind == TILE_TOKEN_LEFT_PAREN || token->kind == TILE_TOKEN_LEFT_BRACKET) depth++;
        if (token->kind == TILE_TOKEN_RIGHT_PAREN || token->kind == TILE_TOKEN_RIGHT_BRACKET) depth--;
        if (token->kind == TILE_TOKEN_ASSIGN && !depth && !split) split = token->begin, right = token[1].begin;
        several = several || (split && !depth && token->kind == TILE_TOKEN_COMMA);
    }
    TileSpan whole = {parser->file, begin, end};
    if (returns)
        tile_diagnostic_edit(parser->diagnostics, d, whole, "%s", parts_text(parser, begin, end, true));
    else if (split)
        tile_diagnostic_edit(parser->diagnostics, d, whole, "%s = %s", parts_text(parser, begin, split, true),
                             parts_text(parser, right, end, several));
}

bool tile_parse_fail_assertion(TileParser *parser) {
    const TileToken *first = &parser->tokens.list.items[parser->position], *token = first;
    if (parser->panic || first->kind == TILE_TOKEN_LEFT_PAREN || first->line_break) return false;
    for (int depth = 0; token->kind != TILE_TOKEN_END; token++) {
        depth += token->kind == TILE_TOKEN_LEFT_PAREN || token->kind == TILE_TOKEN_LEFT_BRACKET;
        depth -= token->kind == TILE_TOKEN_RIGHT_PAREN || token->kind == TILE_TOKEN_RIGHT_BRACKET;
        bool ends = token->kind == TILE_TOKEN_RIGHT_BRACE || token->kind == TILE_TOKEN_SEMICOLON;
        if (!depth && (ends || (token > first && token->line_break && token[-1].kind != TILE_TOKEN_COMMA))) break;
    }
    if (token == first) return false;
    TileSpan whole = {parser->file, first->begin, token[-1].end};
    TileDiagnostic *d = tile_parse_fail(parser, "`(`");
    tile_diagnostic_edit(parser->diagnostics, d, whole, "(%.*s)", (int)(whole.end - whole.begin),
                         parser->text + whole.begin);
    return true;
}

void tile_parse_fail_default(TileParser *parser) {
    TileSpan span = tile_parse_span(parser);
    if (parser->panic || tile_parse_peek(parser) != TILE_TOKEN_ASSIGN) return;
    parser->panic = true;
    TileDiagnostic *d = tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, span, "`,` or `)`", "`=`");
    tile_diagnostic_note(
        parser->diagnostics, d, (TileSpan){0},
        "a parameter has no default; a constant in brackets may have one: `fn f[K: const = 2](x: f32)`");
}

/* `static n: i64`, `const n: i64`, `out y: f32[N]`: such words stand before the type. */
void tile_parse_fail_parameter_word(TileParser *parser) {
    TileTokenKind kind = tile_parse_peek(parser);
    bool constant = kind == TILE_TOKEN_STATIC || kind == TILE_TOKEN_CONST;
    bool access = kind == TILE_TOKEN_IN || kind == TILE_TOKEN_OUT || kind == TILE_TOKEN_INOUT;
    bool named = tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_NAME; /* else the word is taken for a name */
    if (parser->panic || !named || (!constant && !access)) return;
    TileSpan word = tile_parse_span(parser), whole = word;
    TileDiagnostic *d =
        tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, word, "a name", tile_token_words(kind));
    tile_diagnostic_note(
        parser->diagnostics, d, (TileSpan){0},
        constant ? "`n: const i64` is known at compile time; the clause `static n` says so of a parameter or dimension"
                 : "the name stands first, and what the kernel does with the tensor before its type: `x: in f32[N]`");
    if (tile_parse_peek_ahead(parser, 2) == TILE_TOKEN_COLON) {
        const TileToken *name = &parser->tokens.list.items[parser->position + 1];
        whole.end = name[1].end;
        tile_diagnostic_edit(parser->diagnostics, d, whole, "%.*s: %s", (int)(name->end - name->begin),
                             parser->text + name->begin, constant ? "const" : tile_token_text(kind));
    }
    tile_parse_advance(parser);
}

void tile_parse_fail_typed_name(TileParser *parser, TileNameRef type) {
    if (parser->panic || tile_parse_peek(parser) != TILE_TOKEN_NAME) return;
    TileSpan name = tile_parse_span(parser), extents = {parser->file, name.end, name.end};
    const TileToken *list = parser->tokens.list.items;
    size_t at = parser->position + 1;
    if (list[at].kind == TILE_TOKEN_LEFT_BRACKET) {
        at = tile_parse_closing(parser, at, TILE_TOKEN_RIGHT_BRACKET);
        if (list[at].kind == TILE_TOKEN_RIGHT_BRACKET) extents.end = list[at].end;
    }
    TileScalar scalar;
    const char *own = tile_foreign_type(parser->arena, type.name);
    if (!own && !tile_scalar_find(type.name, strlen(type.name), &scalar)) return;
    TileDiagnostic *d = tile_diagnose(
        parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, name, "`:`",
        tile_arena_format(parser->arena, "the name `%.*s`", (int)(name.end - name.begin), parser->text + name.begin));
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "the name stands first, and its type behind `:`");
    tile_diagnostic_edit(parser->diagnostics, d, (TileSpan){parser->file, type.span.begin, extents.end},
                         "%.*s: %s%s%.*s", (int)(name.end - name.begin), parser->text + name.begin,
                         extents.end > extents.begin ? "in " : "", own ? own : type.name,
                         (int)(extents.end - extents.begin), parser->text + extents.begin);
    parser->panic = true;
}
