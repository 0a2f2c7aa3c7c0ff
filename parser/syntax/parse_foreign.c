/* Words and forms that other languages have for what this one says otherwise. Each is reported where it stands, with an
 * edit, and then understood, so that one of them hides no other mistake. */
#include <string.h>

#include "lang/scalar/scalar.h"
#include "parser/syntax/parse.h"

const char *tile_foreign_type(TileArena *arena, const char *name) {
    static const char *const words[][2] = {{"float", "f32"}, {"double", "f64"}, {"half", "f16"},
                                           {"int", "i64"},   {"long", "i64"},   {"constexpr", "const i64"},
                                           {"int4", "i4"},   {"uint4", "u4"},   {"fp4", "f4e2m1"}, {"float4_e2m1fn", "f4e2m1"},
                                           {"e2m1", "f4e2m1"}, {"mxfp4", "f4e2m1"}, {"e8m0", "f8e8m0"}, {"float8_e8m0fnu", "f8e8m0"},
                                           {"float8_e4m3fn", "f8e4m3"}, {"fp8", "f8e4m3"}, {"e4m3", "f8e4m3"}, {"e5m2", "f8e5m2"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i][0]) == 0) return words[i][1];
    static const char *const forms[][2] = {{"float", "f"}, {"bfloat", "bf"}, {"int", "i"}, {"uint", "u"}, {"fp", "f"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t length = strlen(forms[i][0]);
        TileScalar scalar;
        if (strncmp(name, forms[i][0], length) != 0) continue;
        size_t digits = strspn(name + length, "0123456789");
        bool suffix = strcmp(name + length + digits, "_t") == 0; /* int32_t */
        const char *own = tile_arena_format(arena, "%s%.*s%s", forms[i][1], (int)digits, name + length,
                                            suffix ? "" : name + length + digits);
        if (tile_scalar_find(own, strlen(own), &scalar)) return own;
    }
    return NULL;
}

static const char *word_at(const TileParser *parser, TileSpan span) {
    return tile_arena_string(parser->arena, parser->text + span.begin, span.end - span.begin);
}

static TileDiagnostic *report(TileParser *parser, TileSpan span, const char *expected, const char *found) {
    return tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, span, expected, found);
}

/* ---- operators ---- */

TileTokenKind tile_parse_operator(const TileParser *parser) {
    TileTokenKind kind = tile_parse_peek(parser);
    if (kind == TILE_TOKEN_ASSIGN && parser->compares) return TILE_TOKEN_EQUAL; /* `if a = b` */
    if (kind != TILE_TOKEN_NAME) return kind;
    return tile_parse_at_word(parser, "and") ? TILE_TOKEN_AND : tile_parse_at_word(parser, "or") ? TILE_TOKEN_OR : kind;
}

void tile_parse_report_operator(TileParser *parser, TileTokenKind meant) {
    if (tile_parse_peek(parser) == meant || parser->panic) return;
    TileSpan span = tile_parse_span(parser);
    const char *name = meant == TILE_TOKEN_EQUAL ? "" : "the name ";
    TileDiagnostic *d = report(parser, span, tile_token_words(meant), tile_arena_format(parser->arena, "%s`%s`", name, word_at(parser, span)));
    tile_diagnostic_edit(parser->diagnostics, d, span, "%s", tile_token_text(meant));
}

TileTokenKind tile_parse_comparison(TileParser *parser, TileTokenKind kind, TileSpan op) {
    TileSpan second = tile_parse_span(parser);
    TileTokenKind next = tile_parse_peek(parser);
    bool differs = kind == TILE_TOKEN_LESS && next == TILE_TOKEN_GREATER;
    bool equals = (kind == TILE_TOKEN_EQUAL || kind == TILE_TOKEN_NOT_EQUAL) && next == TILE_TOKEN_ASSIGN;
    if (parser->panic || second.begin != op.end || (!differs && !equals)) return kind;
    TileTokenKind meant = differs ? TILE_TOKEN_NOT_EQUAL : kind;
    TileSpan both = {parser->file, op.begin, second.end};
    TileDiagnostic *d =
        report(parser, both, tile_token_words(meant), tile_arena_format(parser->arena, "`%s`", word_at(parser, both)));
    tile_diagnostic_edit(parser->diagnostics, d, both, "%s", tile_token_text(meant));
    tile_parse_advance(parser);
    return meant;
}

bool tile_parse_at_not(const TileParser *parser) {
    if (!tile_parse_at_word(parser, "not")) return false;
    TileTokenKind next = tile_parse_peek_ahead(parser, 1);
    return next == TILE_TOKEN_NAME || next == TILE_TOKEN_TRUE || next == TILE_TOKEN_FALSE;
}

void tile_parse_report_not(TileParser *parser, TileSpan word, const TileExpr *operand) {
    if (parser->panic) return;
    bool loose = operand->kind == TILE_EXPR_BINARY && !operand->parenthesised;
    TileSpan whole = {parser->file, word.begin, operand->span.end};
    TileDiagnostic *d = report(parser, word, "`!`", "the name `not`");
    tile_diagnostic_edit(parser->diagnostics, d, whole, loose ? "!(%s)" : "!%s", word_at(parser, operand->span));
}

/* What `**` raises: the last operand of what stands left of it, without its sign. */
static const TileExpr *raised(const TileExpr *left) {
    while (!left->parenthesised && (left->kind == TILE_EXPR_BINARY || left->kind == TILE_EXPR_UNARY))
        left = left->kind == TILE_EXPR_BINARY ? left->b : left->a;
    return left;
}

void tile_parse_report_power(TileParser *parser, TileSpan op, const TileExpr *left, const TileExpr *right) {
    if (parser->panic) return;
    const TileExpr *base = raised(left);
    TileSpan whole = {parser->file, base->span.begin, right->span.end};
    const char *x = word_at(parser, base->span), *y = word_at(parser, right->span);
    bool square = strcmp(y, "2") == 0 && (base->kind == TILE_EXPR_NAME || base->kind == TILE_EXPR_INDEX);
    TileDiagnostic *d = report(parser, op, "an operator", "`**`");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "`pow(x, y)` raises a float to the power y");
    tile_diagnostic_edit(parser->diagnostics, d, whole, square ? "(%s * %s)" : "pow(%s, %s)", x, square ? x : y);
}

/* ---- expressions ---- */

static const char choices[] = "`where(c, a, b)` chooses by element, `if c { a } else { b }` by one bool";

void tile_parse_report_ternary(TileParser *parser, TileSpan word, const TileExpr *value, const TileExpr *rest) {
    if (parser->panic) return;
    bool chosen = rest->kind == TILE_EXPR_BINARY && rest->op == TILE_TOKEN_ELSE && !rest->parenthesised;
    TileSpan whole = {parser->file, value->span.begin, rest->span.end};
    TileDiagnostic *d = report(parser, word, "the end of the expression", "`if`");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, choices);
    if (chosen)
        tile_diagnostic_edit(parser->diagnostics, d, whole, "where(%s, %s, %s)", word_at(parser, rest->a->span),
                             word_at(parser, value->span), word_at(parser, rest->b->span));
}

void tile_parse_report_choice(TileParser *parser, TileSpan op, const TileExpr *condition, const TileExpr *value,
                              const TileExpr *other) {
    if (parser->panic) return;
    TileDiagnostic *d = report(parser, op, "the end of the expression", "`?`");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, choices);
    if (!other) {
        parser->panic = true;
        return;
    }
    TileSpan whole = {parser->file, condition->span.begin, other->span.end};
    tile_diagnostic_edit(parser->diagnostics, d, whole, "where(%s, %s, %s)", word_at(parser, condition->span),
                         word_at(parser, value->span), word_at(parser, other->span));
}

bool tile_parse_at_cast(const TileParser *parser, const TileExpr *type) {
    TileScalar scalar;
    TileTokenKind next = tile_parse_peek(parser);
    bool operand = next == TILE_TOKEN_NAME || next == TILE_TOKEN_INTEGER || next == TILE_TOKEN_FLOAT;
    return operand && type->kind == TILE_EXPR_NAME && type->parenthesised && !parser->panic &&
           (tile_scalar_find(type->name, strlen(type->name), &scalar) || tile_foreign_type(parser->arena, type->name));
}

void tile_parse_skip_as(TileParser *parser, const TileExpr *operand) {
    const TileToken *type = &parser->tokens.list.items[parser->position + 1];
    if (parser->panic || !tile_parse_at_word(parser, "as") || type->kind != TILE_TOKEN_NAME) return;
    TileSpan word = tile_parse_span(parser);
    const char *name = word_at(parser, (TileSpan){parser->file, type->begin, type->end});
    const char *own = tile_foreign_type(parser->arena, name);
    TileScalar scalar;
    if (!own && !tile_scalar_find(name, strlen(name), &scalar)) return;
    TileSpan whole = {parser->file, operand->span.begin, type->end};
    if (!own) own = name;
    TileDiagnostic *d = report(parser, word, tile_arena_format(parser->arena, "the conversion `%s(..)`", own), "the name `as`");
    tile_diagnostic_edit(parser->diagnostics, d, whole, parser->text[operand->span.begin] == '(' && operand->parenthesised ? "%s%s" : "%s(%s)", own,
                         word_at(parser, operand->span));
    tile_parse_advance(parser);
    tile_parse_advance(parser);
}

void tile_parse_report_cast(TileParser *parser, const TileExpr *type, const TileExpr *operand) {
    if (parser->panic) return;
    const char *own = tile_foreign_type(parser->arena, type->name);
    if (!own) own = type->name;
    TileSpan whole = {parser->file, type->span.begin, operand->span.end};
    TileDiagnostic *d =
        report(parser, type->span, tile_arena_format(parser->arena, "the conversion `%s(..)`", own), "a cast");
    tile_diagnostic_edit(parser->diagnostics, d, whole, "%s(%s)", own, word_at(parser, operand->span));
}

/* `lambda a, b:`, `|a, b|` and, behind its parameters, `=>` */
bool tile_parse_fail_lambda(TileParser *parser) {
    const TileToken *token = &parser->tokens.list.items[parser->position];
    TileTokenKind next = tile_parse_peek_ahead(parser, 1);
    bool word = tile_parse_at_word(parser, "lambda") && (next == TILE_TOKEN_NAME || next == TILE_TOKEN_COLON);
    bool bar = token->kind == TILE_TOKEN_BAR && next == TILE_TOKEN_NAME;
    bool arrow = token->kind == TILE_TOKEN_ASSIGN && next == TILE_TOKEN_GREATER && token[1].begin == token->end;
    if (parser->panic || (!word && !bar && !arrow)) return false;
    TileSpan span = tile_parse_span(parser);
    if (arrow) span.end = token[1].end;
    TileDiagnostic *d = report(parser, span, arrow ? "the end of the expression" : "an expression",
                               arrow ? "`=>`" : bar ? "`|`" : "the name `lambda`");
    tile_diagnostic_note(
        parser->diagnostics, d, (TileSpan){0},
        "a function has a name: `fn add(a: f32, b: f32) -> f32 { return a + b }`, at the top of the file");
    return parser->panic = true;
}

/* ---- indices ---- */

void tile_parse_report_ellipsis(TileParser *parser, TileSpan span) {
    if (parser->panic) return;
    TileDiagnostic *d = report(parser, span, "`:`", "`...`");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "each dimension has an entry of its own");
    tile_diagnostic_edit(parser->diagnostics, d, span, ":");
}

void tile_parse_report_slice(TileParser *parser, TileSpan span, const TileExpr *low, const TileExpr *high, bool stepped) {
    if (parser->panic) return;
    if (stepped) {
        TileDiagnostic *d = report(parser, span, "a range", "a slice with a step");
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                             "a range times an integer takes steps: `y[n] = x[n * 2 + 1]` for n in tiles(N, 64)");
        return;
    }
    bool begins = !low || low->kind == TILE_EXPR_INTEGER, ends = high && high->kind == TILE_EXPR_INTEGER;
    uint64_t from = low && begins ? low->integer : 0;
    TileDiagnostic *d = report(parser, span, "`span(start, size)`", "a slice");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                         "a range has a constant size; `span(low..high, size)` ends before `high`");
    if (begins && ends && from < high->integer)
        tile_diagnostic_edit(parser->diagnostics, d, span, "span(%llu, %llu)", (unsigned long long)from,
                             (unsigned long long)(high->integer - from));
}

void tile_parse_fail_mask(TileParser *parser, const TileExpr *entry) {
    if (parser->panic || entry->kind != TILE_EXPR_NAME || tile_parse_peek(parser) != TILE_TOKEN_ASSIGN) return;
    const TileToken *list = parser->tokens.list.items;
    size_t at = parser->position;
    for (int depth = 0; list[at].kind != TILE_TOKEN_END && !list[at].line_break; at++) {
        depth += list[at].kind == TILE_TOKEN_LEFT_PAREN || list[at].kind == TILE_TOKEN_LEFT_BRACKET;
        depth -= list[at].kind == TILE_TOKEN_RIGHT_PAREN || list[at].kind == TILE_TOKEN_RIGHT_BRACKET;
        if (depth < 0) break;
    }
    TileSpan word = entry->span, rest = {parser->file, word.begin, list[at].begin};
    while (rest.begin && strchr(" ,", parser->text[rest.begin - 1])) rest.begin--;
    TileDiagnostic *d = report(parser, word, "`]`", tile_arena_format(parser->arena, "the argument `%s`", entry->name));
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                         "lanes of a range that lie outside of the tensor are masked by themselves; `x[i] else 0` fills where an index does");
    if (list[at].kind == TILE_TOKEN_RIGHT_BRACKET) tile_diagnostic_edit(parser->diagnostics, d, rest, "%s", "");
    parser->panic = true;
}

bool tile_parse_report_loose_bits(TileParser *parser, TileDiagnostic *d, const TileExpr *middle) {
    bool bits = middle->kind == TILE_EXPR_BINARY && !middle->parenthesised &&
                (middle->op == TILE_TOKEN_AMPERSAND || middle->op == TILE_TOKEN_BAR);
    if (!bits) return false;
    const char *meant = middle->op == TILE_TOKEN_BAR ? "||" : "&&";
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "`%s` joins bits, and binds before a comparison; `%s` joins conditions",
                         tile_token_text((TileTokenKind)middle->op), meant);
    tile_diagnostic_edit(parser->diagnostics, d, middle->op_span, "%s", meant);
    return true;
}

/* ---- pointers ---- */

static const char no_pointers[] = "there are no pointers: a tensor has its extents in brackets, and what the kernel does with it in "
                                  "front of its type: `x: in f32[N], y: out f32[N]`";

void tile_parse_fail_pointer(TileParser *parser, const TileTypeExpr *type) {
    if (parser->panic || tile_parse_peek(parser) != TILE_TOKEN_STAR) return;
    TileSpan star = tile_parse_span(parser), whole = {parser->file, type->name_span.begin, star.end};
    TileDiagnostic *d = report(parser, star, "`[` and the extents of a tensor", "`*`");
    const char *own = tile_foreign_type(parser->arena, type->name);
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, no_pointers);
    tile_diagnostic_edit(parser->diagnostics, d, whole, "%s%s[N]", type->access ? "" : "in ", own ? own : type->name);
    parser->panic = true;
}

bool tile_parse_fail_reference(TileParser *parser) {
    if (parser->panic || tile_parse_peek(parser) != TILE_TOKEN_AMPERSAND) return false;
    const TileToken *token = &parser->tokens.list.items[parser->position];
    TileSpan whole = tile_parse_span(parser);
    TileDiagnostic *d = report(parser, whole, "a type", "`&`");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, no_pointers);
    parser->panic = true;
    bool mutable = token[1].kind == TILE_TOKEN_NAME;
    token += 1 + mutable;
    bool slice = token->kind == TILE_TOKEN_LEFT_BRACKET && token[1].kind == TILE_TOKEN_NAME && token[2].kind == TILE_TOKEN_RIGHT_BRACKET;
    if (!slice) return true;
    whole.end = token[2].end;
    const char *element = word_at(parser, (TileSpan){parser->file, token[1].begin, token[1].end});
    tile_diagnostic_edit(parser->diagnostics, d, whole, "%s %s[N]", mutable ? "out" : "in", element);
    return true;
}

bool tile_parse_fail_pointer_parameter(TileParser *parser) {
    const TileToken *first = &parser->tokens.list.items[parser->position], *type = first;
    bool constant = first->kind == TILE_TOKEN_CONST;
    type += constant;
    const TileToken *name = type + 1;
    if (parser->panic || type->kind != TILE_TOKEN_NAME || name->kind != TILE_TOKEN_STAR) return false;
    do name++;
    while (name->kind == TILE_TOKEN_STAR || (name->kind == TILE_TOKEN_NAME && name[1].kind == TILE_TOKEN_NAME)); /* __restrict__ */
    if (name->kind != TILE_TOKEN_NAME) return false;
    TileSpan whole = {parser->file, first->begin, name->end};
    const char *element = word_at(parser, (TileSpan){parser->file, type->begin, type->end});
    const char *own = tile_foreign_type(parser->arena, element);
    TileDiagnostic *d = report(parser, whole, "a name and `:`", "a pointer of C");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, no_pointers);
    tile_diagnostic_edit(parser->diagnostics, d, whole, "%s: %s %s[N]", word_at(parser, (TileSpan){parser->file, name->begin, name->end}),
                         constant ? "in" : "out", own ? own : element);
    return parser->panic = true;
}

/* ---- statements ---- */

void tile_parse_report_wrapped(TileParser *parser, TileSpan open) {
    TileSpan whole = {parser->file, open.begin, tile_parse_span(parser).end};
    if (parser->panic || !tile_parse_expect(parser, TILE_TOKEN_RIGHT_PAREN)) return;
    TileDiagnostic *d = report(parser, open, "a name", "`(`");
    tile_diagnostic_edit(parser->diagnostics, d, whole, "%.*s", (int)(whole.end - whole.begin - 2), parser->text + whole.begin + 1);
}

bool tile_parse_report_elif(TileParser *parser) {
    static const char *const elifs[] = {"elif", "elseif", "elsif"};
    const TileToken *token = &parser->tokens.list.items[parser->position];
    if (parser->panic || token->kind != TILE_TOKEN_NAME) return false;
    TileSpan span = {parser->file, token->begin, token->end};
    const char *word = word_at(parser, span);
    bool known = false;
    for (size_t i = 0; i < sizeof elifs / sizeof *elifs; i++) known = known || strcmp(word, elifs[i]) == 0;
    if (!known) return false;
    TileDiagnostic *d = report(parser, span, "`else if`", tile_arena_format(parser->arena, "the name `%s`", word));
    tile_diagnostic_edit(parser->diagnostics, d, span, "else if");
    if (tile_parse_peek(parser) == TILE_TOKEN_NEWLINE) tile_parse_advance(parser);
    return true;
}

void tile_parse_skip_inclusive(TileParser *parser, TileSpan dots) {
    TileSpan sign = tile_parse_span(parser);
    if (parser->panic || tile_parse_peek(parser) != TILE_TOKEN_ASSIGN || sign.begin != dots.end) return;
    TileSpan both = {parser->file, dots.begin, sign.end};
    TileDiagnostic *d = report(parser, both, "`..`", "`..=`");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "`a..b` ends before b: up to b it is `a..b + 1`");
    const TileToken *last = &parser->tokens.list.items[parser->position + 1];
    TileTokenKind next = tile_parse_peek_ahead(parser, 2);
    bool plain = (last->kind == TILE_TOKEN_INTEGER || last->kind == TILE_TOKEN_NAME) && (next == TILE_TOKEN_LEFT_BRACE || next == TILE_TOKEN_COMMA || next == TILE_TOKEN_RIGHT_PAREN);
    both.end = last->end;
    if (plain)
        tile_diagnostic_edit(parser->diagnostics, d, both, "..%s + 1", word_at(parser, (TileSpan){parser->file, last->begin, last->end}));
    tile_parse_advance(parser);
}

bool tile_parse_fail_shared(TileParser *parser) {
    const TileToken *token = &parser->tokens.list.items[parser->position];
    if (parser->panic || !tile_parse_at_word(parser, "__shared__") || token[1].kind != TILE_TOKEN_NAME) return false;
    TileSpan whole = tile_parse_span(parser);
    TileDiagnostic *d = report(parser, whole, "`temp`", "the name `__shared__`");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                         "`temp` in a grid is memory of the program, shared or registers as it fits; who waits for whom is found by the compiler");
    parser->panic = true;
    if (token[2].kind != TILE_TOKEN_NAME || token[3].kind != TILE_TOKEN_LEFT_BRACKET) return true;
    size_t end = tile_parse_closing(parser, parser->position + 3, TILE_TOKEN_RIGHT_BRACKET);
    const TileToken *last = &parser->tokens.list.items[end];
    if (last->kind != TILE_TOKEN_RIGHT_BRACKET || last[1].kind == TILE_TOKEN_LEFT_BRACKET) return true;
    whole.end = last->end;
    const char *element = word_at(parser, (TileSpan){parser->file, token[1].begin, token[1].end});
    const char *own = tile_foreign_type(parser->arena, element);
    tile_diagnostic_edit(parser->diagnostics, d, whole, "temp %s: %s%s", word_at(parser, (TileSpan){parser->file, token[2].begin, token[2].end}),
                         own ? own : element, word_at(parser, (TileSpan){parser->file, token[3].begin, last->end}));
    return true;
}

bool tile_parse_skip_increment(TileParser *parser) {
    const TileToken *name = &parser->tokens.list.items[parser->position];
    if (parser->panic || name->kind != TILE_TOKEN_NAME) return false;
    bool twice = (name[1].kind == TILE_TOKEN_PLUS || name[1].kind == TILE_TOKEN_MINUS) && name[2].kind == name[1].kind &&
                 name[1].end == name[2].begin;
    bool ends = twice && (name[3].line_break || name[3].kind == TILE_TOKEN_SEMICOLON || name[3].kind == TILE_TOKEN_RIGHT_BRACE ||
                          name[3].kind == TILE_TOKEN_END);
    if (!ends) return false;
    TileSpan both = {parser->file, name[1].begin, name[2].end};
    TileDiagnostic *d = report(parser, both, "an operator", tile_arena_format(parser->arena, "`%s`", word_at(parser, both)));
    TileSpan whole = {parser->file, name->end, both.end};
    tile_diagnostic_edit(parser->diagnostics, d, whole, " %c= 1", parser->text[both.begin]);
    for (int i = 0; i < 3; i++) tile_parse_advance(parser);
    return true;
}

void tile_parse_skip_word(TileParser *parser, const char *word) {
    if (parser->panic || !tile_parse_at_word(parser, word)) return;
    if (tile_parse_peek_ahead(parser, 1) != TILE_TOKEN_LEFT_BRACE) return;
    TileSpan span = tile_parse_span(parser), before = {parser->file, tile_parse_last_end(parser), span.end};
    TileDiagnostic *d = report(parser, span, "`{`", tile_arena_format(parser->arena, "the name `%s`", word));
    tile_diagnostic_edit(parser->diagnostics, d, before, "%s", "");
    tile_parse_advance(parser);
}

void tile_parse_report_then(TileParser *parser, TileSpan word, const TileExpr *rest) {
    if (parser->panic) return;
    bool both = rest->kind == TILE_EXPR_BINARY && rest->op == TILE_TOKEN_ELSE && !rest->parenthesised;
    TileSpan whole = {parser->file, word.begin, rest->span.end};
    TileDiagnostic *d = report(parser, word, "`{`", "the name `then`");
    if (both)
        tile_diagnostic_edit(parser->diagnostics, d, whole, "{ %s } else { %s }", word_at(parser, rest->a->span),
                             word_at(parser, rest->b->span));
    else
        tile_diagnostic_edit(parser->diagnostics, d, whole, "{ %s }", word_at(parser, rest->span));
    parser->panic = true;
}

bool tile_parse_skip_mut(TileParser *parser, TileSpan let, TileNameRef name) {
    if (parser->panic || strcmp(name.name, "mut") != 0 || tile_parse_peek(parser) != TILE_TOKEN_NAME) return false;
    TileSpan both = {parser->file, let.begin, name.span.end};
    TileDiagnostic *d = report(parser, both, "`var`", "`let mut`");
    tile_diagnostic_edit(parser->diagnostics, d, both, "var");
    return true;
}

/* Is the name assigned further on in the item? */
static bool is_assigned(const TileParser *parser, TileSpan name) {
    size_t length = name.end - name.begin;
    for (size_t i = parser->position; i + 1 < parser->tokens.list.count; i++) {
        const TileToken *token = &parser->tokens.list.items[i];
        if (token->line_break && (token->kind == TILE_TOKEN_KERNEL || token->kind == TILE_TOKEN_FN)) return false;
        TileTokenKind next = (TileTokenKind)token[1].kind;
        bool same = token->kind == TILE_TOKEN_NAME && token->end - token->begin == length &&
                    memcmp(parser->text + token->begin, parser->text + name.begin, length) == 0;
        if (same && next >= TILE_TOKEN_ASSIGN && next <= TILE_TOKEN_SHR_ASSIGN) return true;
    }
    return false;
}

bool tile_parse_at_declaration(const TileParser *parser, const TileExpr *type) {
    TileScalar scalar;
    if (parser->panic || type->kind != TILE_EXPR_NAME || type->parenthesised) return false;
    if (tile_parse_peek(parser) != TILE_TOKEN_NAME || tile_parse_peek_ahead(parser, 1) != TILE_TOKEN_ASSIGN)
        return false;
    return tile_scalar_find(type->name, strlen(type->name), &scalar) || tile_foreign_type(parser->arena, type->name) ||
           strcmp(type->name, "auto") == 0;
}

void tile_parse_report_declaration(TileParser *parser, const TileExpr *type, TileSpan name, const TileExpr *value) {
    if (parser->panic) return;
    const char *own = tile_foreign_type(parser->arena, type->name), *x = word_at(parser, value->span);
    if (!own) own = type->name;
    bool open = strcmp(own, "auto") == 0;
    TileSpan whole = {parser->file, type->span.begin, value->span.end};
    TileDiagnostic *d =
        report(parser, type->span, "`let` or `var`", tile_arena_format(parser->arena, "the name `%s`", type->name));
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "a name has the type of its value");
    const char *typed = open ? x : tile_arena_format(parser->arena, "%s(%s)", own, x);
    tile_diagnostic_edit(parser->diagnostics, d, whole, "%s %s = %s", is_assigned(parser, name) ? "var" : "let",
                         word_at(parser, name), typed);
}

bool tile_parse_at_walrus(const TileParser *parser, const TileExpr *name) {
    return !parser->panic && name->kind == TILE_EXPR_NAME && tile_parse_peek(parser) == TILE_TOKEN_COLON &&
           tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_ASSIGN;
}

void tile_parse_report_walrus(TileParser *parser, TileSpan name, TileSpan op) {
    TileSpan both = {parser->file, name.begin, op.end};
    TileDiagnostic *d = report(parser, op, "`=`", "`:=`");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "`let` binds a name, `var` one that is assigned again");
    tile_diagnostic_edit(parser->diagnostics, d, both, "%s %s =", is_assigned(parser, name) ? "var" : "let",
                         word_at(parser, name));
}

void tile_parse_report_counted_loop(TileParser *parser, TileSpan header, TileSpan name, const TileExpr *low,
                                    const TileExpr *condition, const TileExpr *step) {
    TileDiagnostic *d = report(parser, header, "a name and `in`", "the header of a loop of C");
    bool below = condition->kind == TILE_EXPR_BINARY && condition->a->kind == TILE_EXPR_NAME &&
                 (condition->op == TILE_TOKEN_LESS || condition->op == TILE_TOKEN_LESS_EQUAL);
    if (below && strcmp(condition->a->name, word_at(parser, name)) == 0)
        tile_diagnostic_edit(parser->diagnostics, d, header, "%s in %s..%s%s%s%s", word_at(parser, name),
                             word_at(parser, low->span), word_at(parser, condition->b->span),
                             condition->op == TILE_TOKEN_LESS_EQUAL ? " + 1" : "", step ? " step " : "",
                             step ? word_at(parser, step->span) : "");
    parser->panic = true;
}

/* ---- items ---- */

/* `def k(x: in f32[N]`: has the first parameter a word that those of kernels have? */
static bool takes_tensors(const TileParser *parser) {
    if (tile_parse_peek_ahead(parser, 2) != TILE_TOKEN_LEFT_PAREN) return false;
    TileTokenKind word = tile_parse_peek_ahead(parser, 5);
    return word == TILE_TOKEN_IN || word == TILE_TOKEN_OUT || word == TILE_TOKEN_INOUT;
}

void tile_parse_propose_item(TileParser *parser, TileDiagnostic *d) {
    static const char *const words[][2] = {{"def", "fn"},       {"func", "fn"},       {"function", "fn"},
                                           {"fun", "fn"},       {"void", "fn"},       {"include", "import"},
                                           {"use", "import"},   {"using", "import"},  {"constexpr", "const"},
                                           {"define", "const"}, {"__device__", "fn"}, {"__global__", "kernel"}};
    TileSpan span = tile_parse_span(parser), whole = span;
    const char *word = word_at(parser, span);
    const TileToken *next = &parser->tokens.list.items[parser->position];
    uint32_t limit = (uint32_t)parser->diagnostics->files.items[parser->file].length;
    if (tile_parse_peek(parser) == TILE_TOKEN_AT) { /* a decorator */
        while (whole.end < limit && parser->text[whole.end] != '\n') whole.end++;
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "`kernel` alone says what is compiled");
        tile_diagnostic_edit(parser->diagnostics, d, whole, "%s", "");
    }
    bool fixed = tile_parse_peek(parser) == TILE_TOKEN_STATIC;
    const TileToken *type = next + fixed;
    if (type->kind == TILE_TOKEN_CONST) type++; /* static const float scale = 2 */
    TileScalar scalar;
    const char *element = type->kind == TILE_TOKEN_NAME ? word_at(parser, (TileSpan){parser->file, type->begin, type->end}) : "";
    bool typed = tile_scalar_find(element, strlen(element), &scalar) || tile_foreign_type(parser->arena, element);
    if (typed && type[1].kind == TILE_TOKEN_NAME && type[2].kind == TILE_TOKEN_ASSIGN) {
        whole.end = type->end;
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "a constant has the type of its value: `const SCALE = f32(2)`");
        tile_diagnostic_edit(parser->diagnostics, d, whole, "const");
        return;
    }
    if ((tile_parse_peek(parser) == TILE_TOKEN_VAR || tile_parse_peek(parser) == TILE_TOKEN_LET) && next[1].kind == TILE_TOKEN_NAME)
        tile_diagnostic_edit(parser->diagnostics, d, span, "const");
    if (tile_parse_peek(parser) != TILE_TOKEN_NAME) return;
    if (strcmp(word, "from") == 0 && next[1].kind == TILE_TOKEN_NAME) { /* from nn import gelu */
        TileSpan module = {parser->file, next[1].begin, next[1].end};
        while (whole.end < limit && parser->text[whole.end] != '\n') whole.end++;
        tile_diagnostic_edit(parser->diagnostics, d, whole, "import %s", word_at(parser, module));
        return;
    }
    if (strcmp(word, "__global__") == 0 && next[1].kind == TILE_TOKEN_NAME) whole.end = next[1].end; /* .. void */
    bool kernel = takes_tensors(parser);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i][0]) == 0)
            tile_diagnostic_edit(parser->diagnostics, d, whole, "%s", kernel && strcmp(words[i][1], "fn") == 0 ? "kernel" : words[i][1]);
}
