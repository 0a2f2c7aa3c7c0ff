/* Statements and the sequences that hold them. */
#include <string.h>

#include "lang/scalar/scalar.h"
#include "parser/syntax/parse.h"

/* Can an expression be a statement? A call, or an `if` whose branches end in such. */
void tile_parse_check_effect(TileParser *parser, const TileExpr *expr) {
    if (expr->kind == TILE_EXPR_CALL || expr->kind == TILE_EXPR_RUN) return;
    if (expr->kind != TILE_EXPR_IF) {
        TileDiagnostic *d = tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_NO_EFFECT, expr->span);
        bool operator= expr->kind == TILE_EXPR_UNARY && parser->text[expr->span.begin] == '-';
        TileSpan sign = {expr->span.file, expr->span.begin, expr->span.begin + 1};
        if (operator) tile_parse_propose_join(parser, d, sign);
        if (expr->kind == TILE_EXPR_BINARY && expr->op == TILE_TOKEN_EQUAL)
            tile_diagnostic_edit(parser->diagnostics, d, expr->op_span, "=");
        if (expr->kind == TILE_EXPR_NAME && strcmp(expr->name, "pass") == 0) {
            tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "a block may be empty: `{}`");
            tile_diagnostic_edit(parser->diagnostics, d, expr->span, "%s", "");
        }
        return;
    }
    if (expr->then) tile_parse_check_sequence_effect(parser, expr->then);
    if (expr->otherwise) tile_parse_check_sequence_effect(parser, expr->otherwise);
}

void tile_parse_check_sequence_effect(TileParser *parser, const TileSequence *sequence) {
    if (sequence->value) tile_parse_check_effect(parser, sequence->value);
}

/* `_` for what is not used: names that begin with it are. */
static void fail_underscore(TileParser *parser, size_t place) {
    TileSpan span = tile_parse_span(parser);
    TileDiagnostic *d = tile_parse_fail(parser, "a name");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "a name that begins with `_` may stay unused");
    tile_diagnostic_edit(parser->diagnostics, d, span, "_%zu", place);
}

/* `let a, b = f(x)` */
static void fail_bare_names(TileParser *parser, const TileStatement *statement) {
    TileDiagnostic *d = tile_parse_fail(parser, "`=`");
    size_t last = parser->position;
    const TileToken *list = parser->tokens.list.items;
    while (list[last].kind == TILE_TOKEN_COMMA && list[last + 1].kind == TILE_TOKEN_NAME) last += 2;
    if (list[last].kind != TILE_TOKEN_ASSIGN) return;
    TileSpan names = {parser->file, statement->names.items[0].span.begin, list[last - 1].end};
    tile_diagnostic_edit(parser->diagnostics, d, names, "(%.*s)", (int)(names.end - names.begin), parser->text + names.begin);
}

/* One name, or a list in parentheses. */
static void parse_names(TileParser *parser, TileStatement *statement) {
    statement->tuple = tile_parse_accept(parser, TILE_TOKEN_LEFT_PAREN);
    do {
        if (tile_parse_peek(parser) == TILE_TOKEN_UNDERSCORE) fail_underscore(parser, statement->names.count);
        TileNameRef ref = tile_parse_name(parser);
        tile_list_push(parser->arena, &statement->names, ref);
    } while (statement->tuple && tile_parse_accept(parser, TILE_TOKEN_COMMA));
    if (statement->tuple) tile_parse_expect(parser, TILE_TOKEN_RIGHT_PAREN);
}

/* `let a: f32 = 1`: proposes `f32(1)`; if the type is not a scalar's, to remove the type. */
static void fail_typed(TileParser *parser) {
    size_t position = parser->position;
    TileSpan edited = {parser->file, tile_parse_last_end(parser), 0};
    tile_parse_advance(parser);
    TileSpan type = tile_parse_span(parser);
    bool named = tile_parse_peek(parser) == TILE_TOKEN_NAME && tile_parse_expression(parser);
    type.end = edited.end = tile_parse_last_end(parser);
    bool given = named && tile_parse_accept(parser, TILE_TOKEN_ASSIGN);
    TileSpan value = tile_parse_span(parser);
    if (given) tile_parse_expression(parser);
    if (parser->panic) return;
    value.end = tile_parse_last_end(parser);
    parser->position = position;
    TileDiagnostic *d = tile_parse_fail(parser, tile_token_words(TILE_TOKEN_ASSIGN));
    const char *text = parser->text;
    int type_length = (int)(type.end - type.begin);
    TileScalar scalar;
    if (!given) return;
    if (!tile_scalar_find(text + type.begin, (size_t)type_length, &scalar)) {
        tile_diagnostic_edit(parser->diagnostics, d, edited, "%s", "");
        return;
    }
    edited.end = value.end;
    tile_diagnostic_edit(parser->diagnostics, d, edited, " = %.*s(%.*s)", type_length, text + type.begin,
                         (int)(value.end - value.begin), text + value.begin);
}

static void parse_binding(TileParser *parser, TileStatement *statement, TileStatementKind kind) {
    TileSpan let = tile_parse_span(parser);
    statement->kind = kind;
    tile_parse_advance(parser);
    parse_names(parser, statement);
    if (tile_parse_skip_mut(parser, let, statement->names.items[0])) {
        statement->kind = TILE_STATEMENT_VAR;
        statement->names.items[0] = tile_parse_name(parser);
    }
    if (tile_parse_peek(parser) == TILE_TOKEN_COLON && !parser->panic) fail_typed(parser);
    if (tile_parse_peek(parser) == TILE_TOKEN_COMMA && !statement->tuple && !parser->panic) fail_bare_names(parser, statement);
    TileTokenKind next = tile_parse_peek(parser);
    if (kind == TILE_STATEMENT_VAR && (next == TILE_TOKEN_NEWLINE || next == TILE_TOKEN_SEMICOLON) && !parser->panic) {
        TileDiagnostic *d = tile_parse_fail(parser, "`=`");
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "a variable has a value from the beginning: `var a = zeros[8](f32)`");
    }
    tile_parse_expect(parser, TILE_TOKEN_ASSIGN);
    statement->value = tile_parse_expression(parser);
}

/* `for (int i = 0; ..`, as in C; `for (var i = 0; ..`. */
static bool at_counted_loop(const TileParser *parser) {
    bool typed = tile_parse_peek_ahead(parser, 2) == TILE_TOKEN_NAME;
    TileTokenKind first = tile_parse_peek_ahead(parser, 1);
    bool binds = typed && (first == TILE_TOKEN_VAR || first == TILE_TOKEN_LET);
    return !parser->panic && tile_parse_peek(parser) == TILE_TOKEN_LEFT_PAREN && (first == TILE_TOKEN_NAME || binds) &&
           tile_parse_peek_ahead(parser, typed ? 3 : 2) == TILE_TOKEN_ASSIGN;
}

/* Reports such a loop, from its parenthesis on. Its body is skipped. */
static void fail_counted_loop(TileParser *parser) {
    TileSpan header = tile_parse_span(parser);
    bool typed = tile_parse_peek_ahead(parser, 2) == TILE_TOKEN_NAME;
    for (int i = 0; i < (typed ? 2 : 1); i++) tile_parse_advance(parser);
    TileSpan name = tile_parse_span(parser);
    tile_parse_advance(parser);
    tile_parse_advance(parser);
    TileExpr *low = tile_parse_expression(parser), *step = NULL;
    tile_parse_expect(parser, TILE_TOKEN_SEMICOLON);
    TileExpr *condition = tile_parse_expression(parser);
    tile_parse_expect(parser, TILE_TOKEN_SEMICOLON);
    if (parser->panic) return;
    bool added = tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_PLUS_ASSIGN;
    for (int i = 0; added && i < 2; i++) tile_parse_advance(parser);
    if (added) step = tile_parse_expression(parser);
    while (!parser->panic && tile_parse_peek(parser) != TILE_TOKEN_RIGHT_PAREN &&
           tile_parse_peek(parser) != TILE_TOKEN_LEFT_BRACE && tile_parse_peek(parser) != TILE_TOKEN_END)
        tile_parse_advance(parser);
    if (!tile_parse_expect(parser, TILE_TOKEN_RIGHT_PAREN)) return;
    tile_parse_report_counted_loop(parser, tile_parse_span_from(parser, header), name, low, condition, step);
}

/* `for i in 0..n..4` */
static void take_dotted_step(TileParser *parser, TileStatement *statement) {
    const TileExpr *value = statement->value, *bounds = value->kind == TILE_EXPR_BINARY && value->op == TILE_TOKEN_DOTS ? value->a : NULL;
    bool dotted = bounds && bounds->kind == TILE_EXPR_BINARY && bounds->op == TILE_TOKEN_DOTS && !bounds->parenthesised;
    if (!dotted || parser->panic || statement->step) return;
    TileDiagnostic *d = tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, value->op_span, "`step`", "`..`");
    TileSpan by = value->b->span, edited = {parser->file, value->op_span.begin, by.end};
    tile_diagnostic_edit(parser->diagnostics, d, edited, " step %.*s", (int)(by.end - by.begin), parser->text + by.begin);
    statement->step = value->b;
    statement->value = value->a;
}

static void parse_for(TileParser *parser, TileStatement *statement) {
    statement->kind = TILE_STATEMENT_FOR;
    statement->is_static = tile_parse_accept(parser, TILE_TOKEN_STATIC);
    statement->is_ordered = !statement->is_static && tile_parse_at_word(parser, "ordered");
    if (statement->is_ordered) tile_parse_advance(parser);
    tile_parse_expect(parser, TILE_TOKEN_FOR);
    if (at_counted_loop(parser)) fail_counted_loop(parser);
    TileSpan open = tile_parse_span(parser);
    bool wrapped = !parser->panic && tile_parse_peek(parser) == TILE_TOKEN_LEFT_PAREN &&
                   tile_parse_peek_ahead(parser, 2) == TILE_TOKEN_IN; /* `for (i in 0..4)` */
    if (wrapped) tile_parse_advance(parser);
    parse_names(parser, statement);
    tile_parse_expect(parser, TILE_TOKEN_IN);
    statement->value = tile_parse_expression(parser);
    if (tile_parse_at_word(parser, "step")) {
        tile_parse_advance(parser);
        statement->step = tile_parse_expression(parser);
    }
    take_dotted_step(parser, statement);
    if (wrapped) tile_parse_report_wrapped(parser, open);
    tile_parse_skip_word(parser, "do");
    statement->body = tile_parse_sequence(parser);
}

/* `grid (m, n) in a, b` and `grid m in a, n in b`: names and extents are two lists in parentheses. */
static void fail_grid_list(TileParser *parser, const TileStatement *statement) {
    TileSpan comma = tile_parse_span(parser), whole = {parser->file, statement->names.items[0].span.begin, 0};
    TileText names = {.arena = parser->arena}, extents = {.arena = parser->arena};
    for (size_t i = 0; i < statement->names.count; i++)
        tile_text_format(&names, "%s%s", i ? ", " : "", statement->names.items[i].name);
    const TileExpr *extent = statement->value;
    tile_text_add_bytes(&extents, parser->text + extent->span.begin, extent->span.end - extent->span.begin);
    while (tile_parse_accept(parser, TILE_TOKEN_COMMA)) {
        if (tile_parse_peek(parser) == TILE_TOKEN_NAME && tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_IN) {
            tile_text_format(&names, ", %s", tile_parse_name(parser).name);
            tile_parse_advance(parser);
        }
        extent = tile_parse_expression(parser);
        tile_text_format(&extents, ", %.*s", (int)(extent->span.end - extent->span.begin),
                         parser->text + extent->span.begin);
    }
    if (parser->panic) return;
    whole.begin -= statement->tuple && whole.begin > 0;
    whole.end = tile_parse_last_end(parser);
    TileDiagnostic *d = tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, comma,
                                      tile_token_words(TILE_TOKEN_LEFT_BRACE), "`,`");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "names and extents are lists in parentheses");
    tile_diagnostic_edit(parser->diagnostics, d, whole, "(%s) in (%s)", tile_text_get(&names), tile_text_get(&extents));
}

static void parse_grid(TileParser *parser, TileStatement *statement) {
    statement->kind = TILE_STATEMENT_GRID;
    tile_parse_advance(parser);
    parse_names(parser, statement);
    tile_parse_expect(parser, TILE_TOKEN_IN);
    statement->value = tile_parse_expression(parser);
    if (tile_parse_peek(parser) == TILE_TOKEN_COMMA && !parser->panic) fail_grid_list(parser, statement);
    statement->body = tile_parse_sequence(parser);
}

static void parse_return(TileParser *parser, TileStatement *statement) {
    statement->kind = TILE_STATEMENT_RETURN;
    tile_parse_advance(parser);
    TileTokenKind kind = tile_parse_peek(parser);
    bool bare = kind == TILE_TOKEN_NEWLINE || kind == TILE_TOKEN_SEMICOLON || kind == TILE_TOKEN_RIGHT_BRACE ||
                kind == TILE_TOKEN_END;
    if (!bare) statement->value = tile_parse_expression(parser);
}

/* `temp part: f32[4] = 0` */
static void fail_temp_value(TileParser *parser, const TileStatement *statement) {
    TileSpan equals = tile_parse_span(parser);
    TileDiagnostic *d = tile_parse_fail(parser, "the end of the statement");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                         "the elements of a temporary are undefined until they are stored");
    parser->panic = false;
    tile_parse_advance(parser);
    tile_parse_expression(parser);
    TileText index = {.arena = parser->arena};
    for (size_t i = 0; i < statement->type->extents.count; i++) tile_text_add(&index, i ? ", :" : ":");
    bool in_grid = parser->depth > 1; /* nothing is stored outside of a grid */
    TileSpan edited = {parser->file,
                       equals.begin > 0 && parser->text[equals.begin - 1] == ' ' ? equals.begin - 1 : equals.begin,
                       equals.end};
    if (in_grid)
        tile_diagnostic_edit(parser->diagnostics, d, edited, "; %s[%s] =", statement->names.items[0].name,
                             tile_text_get(&index));
}

/* `temp shared part: f32[4]` */
static TileNameRef skip_temp_word(TileParser *parser, TileNameRef word) {
    TileSpan name = tile_parse_span(parser), removed = {word.span.file, word.span.begin, name.begin};
    TileDiagnostic *d = tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, name, "`:`",
                                      tile_arena_format(parser->arena, "the name `%.*s`", (int)(name.end - name.begin),
                                                        parser->text + name.begin));
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "where a temporary lies is the compiler's choice");
    tile_diagnostic_edit(parser->diagnostics, d, removed, "%s", "");
    return tile_parse_name(parser);
}

static void parse_temp(TileParser *parser, TileStatement *statement) {
    statement->kind = TILE_STATEMENT_TEMP;
    tile_parse_advance(parser);
    TileNameRef ref = tile_parse_name(parser);
    if (tile_parse_peek(parser) == TILE_TOKEN_NAME && !parser->panic) ref = skip_temp_word(parser, ref);
    tile_list_push(parser->arena, &statement->names, ref);
    tile_parse_expect(parser, TILE_TOKEN_COLON);
    statement->type = tile_parse_type(parser);
    if (tile_parse_peek(parser) == TILE_TOKEN_ASSIGN && !parser->panic) fail_temp_value(parser, statement);
}

static void parse_assertion(TileParser *parser, TileStatement *statement, TileStatementKind kind) {
    statement->kind = kind;
    tile_parse_advance(parser);
    if (tile_parse_fail_assertion(parser)) return;
    TileExpr call = {.kind = TILE_EXPR_CALL};
    tile_parse_arguments(parser, &call);
    statement->arguments.items = call.arguments.items;
    statement->arguments.count = call.arguments.count;
}

static bool is_assignment(TileTokenKind kind) { return kind >= TILE_TOKEN_ASSIGN && kind <= TILE_TOKEN_SHR_ASSIGN; }

/* `float a = 1`, as in C, from the name on. */
static void parse_declaration(TileParser *parser, TileStatement *statement) {
    const TileExpr *type = statement->value;
    TileNameRef name = tile_parse_name(parser);
    tile_parse_advance(parser);
    statement->kind = TILE_STATEMENT_VAR;
    tile_list_push(parser->arena, &statement->names, name);
    statement->value = tile_parse_expression(parser);
    tile_parse_report_declaration(parser, type, name.span, statement->value);
}

static void parse_expression_statement(TileParser *parser, TileStatement *statement) {
    statement->kind = TILE_STATEMENT_EXPR;
    if (tile_parse_skip_increment(parser)) {
        statement->kind = TILE_STATEMENT_CONTINUE; /* any without parts: the file is wrong */
        return;
    }
    statement->value = tile_parse_expression(parser);
    if (tile_parse_at_declaration(parser, statement->value)) {
        parse_declaration(parser, statement);
        return;
    }
    if (tile_parse_at_walrus(parser, statement->value)) {
        TileSpan begin = tile_parse_span(parser);
        tile_parse_advance(parser);
        tile_parse_advance(parser);
        TileSpan name = statement->value->span;
        tile_list_push(parser->arena, &statement->names, ((TileNameRef){statement->value->name, name}));
        tile_parse_report_walrus(parser, name, tile_parse_span_from(parser, begin));
        statement->kind = TILE_STATEMENT_VAR;
        statement->value = tile_parse_expression(parser);
        return;
    }
    TileTokenKind op = tile_parse_peek(parser);
    if (parser->panic || !is_assignment(op)) return;
    tile_parse_advance(parser);
    statement->kind = TILE_STATEMENT_ASSIGN;
    statement->op = (uint8_t)op;
    statement->target = statement->value;
    statement->value = tile_parse_expression(parser);
}

static TileStatement *parse_statement(TileParser *parser);

static bool at_ordered(const TileParser *parser) {
    TileTokenKind next = tile_parse_peek_ahead(parser, 1);
    return tile_parse_at_word(parser, "ordered") && (next == TILE_TOKEN_WHILE || next == TILE_TOKEN_GRID);
}

/* `ordered while` and `ordered grid`: the word is reported, and the statement is understood without it. */
static TileStatement *parse_ordered(TileParser *parser) {
    TileSpan word = tile_parse_span(parser);
    bool grid = tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_GRID;
    TileDiagnostic *d = tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, word, "a statement", "the name `ordered`");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                         grid ? "`ordered` stands before a `for`; programs of a grid have no order"
                              : "`ordered` stands before a `for`; the iterations of a `while` follow one another anyway");
    tile_parse_advance(parser);
    word.end = tile_parse_span(parser).begin;
    tile_diagnostic_edit(parser->diagnostics, d, word, "%s", "");
    return parse_statement(parser);
}

static TileStatement *parse_statement(TileParser *parser) {
    TileStatement *statement = TILE_NEW(parser->arena, TileStatement);
    TileSpan begin = tile_parse_span(parser);
    if (tile_parse_fail_shared(parser)) return statement;
    if (tile_parse_at_misplaced(parser)) {
        tile_parse_fail_misplaced(parser);
        return statement;
    }
    switch (tile_parse_peek(parser)) {
    case TILE_TOKEN_LET: parse_binding(parser, statement, TILE_STATEMENT_LET); break;
    case TILE_TOKEN_VAR: parse_binding(parser, statement, TILE_STATEMENT_VAR); break;
    case TILE_TOKEN_FOR: parse_for(parser, statement); break;
    case TILE_TOKEN_STATIC:
        if (tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_IF)
            parse_expression_statement(parser, statement);
        else
            parse_for(parser, statement);
        break;
    case TILE_TOKEN_WHILE:
        statement->kind = TILE_STATEMENT_WHILE;
        tile_parse_advance(parser);
        statement->value = tile_parse_comparing(parser);
        tile_parse_skip_word(parser, "do");
        statement->body = tile_parse_sequence(parser);
        break;
    case TILE_TOKEN_BREAK:
        statement->kind = TILE_STATEMENT_BREAK;
        tile_parse_advance(parser);
        break;
    case TILE_TOKEN_CONTINUE:
        statement->kind = TILE_STATEMENT_CONTINUE;
        tile_parse_advance(parser);
        break;
    case TILE_TOKEN_RETURN: parse_return(parser, statement); break;
    case TILE_TOKEN_GRID: parse_grid(parser, statement); break;
    case TILE_TOKEN_TEMP: parse_temp(parser, statement); break;
    case TILE_TOKEN_ASSERT: parse_assertion(parser, statement, TILE_STATEMENT_ASSERT); break;
    case TILE_TOKEN_STATIC_ASSERT: parse_assertion(parser, statement, TILE_STATEMENT_STATIC_ASSERT); break;
    default:
        if (tile_parse_at_word(parser, "ordered") && tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_FOR)
            parse_for(parser, statement);
        else if (at_ordered(parser))
            return parse_ordered(parser);
        else
            parse_expression_statement(parser, statement);
    }
    statement->span = tile_parse_span_from(parser, begin);
    return statement;
}

/* Adds a parsed statement. An expression at the end of the sequence becomes its value; the caller checks whether a
 * value is allowed. */
static void add_statement(TileParser *parser, TileSequence *sequence, TileStatement *statement) {
    if (statement->kind == TILE_STATEMENT_EXPR) {
        if (tile_parse_peek(parser) == TILE_TOKEN_RIGHT_BRACE) {
            sequence->value = statement->value;
            return;
        }
        tile_parse_check_effect(parser, statement->value);
    } else if (statement->body) {
        tile_parse_check_sequence_effect(parser, statement->body);
    }
    tile_list_push(parser->arena, &sequence->statements, statement);
}

static bool at_separator(TileParser *parser) {
    TileTokenKind kind = tile_parse_peek(parser);
    return kind == TILE_TOKEN_NEWLINE || kind == TILE_TOKEN_SEMICOLON;
}

static void parse_statements(TileParser *parser, TileSequence *sequence) {
    for (;;) {
        while (at_separator(parser)) tile_parse_advance(parser);
        TileTokenKind kind = tile_parse_peek(parser);
        if (kind == TILE_TOKEN_RIGHT_BRACE || kind == TILE_TOKEN_END || tile_parse_at_item(parser)) return;
        size_t before = parser->position;
        TileStatement *statement = parse_statement(parser);
        /* A newline after a final expression does not make it a statement: looks past the separators. */
        bool ended = at_separator(parser);
        if (!parser->panic && !ended && tile_parse_separate(parser)) ended = true;
        if (!parser->panic && !ended && tile_parse_peek(parser) != TILE_TOKEN_RIGHT_BRACE) tile_parse_fail_end(parser, statement);
        if (parser->panic) {
            tile_parse_resume_statement(parser);
            if (parser->position == before && tile_parse_peek(parser) != TILE_TOKEN_RIGHT_BRACE)
                tile_parse_advance(parser);
            continue;
        }
        while (at_separator(parser)) tile_parse_advance(parser);
        add_statement(parser, sequence, statement);
    }
}

/* A brace on a line of its own ends the statement that it should belong to. The block that it opens is parsed
 * nevertheless. */
static void join_brace(TileParser *parser) {
    bool alone =
        tile_parse_peek(parser) == TILE_TOKEN_NEWLINE && tile_parse_peek_ahead(parser, 0) == TILE_TOKEN_LEFT_BRACE;
    if (parser->panic || !alone) return;
    TileSpan brace = tile_parse_span(parser);
    uint32_t end = tile_parse_last_end(parser), at = end;
    TileDiagnostic *d = tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, (TileSpan){parser->file, end, end},
                                      tile_token_words(TILE_TOKEN_LEFT_BRACE), "the end of the line");
    tile_diagnostic_note(parser->diagnostics, d, brace, "a block begins on the line of its statement");
    while (at < brace.begin && strchr(" \t\r\n", parser->text[at])) at++;
    if (at == brace.begin) tile_diagnostic_edit(parser->diagnostics, d, (TileSpan){parser->file, end, brace.end}, " {");
    tile_parse_advance(parser);
}

/* Does a statement stand where a block is needed, as C allows it? */
static bool at_unbraced(const TileParser *parser) {
    TileTokenKind kind = tile_parse_peek(parser);
    bool begins =
        kind == TILE_TOKEN_NAME || kind == TILE_TOKEN_RETURN || kind == TILE_TOKEN_BREAK || kind == TILE_TOKEN_CONTINUE;
    return begins && !parser->panic && !parser->header && parser->current;
}

/* False if it is none that can stand alone: then nothing is consumed. */
static bool parse_unbraced(TileParser *parser, TileSequence *sequence) {
    size_t position = parser->position;
    TileDiagnosticsMark mark = tile_diagnostics_mark(parser->diagnostics);
    TileSpan begin = tile_parse_span(parser);
    const char *found = begin.end > begin.begin ? tile_token_words(tile_parse_peek(parser)) : "";
    if (tile_parse_peek(parser) == TILE_TOKEN_NAME)
        found = tile_arena_format(parser->arena, "the name `%.*s`", (int)(begin.end - begin.begin),
                                  parser->text + begin.begin);
    TileStatement *statement = parse_statement(parser);
    const TileExpr *value = statement->kind == TILE_STATEMENT_EXPR ? statement->value : NULL;
    bool chosen = value && value->kind == TILE_EXPR_BINARY && value->op == TILE_TOKEN_ELSE && !value->parenthesised;
    if (parser->panic || (value && !chosen && value->kind != TILE_EXPR_CALL)) {
        tile_diagnostics_rewind(parser->diagnostics, mark);
        parser->position = position;
        return parser->panic = false;
    }
    TileSpan whole = tile_parse_span_from(parser, begin);
    TileDiagnostic *d = tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, begin,
                                      tile_token_words(TILE_TOKEN_LEFT_BRACE), found);
    const char *text = parser->text;
    TileSpan first = chosen ? value->a->span : whole, second = chosen ? value->b->span : (TileSpan){0};
    if (!chosen && tile_parse_peek(parser) == TILE_TOKEN_SEMICOLON &&
        tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_ELSE) {
        tile_parse_advance(parser); /* a; else b */
        tile_parse_advance(parser);
        second = tile_parse_span(parser);
        parse_statement(parser);
        second.end = whole.end = tile_parse_last_end(parser);
    }
    if (second.end)
        tile_diagnostic_edit(parser->diagnostics, d, whole, "{ %.*s } else { %.*s }", (int)(first.end - first.begin),
                             text + first.begin, (int)(second.end - second.begin), text + second.begin);
    else
        tile_diagnostic_edit(parser->diagnostics, d, whole, "{ %.*s }", (int)(whole.end - whole.begin),
                             text + whole.begin);
    tile_list_push(parser->arena, &sequence->statements, statement);
    sequence->span = whole;
    return true;
}

TileSequence *tile_parse_sequence(TileParser *parser) {
    TileSequence *sequence = TILE_NEW(parser->arena, TileSequence);
    join_brace(parser);
    TileSpan begin = tile_parse_span(parser);
    sequence->span = begin;
    if (tile_parse_peek(parser) == TILE_TOKEN_COLON && !parser->panic) {
        TileDiagnostic *d = tile_parse_fail(parser, tile_token_words(TILE_TOKEN_LEFT_BRACE));
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                             "a block stands in braces: `if c { .. } else { .. }`");
    }
    if (at_unbraced(parser) && parse_unbraced(parser, sequence)) return sequence;
    if (parser->panic || !tile_parse_expect(parser, TILE_TOKEN_LEFT_BRACE)) return sequence;
    bool header = parser->header, compares = parser->compares;
    parser->header = parser->compares = false;
    if (tile_parse_enter(parser)) {
        parse_statements(parser, sequence);
        tile_parse_leave(parser);
    }
    parser->compares = compares;
    if (!parser->panic) tile_parse_expect(parser, TILE_TOKEN_RIGHT_BRACE);
    if (!parser->panic) parser->header = header;
    sequence->span = tile_parse_span_from(parser, begin);
    return sequence;
}
