/* The cursor over the tokens, and error recovery. */
#include "parser/syntax/parse.h"

#include <string.h>

#include "lang/scalar/scalar.h"

static const TileToken *current(const TileParser *parser) { return &parser->tokens.list.items[parser->position]; }

TileTokenKind tile_parse_peek(const TileParser *parser) {
    const TileToken *token = current(parser);
    bool newline = token->newline && !parser->newline_taken && !parser->header && token->kind != TILE_TOKEN_ELSE;
    return newline ? TILE_TOKEN_NEWLINE : (TileTokenKind)token->kind;
}

TileTokenKind tile_parse_peek_ahead(const TileParser *parser, size_t ahead) {
    size_t last = parser->tokens.list.count - 1;
    size_t wanted = parser->position + ahead;
    return (TileTokenKind)parser->tokens.list.items[wanted < last ? wanted : last].kind;
}

TileSpan tile_parse_span(const TileParser *parser) {
    const TileToken *token = current(parser);
    return (TileSpan){parser->file, token->begin, token->end};
}

uint32_t tile_parse_last_end(const TileParser *parser) {
    return parser->position ? parser->tokens.list.items[parser->position - 1].end : 0;
}

TileSpan tile_parse_span_from(const TileParser *parser, TileSpan begin) {
    uint32_t end = tile_parse_last_end(parser);
    return (TileSpan){parser->file, begin.begin, end > begin.begin ? end : begin.end};
}

void tile_parse_advance(TileParser *parser) {
    if (tile_parse_peek(parser) == TILE_TOKEN_NEWLINE) {
        parser->newline_taken = true;
        return;
    }
    if (current(parser)->kind == TILE_TOKEN_END) return;
    parser->position++;
    parser->newline_taken = false;
}

bool tile_parse_at_word(const TileParser *parser, const char *word) {
    const TileToken *token = current(parser);
    const char *name = parser->text + token->begin;
    size_t length = token->end - token->begin;
    return token->kind == TILE_TOKEN_NAME && *name == *word && strncmp(name, word, length) == 0 && !word[length] &&
           tile_parse_peek(parser) == TILE_TOKEN_NAME;
}

bool tile_parse_at_foreign(const TileParser *parser, const char *word) { return tile_parse_at_word(parser, word); }

bool tile_parse_accept(TileParser *parser, TileTokenKind kind) {
    if (parser->panic || tile_parse_peek(parser) != kind) return false;
    tile_parse_advance(parser);
    return true;
}

/* The location of a missing token: after the previous one if a new line has begun. */
static TileSpan failure_span(const TileParser *parser) {
    TileSpan span = tile_parse_span(parser);
    if (!current(parser)->line_break || !parser->position) return span;
    uint32_t end = tile_parse_last_end(parser);
    return (TileSpan){parser->file, end, end};
}

/* Describes the token that was found. */
static const char *found_words(TileParser *parser) {
    TileTokenKind found = tile_parse_peek(parser);
    TileSpan span = tile_parse_span(parser);
    if (found != TILE_TOKEN_NAME) return tile_token_words(found);
    return tile_arena_format(parser->arena, "the name `%.*s`", (int)(span.end - span.begin), parser->text + span.begin);
}

void tile_parse_propose_join(TileParser *parser, TileDiagnostic *d, TileSpan operator) {
    const char *text = parser->text;
    uint32_t end = operator.begin, line;
    while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '\n')) end--;
    for (line = end; line > 0 && text[line - 1] != '\n'; line--)
        if (line < end && text[line] == '/' && text[line - 1] == '/') return;
    TileSpan gap = {parser->file, end, operator.end };
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){parser->file, end, end},
                         "the statement before ends with its line; an operator at the end of a line continues it");
    tile_diagnostic_edit(parser->diagnostics, d, gap, " %.*s", (int)(operator.end - operator.begin),
                         text + operator.begin);
}

TileDiagnostic *tile_parse_fail_item(TileParser *parser) {
    parser->panic = true;
    return tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, tile_parse_span(parser),
                         "`kernel`, `fn`, `const`, `import`, `export` or `test`", found_words(parser));
}

/* An unterminated string literal has consumed the tokens that close the rest of the item. */
static bool is_swallowed(const TileParser *parser) {
    uint32_t begin = parser->tokens.list.items[parser->item].begin, here = current(parser)->begin;
    for (size_t i = 0; i < parser->tokens.open_texts.count; i++)
        if (parser->tokens.open_texts.items[i] >= begin && parser->tokens.open_texts.items[i] < here) return true;
    return false;
}

TileDiagnostic *tile_parse_fail(TileParser *parser, const char *expected) {
    if (parser->panic) return NULL;
    parser->panic = true;
    if (is_swallowed(parser)) return NULL;
    TileTokenKind found = tile_parse_peek(parser);
    const char *words = found_words(parser);
    TileSpan span = tile_parse_span(parser);
    bool behind = !parser->newline_taken || tile_parse_at_item(parser);
    if (current(parser)->line_break && behind && found != TILE_TOKEN_END) {
        span = failure_span(parser);
        if (parser->header == false) words = "the end of the line";
    }
    return tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, span, expected, words);
}

/* A missing closing bracket is reported right after the previous token, unless the current token may belong inside. */
static bool may_close(TileTokenKind wanted, TileTokenKind found) {
    switch (found) {
    case TILE_TOKEN_END:
    case TILE_TOKEN_NEWLINE:
    case TILE_TOKEN_LEFT_BRACE:
    case TILE_TOKEN_RIGHT_BRACE:
    case TILE_TOKEN_RIGHT_PAREN:
    case TILE_TOKEN_RIGHT_BRACKET:
    case TILE_TOKEN_ARROW:
    case TILE_TOKEN_ASSIGN: return wanted == TILE_TOKEN_RIGHT_PAREN || wanted == TILE_TOKEN_RIGHT_BRACKET;
    default: return false;
    }
}

static bool begins_value(TileTokenKind kind) {
    switch (kind) {
    case TILE_TOKEN_NAME:
    case TILE_TOKEN_INTEGER:
    case TILE_TOKEN_FLOAT:
    case TILE_TOKEN_STRING:
    case TILE_TOKEN_TRUE:
    case TILE_TOKEN_FALSE:
    case TILE_TOKEN_INF:
    case TILE_TOKEN_NAN:
    case TILE_TOKEN_IF:
    case TILE_TOKEN_MINUS:
    case TILE_TOKEN_LEFT_PAREN: return true;
    default: return false;
    }
}

static bool begins_type(TileTokenKind kind) {
    return kind == TILE_TOKEN_NAME || kind == TILE_TOKEN_IN || kind == TILE_TOKEN_OUT || kind == TILE_TOKEN_INOUT ||
           kind == TILE_TOKEN_CONST || kind == TILE_TOKEN_FN;
}

/* `f32 x`, as in C: the mistake is not the missing colon. */
static bool follows_type(const TileParser *parser) {
    const TileToken *last = &parser->tokens.list.items[parser->position ? parser->position - 1 : 0];
    TileScalar scalar;
    return tile_scalar_find(parser->text + last->begin, last->end - last->begin, &scalar);
}

/* The text that is missing between a name and its type or value, on one line; NULL: none. */
static const char *missing_link(const TileParser *parser, TileTokenKind wanted, TileTokenKind found) {
    if (current(parser)->line_break) return NULL;
    bool name_follows = found == TILE_TOKEN_NAME && tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_ASSIGN;
    switch (wanted) {
    case TILE_TOKEN_COLON: return begins_type(found) && !follows_type(parser) ? ":" : NULL;
    case TILE_TOKEN_ASSIGN: return begins_value(found) && !name_follows ? " =" : NULL;
    case TILE_TOKEN_IN: return (parser->header ? found == TILE_TOKEN_LEFT_BRACE : begins_value(found)) ? " in" : NULL;
    case TILE_TOKEN_FOR: return found == TILE_TOKEN_NAME ? " for" : NULL;
    default: return NULL;
    }
}

static const char *missing_token(const TileParser *parser, TileTokenKind wanted) {
    TileTokenKind found = tile_parse_peek(parser);
    const char *link = missing_link(parser, wanted, found);
    if (link) return link;
    bool operand = found == TILE_TOKEN_NAME || found == TILE_TOKEN_INTEGER || found == TILE_TOKEN_FLOAT;
    bool closes = wanted == TILE_TOKEN_RIGHT_PAREN || wanted == TILE_TOKEN_RIGHT_BRACKET;
    if (closes && operand && !current(parser)->line_break) return ",";
    bool ends = found == TILE_TOKEN_END || tile_parse_at_item(parser);
    if (wanted == TILE_TOKEN_RIGHT_BRACE && ends) return "\n}";
    return may_close(wanted, found) ? tile_token_text(wanted) : NULL;
}

bool tile_parse_expect(TileParser *parser, TileTokenKind kind) {
    if (parser->panic) return false;
    if (tile_parse_accept(parser, kind)) return true;
    bool ended = tile_parse_peek(parser) == TILE_TOKEN_END || tile_parse_at_item(parser);
    if (kind == TILE_TOKEN_RIGHT_BRACE && ended && parser->diagnostics->error_count > parser->item_errors) {
        parser->panic = true; /* the brace was consumed by the previous error */
        return false;
    }
    const char *missing = missing_token(parser, kind);
    bool equals = kind == TILE_TOKEN_IN && !parser->header && tile_parse_peek(parser) == TILE_TOKEN_ASSIGN;
    TileSpan found = tile_parse_span(parser);
    TileDiagnostic *d = tile_parse_fail(parser, tile_token_words(kind));
    uint32_t end = tile_parse_last_end(parser);
    if (equals) tile_diagnostic_edit(parser->diagnostics, d, found, "in");
    if (missing) tile_diagnostic_edit(parser->diagnostics, d, (TileSpan){parser->file, end, end}, "%s", missing);
    return false;
}

TileNameRef tile_parse_name(TileParser *parser) {
    TileSpan span = tile_parse_span(parser);
    TileTokenKind kind = tile_parse_peek(parser);
    if (kind == TILE_TOKEN_NAME && !parser->panic) {
        const char *name = tile_intern(parser->ast->names, parser->text + span.begin, span.end - span.begin);
        tile_parse_advance(parser);
        return (TileNameRef){name, span};
    }
    if (kind >= TILE_TOKEN_KERNEL && kind <= TILE_TOKEN_NAN && !parser->panic && !tile_parse_at_item(parser)) {
        parser->panic = true;
        TileDiagnostic *d =
            tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_RESERVED_WORD, span, tile_token_text(kind));
        tile_diagnostic_edit(parser->diagnostics, d, span, "%s_", tile_token_text(kind));
    }
    tile_parse_fail(parser, "a name");
    return (TileNameRef){"", span};
}

const char *tile_parse_string(TileParser *parser) {
    TileSpan span = tile_parse_span(parser);
    TileText text = {.arena = parser->arena};
    tile_parse_advance(parser);
    for (uint32_t i = span.begin + 1; i < span.end; i++) {
        char c = parser->text[i];
        if (c == '"') break;
        if (c == '\\' && i + 1 < span.end) {
            c = parser->text[++i];
            if (c == 'n') c = '\n';
            if (c == 't') c = '\t';
        }
        tile_text_add_char(&text, c);
    }
    return tile_text_get(&text);
}

size_t tile_parse_closing(const TileParser *parser, size_t at, TileTokenKind kind) {
    const TileToken *list = parser->tokens.list.items;
    for (at++; list[at].kind != kind && list[at].kind != TILE_TOKEN_END; at++)
        if (list[at].line_break || list[at].kind == TILE_TOKEN_COLON || list[at].kind == TILE_TOKEN_LEFT_BRACE) break;
    return at;
}

bool tile_parse_enter(TileParser *parser) {
    if (parser->panic) return false;
    if (parser->depth >= TILE_MAX_DEPTH) {
        parser->panic = true;
        tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_TOO_DEEP, tile_parse_span(parser), (unsigned)TILE_MAX_DEPTH);
        return false;
    }
    parser->depth++;
    return true;
}

static uint32_t column_of(const TileParser *parser, const TileToken *token) {
    uint32_t begin = token->begin;
    while (begin > 0 && parser->text[begin - 1] != '\n') begin--;
    return token->begin - begin;
}

/* An item does not begin further to the right than the one before. */
bool tile_parse_at_item(const TileParser *parser) {
    if (!current(parser)->line_break) return false;
    if (column_of(parser, current(parser)) > column_of(parser, &parser->tokens.list.items[parser->item])) return false;
    switch (current(parser)->kind) {
    case TILE_TOKEN_KERNEL:
    case TILE_TOKEN_FN:
    case TILE_TOKEN_IMPORT:
    case TILE_TOKEN_EXPORT:
    case TILE_TOKEN_CONST:
    case TILE_TOKEN_TEST: return true;
    default: return false;
    }
}

/* Is this a keyword that only begins statements, on a new line? */
static bool at_statement(const TileParser *parser) {
    if (!current(parser)->line_break) return false;
    switch (current(parser)->kind) {
    case TILE_TOKEN_LET:
    case TILE_TOKEN_VAR:
    case TILE_TOKEN_FOR:
    case TILE_TOKEN_WHILE:
    case TILE_TOKEN_GRID:
    case TILE_TOKEN_TEMP:
    case TILE_TOKEN_RETURN: return true;
    default: return false;
    }
}

/* Skips the statement that has the error: to the end of its line, or of the block that begins on it, but not past the
 * brace that closes the enclosing block. */
void tile_parse_resume_statement(TileParser *parser) {
    unsigned open = 0;
    parser->panic = parser->header = false;
    for (bool first = true;; first = false) {
        TileTokenKind kind = tile_parse_peek(parser);
        if (kind == TILE_TOKEN_END || (!first && tile_parse_at_item(parser))) return;
        if (open == 0 && (kind == TILE_TOKEN_RIGHT_BRACE || at_statement(parser))) return;
        if ((kind == TILE_TOKEN_NEWLINE || kind == TILE_TOKEN_SEMICOLON) && open == 0) return;
        if (kind == TILE_TOKEN_LEFT_BRACE) open++;
        if (kind == TILE_TOKEN_RIGHT_BRACE) open--;
        tile_parse_advance(parser);
    }
}

/* Skips to the next item after the token `begin`, the first of the broken one. */
void tile_parse_resume_item(TileParser *parser, size_t begin) {
    parser->panic = parser->header = false;
    while (current(parser)->kind != TILE_TOKEN_END && (parser->position == begin || !tile_parse_at_item(parser))) {
        parser->position++;
        parser->newline_taken = false;
    }
}
