/* Items: the top level of a file. */
#include <string.h>

#include "lang/scalar/scalar.h"
#include "parser/syntax/parse.h"

/* ---- generics and parameters ---- */

/* `kernel k[B](..)`: a name of several letters is a constant's in other languages, too. */
static void fail_generic(TileParser *parser, TileNameRef name) {
    TileTokenKind next = tile_parse_peek(parser);
    TileDiagnostic *d = tile_parse_fail(parser, tile_token_words(TILE_TOKEN_COLON));
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                         "what a name in brackets stands for is behind it: types `T: f16 | f32`, a constant `B: const`");
    TileScalar scalar;
    const TileToken *before = &parser->tokens.list.items[parser->position - 2];
    if (before->kind == TILE_TOKEN_COMMA && tile_scalar_find(name.name, strlen(name.name), &scalar)) { /* `T: f16, f32` */
        tile_diagnostic_edit(parser->diagnostics, d, (TileSpan){parser->file, before->begin, before->end}, " |");
        return;
    }
    bool ends = next == TILE_TOKEN_COMMA || next == TILE_TOKEN_RIGHT_BRACKET;
    TileSpan behind = {parser->file, name.span.end, name.span.end};
    if (ends && name.span.end - name.span.begin > 1) tile_diagnostic_edit(parser->diagnostics, d, behind, ": const");
}

/* `fn f(x)`: a parameter without its type. */
static void fail_untyped(TileParser *parser, bool kernel) {
    TileTokenKind next = tile_parse_peek(parser);
    if (parser->panic || (next != TILE_TOKEN_COMMA && next != TILE_TOKEN_RIGHT_PAREN)) return;
    TileDiagnostic *d = tile_parse_fail(parser, tile_token_words(TILE_TOKEN_COLON));
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                         kernel ? "a parameter has a type: a tensor `x: in f32[M, N]`, a scalar `n: i64`"
                                : "a parameter has a type: `x: f32`, or of several types `fn f[T: f16 | f32](x: T) -> T`");
}

static TileGeneric parse_generic(TileParser *parser) {
    TileGeneric generic = {0};
    TileNameRef ref = tile_parse_name(parser);
    generic.name = ref.name;
    generic.span = ref.span;
    if (!parser->panic && tile_parse_peek(parser) != TILE_TOKEN_COLON) fail_generic(parser, ref);
    tile_parse_expect(parser, TILE_TOKEN_COLON);
    TileTokenKind kind = tile_parse_peek(parser);
    if (kind == TILE_TOKEN_CONST) {
        generic.kind = TILE_GENERIC_CONST;
        tile_parse_advance(parser);
        if (tile_parse_peek(parser) == TILE_TOKEN_NAME) generic.type = tile_parse_type(parser);
    } else if (kind == TILE_TOKEN_FN) {
        generic.kind = TILE_GENERIC_FN;
        generic.type = tile_parse_type(parser);
    } else {
        do {
            TileNameRef class = tile_parse_name(parser);
            tile_list_push(parser->arena, &generic.classes, class);
        } while (tile_parse_accept(parser, TILE_TOKEN_BAR));
    }
    if (generic.kind != TILE_GENERIC_TYPE && tile_parse_accept(parser, TILE_TOKEN_ASSIGN))
        generic.value = tile_parse_expression(parser);
    return generic;
}

static void parse_generics(TileParser *parser, TileItem *item) {
    if (!tile_parse_accept(parser, TILE_TOKEN_LEFT_BRACKET)) return;
    while (!parser->panic && tile_parse_peek(parser) != TILE_TOKEN_RIGHT_BRACKET) {
        TileGeneric generic = parse_generic(parser);
        tile_list_push(parser->arena, &item->generics, generic);
        if (!tile_parse_accept(parser, TILE_TOKEN_COMMA)) break;
    }
    tile_parse_expect(parser, TILE_TOKEN_RIGHT_BRACKET);
}

static void parse_params(TileParser *parser, TileItem *item) {
    if (tile_parse_peek(parser) == TILE_TOKEN_LESS && !parser->panic)
        tile_diagnostic_note(parser->diagnostics, tile_parse_fail(parser, tile_token_words(TILE_TOKEN_LEFT_PAREN)), (TileSpan){0},
                             "types and constants stand in brackets: `k[T: f16 | f32, B: const](x: in T[N])`");
    tile_parse_expect(parser, TILE_TOKEN_LEFT_PAREN);
    while (!parser->panic && tile_parse_peek(parser) != TILE_TOKEN_RIGHT_PAREN) {
        TileSpan begin = tile_parse_span(parser);
        if (tile_parse_fail_pointer_parameter(parser)) break;
        tile_parse_fail_parameter_word(parser);
        TileParam param = {.spread = tile_parse_accept(parser, TILE_TOKEN_ELLIPSIS)};
        TileNameRef ref = tile_parse_name(parser);
        tile_parse_fail_typed_name(parser, ref);
        param.name = ref.name;
        param.span = param.spread ? tile_parse_span_from(parser, begin) : ref.span;
        if (!param.spread) fail_untyped(parser, item->kind == TILE_ITEM_KERNEL);
        if (!param.spread && tile_parse_expect(parser, TILE_TOKEN_COLON)) param.type = tile_parse_type(parser);
        tile_parse_fail_default(parser);
        tile_list_push(parser->arena, &item->params, param);
        if (!tile_parse_accept(parser, TILE_TOKEN_COMMA)) break;
    }
    tile_parse_expect(parser, TILE_TOKEN_RIGHT_PAREN);
}

/* ---- clauses ---- */

static void parse_static(TileParser *parser, TileItem *item) {
    do {
        TileNameRef ref = tile_parse_name(parser);
        tile_list_push(parser->arena, &item->statics, ref);
    } while (tile_parse_accept(parser, TILE_TOKEN_COMMA));
}

static void parse_require(TileParser *parser, TileItem *item) {
    TileRequire require = {.span = tile_parse_span(parser)};
    do {
        if (tile_parse_peek(parser) == TILE_TOKEN_STRING && require.conditions.count) {
            require.text = tile_parse_string(parser);
            break;
        }
        if (tile_parse_peek(parser) == TILE_TOKEN_STRING) {
            tile_parse_fail(parser, "a condition before the text");
            return;
        }
        TileExpr *condition = tile_parse_expression(parser);
        if (parser->panic) return;
        tile_list_push(parser->arena, &require.conditions, condition);
    } while (tile_parse_accept(parser, TILE_TOKEN_COMMA));
    require.span = tile_parse_span_from(parser, require.span);
    tile_list_push(parser->arena, &item->requires, require);
}

const char *const tile_warning_words[TILE_WARN_COUNT] = {
    [TILE_WARN_ROUNDING] = "rounding",           [TILE_WARN_ELSE] = "else_binds_loosely",
    [TILE_WARN_UNUSED_RESULT] = "unused_result", [TILE_WARN_UNUSED_NAME] = "unused_name",
    [TILE_WARN_LANES_MEET] = "lanes_meet",       [TILE_WARN_PROGRAMS_MEET] = "programs_meet",
};

static bool allow_warning(TileItem *item, const char *word) {
    for (int i = 0; i < TILE_WARN_COUNT; i++) {
        if (strcmp(word, tile_warning_words[i]) != 0) continue;
        item->allows |= 1u << i;
        return true;
    }
    return false;
}

static void fail_allow(TileParser *parser, TileNameRef word) {
    const char *best = NULL, *other = "overlap";
    unsigned least = 3;
    parser->panic = true;
    TileDiagnostic *d =
        tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, word.span, "`overlap` or the name of a warning",
                      tile_arena_format(parser->arena, "the name `%s`", word.name));
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                         "the warnings are `%s`, `%s`, `%s`, `%s`, `%s` and `%s`", tile_warning_words[0],
                         tile_warning_words[1], tile_warning_words[2], tile_warning_words[3], tile_warning_words[4],
                         tile_warning_words[5]);
    for (int i = -1; i < TILE_WARN_COUNT; i++) {
        const char *candidate = i < 0 ? other : tile_warning_words[i];
        unsigned far = tile_edit_distance(word.name, candidate);
        if (far < least) least = far, best = candidate;
    }
    if (best) tile_diagnostic_edit(parser->diagnostics, d, word.span, "%s", best);
}

static void parse_overlap(TileParser *parser, TileItem *item) {
    tile_parse_expect(parser, TILE_TOKEN_LEFT_PAREN);
    do {
        TileNameRef ref = tile_parse_name(parser);
        tile_list_push(parser->arena, &item->overlaps, ref);
    } while (tile_parse_accept(parser, TILE_TOKEN_COMMA));
    tile_parse_expect(parser, TILE_TOKEN_RIGHT_PAREN);
}

static void parse_allow(TileParser *parser, TileItem *item) {
    do {
        TileNameRef word = tile_parse_name(parser);
        if (parser->panic) return;
        if (strcmp(word.name, "overlap") == 0)
            parse_overlap(parser, item);
        else if (!allow_warning(item, word.name))
            fail_allow(parser, word);
    } while (tile_parse_accept(parser, TILE_TOKEN_COMMA));
}

/* `tune B = [64, 128]`, from the bracket on; the `=` is at `position`, and `edited` ends behind it. */
static void fail_assigned_list(TileParser *parser, size_t position, TileSpan edited) {
    const TileToken *list = parser->tokens.list.items, *first = &list[parser->position];
    size_t at = tile_parse_closing(parser, parser->position, TILE_TOKEN_RIGHT_BRACKET);
    parser->position = position;
    TileDiagnostic *d = tile_parse_fail(parser, tile_token_words(TILE_TOKEN_IN));
    if (list[at].kind != TILE_TOKEN_RIGHT_BRACKET) return;
    edited.end = list[at].end;
    tile_diagnostic_edit(parser->diagnostics, d, edited, " in {%.*s}", (int)(list[at].begin - first->end), parser->text + first->end);
}

/* `tune B = 4`: candidates have to be in braces, even a single one. */
static void fail_candidates(TileParser *parser) {
    size_t position = parser->position;
    TileSpan equals = tile_parse_span(parser), edited = {parser->file, tile_parse_last_end(parser), equals.end};
    tile_parse_advance(parser);
    TileSpan only = tile_parse_span(parser);
    bool body = memchr(parser->text + equals.end, '\n', only.begin - equals.end) != NULL;
    bool braces = tile_parse_peek(parser) == TILE_TOKEN_LEFT_BRACE;
    if (tile_parse_peek(parser) == TILE_TOKEN_LEFT_BRACKET) return fail_assigned_list(parser, position, edited);
    if (!braces) tile_parse_expression(parser);
    if (parser->panic) return;
    only.end = tile_parse_last_end(parser);
    parser->position = position;
    TileDiagnostic *d = tile_parse_fail(parser, tile_token_words(TILE_TOKEN_IN));
    if (braces && body) return;
    if (braces) {
        tile_diagnostic_edit(parser->diagnostics, d, edited, only.begin == equals.end ? " in " : " in");
        return;
    }
    edited.end = only.end;
    tile_diagnostic_edit(parser->diagnostics, d, edited, " in {%.*s}", (int)(only.end - only.begin),
                         parser->text + only.begin);
}

/* A list in brackets of another kind than those that belong there. */
static void fail_brackets(TileParser *parser, TileTokenKind closing, TileTokenKind opens, TileTokenKind closes) {
    size_t at = parser->position;
    const TileToken *list = parser->tokens.list.items, *first = &list[at];
    at = tile_parse_closing(parser, at, closing);
    TileDiagnostic *d = tile_parse_fail(parser, tile_token_words(opens));
    if (list[at].kind == closing)
        tile_diagnostic_edit(parser->diagnostics, d, (TileSpan){parser->file, first->begin, list[at].end}, "%s%.*s%s",
                             tile_token_text(opens), (int)(list[at].begin - first->end), parser->text + first->end,
                             tile_token_text(closes));
}

/* `tune B in [64, 128]` */
static void fail_candidate_list(TileParser *parser) {
    fail_brackets(parser, TILE_TOKEN_RIGHT_BRACKET, TILE_TOKEN_LEFT_BRACE, TILE_TOKEN_RIGHT_BRACE);
}

/* `tune cuda B in {64}` */
static void fail_target(TileParser *parser, TileNameRef word) {
    TileDiagnostic *d = tile_parse_fail(parser, "`in`");
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "a clause is for one kind of target: `tune cpu ..`, `tune gpu ..`");
    const char *gpus = " cuda nvidia sm_90a sm_80 ", *cpus = " x86 avx2 avx512 ";
    const char *own = strstr(gpus, tile_arena_format(parser->arena, " %s ", word.name))   ? "gpu"
                      : strstr(cpus, tile_arena_format(parser->arena, " %s ", word.name)) ? "cpu"
                                                                                           : NULL;
    if (own) tile_diagnostic_edit(parser->diagnostics, d, word.span, "%s", own);
}

static TileTuneName parse_tune_name(TileParser *parser) {
    TileTuneName name = {0};
    TileNameRef ref = tile_parse_name(parser);
    name.name = ref.name;
    name.span = ref.span;
    if (tile_parse_peek(parser) == TILE_TOKEN_ASSIGN && !parser->panic) fail_candidates(parser);
    if (tile_parse_peek(parser) == TILE_TOKEN_NAME && !parser->panic) fail_target(parser, ref);
    tile_parse_expect(parser, TILE_TOKEN_IN);
    if (tile_parse_peek(parser) == TILE_TOKEN_LEFT_BRACKET) fail_candidate_list(parser);
    bool listed = tile_parse_peek(parser) == TILE_TOKEN_LEFT_BRACE;
    if (!listed && !parser->panic)
        tile_diagnostic_note(parser->diagnostics, tile_parse_fail(parser, "`{`"), (TileSpan){0},
                             "candidates are listed in braces: `B in {64, 128}`");
    tile_parse_expect(parser, TILE_TOKEN_LEFT_BRACE);
    do {
        TileExpr *candidate = tile_parse_expression(parser);
        if (parser->panic) return name;
        tile_list_push(parser->arena, &name.candidates, candidate);
    } while (tile_parse_accept(parser, TILE_TOKEN_COMMA));
    tile_parse_expect(parser, TILE_TOKEN_RIGHT_BRACE);
    return name;
}

static bool at_target(const TileParser *parser) {
    return (tile_parse_at_word(parser, "cpu") || tile_parse_at_word(parser, "gpu")) &&
           tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_NAME;
}

/* `tune cpu A in {1}, gpu A in {2}`: the second target needs a clause of its own. */
static void fail_second_target(TileParser *parser, TileSpan comma) {
    bool behind = tile_parse_span(parser).begin == comma.end;
    TileDiagnostic *d = tile_parse_fail(parser, "a `tune` before the candidates of another target");
    tile_diagnostic_edit(parser->diagnostics, d, comma, behind ? " tune " : " tune");
}

static void parse_tune(TileParser *parser, TileItem *item) {
    TileTune tune = {.span = tile_parse_span(parser)};
    TileSpan comma;
    if (at_target(parser)) tune.target = tile_parse_name(parser).name;
    do {
        TileTuneName name = parse_tune_name(parser);
        tile_list_push(parser->arena, &tune.names, name);
        comma = tile_parse_span(parser);
        if (!tile_parse_accept(parser, TILE_TOKEN_COMMA)) break;
        if (at_target(parser)) fail_second_target(parser, comma);
    } while (!parser->panic);
    if (tile_parse_at_word(parser, "where")) {
        tile_parse_advance(parser);
        tune.where = tile_parse_expression(parser);
    }
    tune.span = tile_parse_span_from(parser, tune.span);
    tile_list_push(parser->arena, &item->tunes, tune);
}

static void parse_clauses(TileParser *parser, TileItem *item) {
    while (!parser->panic) {
        if (tile_parse_accept(parser, TILE_TOKEN_STATIC))
            parse_static(parser, item);
        else if (tile_parse_accept(parser, TILE_TOKEN_REQUIRE))
            parse_require(parser, item);
        else if (tile_parse_accept(parser, TILE_TOKEN_ALLOW))
            parse_allow(parser, item);
        else if (tile_parse_accept(parser, TILE_TOKEN_TUNE))
            parse_tune(parser, item);
        else
            return;
    }
}

/* ---- items ---- */

/* Tokens that neither are a body nor may precede it. */
static void fail_header(TileParser *parser, const TileItem *item) {
    TileItemKind kind = item->kind;
    TileTokenKind found = tile_parse_peek(parser);
    TileSpan span = tile_parse_span(parser);
    const TileToken *token = &parser->tokens.list.items[parser->position];
    bool arrow = (found == TILE_TOKEN_ASSIGN || found == TILE_TOKEN_MINUS) && token[1].kind == TILE_TOKEN_GREATER;
    TileDiagnostic *d = tile_parse_fail(parser, kind == TILE_ITEM_KERNEL ? "a clause or `{`" : "`->` or `{`");
    if (kind == TILE_ITEM_FN && arrow) /* `=>` and `- >` */
        tile_diagnostic_edit(parser->diagnostics, d, (TileSpan){parser->file, token->begin, token[1].end}, "->");
    if (found == TILE_TOKEN_COLON && kind == TILE_ITEM_KERNEL)
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "a body stands in braces, whatever its lines are indented by: `{ .. }`");
    if (kind == TILE_ITEM_FN && found == TILE_TOKEN_COLON) tile_diagnostic_edit(parser->diagnostics, d, span, " ->");
    if (kind == TILE_ITEM_KERNEL && (arrow || found == TILE_TOKEN_ARROW))
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                             "a kernel returns nothing: its results are parameters, `y: out f32[M, N]`");
    bool clause = found == TILE_TOKEN_TUNE || found == TILE_TOKEN_STATIC || found == TILE_TOKEN_REQUIRE;
    if (kind == TILE_ITEM_FN && clause)
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                             "only kernels have clauses; a function has constants in brackets: `fn f[B: const](..)`");
    if (kind == TILE_ITEM_KERNEL && found == TILE_TOKEN_ASSIGN && item->requires.count)
        tile_diagnostic_edit(parser->diagnostics, d, span, "==");
    if (kind != TILE_ITEM_KERNEL || found != TILE_TOKEN_NAME) return;
    static const char *const clauses[] = {"static", "require", "allow", "tune"};
    const char *name = tile_arena_string(parser->arena, parser->text + span.begin, span.end - span.begin);
    for (size_t i = 0; i < sizeof clauses / sizeof *clauses; i++)
        if (tile_edit_distance(name, clauses[i]) < 3)
            tile_diagnostic_edit(parser->diagnostics, d, span, "%s", clauses[i]);
}

/* Limits the names in a header: checks compare each with all others. */
static void check_header(TileParser *parser, const TileItem *item) {
    size_t count = item->generics.count + item->params.count + item->statics.count + item->overlaps.count;
    for (size_t i = 0; i < item->requires.count; i++) count += item->requires.items[i].conditions.count;
    for (size_t i = 0; i < item->generics.count; i++) count += item->generics.items[i].classes.count;
    for (size_t i = 0; i < item->tunes.count; i++)
        for (size_t k = 0; k < item->tunes.items[i].names.count; k++)
            count += 1 + item->tunes.items[i].names.items[k].candidates.count;
    uint64_t most = parser->diagnostics->limits->most[TILE_LIMIT_HEADER];
    if (count <= most || parser->panic) return;
    TileDiagnostic *d = tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_LONG_HEADER, item->name_span, item->name,
                                      (unsigned long long)count, (unsigned long long)most);
    tile_diagnostic_note_limit(parser->diagnostics, d, TILE_LIMIT_HEADER);
    parser->panic = true;
}

static void parse_function(TileParser *parser, TileItem *item, TileItemKind kind) {
    item->kind = kind;
    parser->header = true;
    tile_parse_advance(parser);
    TileNameRef ref = tile_parse_name(parser);
    item->name = ref.name;
    item->name_span = ref.span;
    parse_generics(parser, item);
    parse_params(parser, item);
    item->signature = tile_parse_span_from(parser, ref.span);
    if (kind == TILE_ITEM_FN && tile_parse_accept(parser, TILE_TOKEN_ARROW)) item->type = tile_parse_type(parser);
    if (kind == TILE_ITEM_KERNEL) parse_clauses(parser, item);
    check_header(parser, item);
    if (!parser->panic && tile_parse_peek(parser) != TILE_TOKEN_LEFT_BRACE) fail_header(parser, item);
    item->header_right = !parser->panic && parser->diagnostics->error_count == parser->item_errors;
    parser->current = item;
    item->body = tile_parse_sequence(parser);
    parser->current = NULL;
    parser->header = false;
    bool whole = !parser->panic && item->body->value && item->type && kind == TILE_ITEM_FN;
    const TileExpr *last = whole ? item->body->value : NULL;
    if (last && last->kind != TILE_EXPR_IF && last->kind != TILE_EXPR_CALL && last->kind != TILE_EXPR_RUN) {
        TileDiagnostic *d = tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_NO_EFFECT, last->span);
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "`return` gives the result of a function");
        tile_diagnostic_edit(parser->diagnostics, d, last->span, "return %.*s",
                             (int)(last->span.end - last->span.begin), parser->text + last->span.begin);
        return;
    }
    if (!parser->panic) tile_parse_check_sequence_effect(parser, item->body);
}

/* `import a, b`, `import a as b` and `import a.tile`, as in Python. What they would bring stays unknown, silently. */
static void fail_import(TileParser *parser, const TileItem *item) {
    TileTokenKind found = tile_parse_peek(parser);
    TileSpan span = tile_parse_span(parser), rest = {parser->file, item->name_span.end, span.end};
    const TileToken *token = &parser->tokens.list.items[parser->position];
    bool as = tile_parse_at_word(parser, "as") && token[1].kind == TILE_TOKEN_NAME;
    bool dotted = found == TILE_TOKEN_DOT && token[1].kind == TILE_TOKEN_NAME;
    bool listed = found == TILE_TOKEN_COMMA && token[1].kind == TILE_TOKEN_NAME && !token[1].line_break;
    if (parser->panic || (!listed && !as && !dotted)) return;
    TileDiagnostic *d = tile_parse_fail(parser, "the end of the line");
    parser->ast->lost = true;
    if (listed) {
        rest.end = token[1].end;
        tile_diagnostic_edit(parser->diagnostics, d, rest, "\nimport %.*s", (int)(token[1].end - token[1].begin),
                             parser->text + token[1].begin);
    } else if (as) {
        rest.end = token[1].end;
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0}, "a module keeps its name");
        tile_diagnostic_edit(parser->diagnostics, d, rest, "%s", "");
    } else {
        TileSpan path = {parser->file, item->name_span.begin, token[1].end};
        bool library = strcmp(item->name, "stdlib") == 0 || strcmp(item->name, "std") == 0 || strcmp(item->name, "tile") == 0;
        uint32_t begin = library ? token[1].begin : path.begin;
        tile_diagnostic_edit(parser->diagnostics, d, path, library ? "%.*s" : "\"%.*s\"", (int)(path.end - begin),
                             parser->text + begin);
    }
}

static void parse_import(TileParser *parser, TileItem *item) {
    item->kind = TILE_ITEM_IMPORT;
    tile_parse_advance(parser);
    item->name_span = tile_parse_span(parser);
    item->is_path = tile_parse_peek(parser) == TILE_TOKEN_STRING;
    item->name = item->is_path ? tile_parse_string(parser) : tile_parse_name(parser).name;
    fail_import(parser, item);
}

static void parse_const(TileParser *parser, TileItem *item) {
    item->kind = TILE_ITEM_CONST;
    tile_parse_advance(parser);
    TileNameRef ref = tile_parse_name(parser);
    item->name = ref.name;
    item->name_span = ref.span;
    if (tile_parse_peek(parser) == TILE_TOKEN_NAME && tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_ASSIGN) {
        tile_parse_fail_typed_name(parser, ref); /* const int SIZE = 64 */
        item->name_span = tile_parse_span(parser);
        item->name = tile_intern(parser->ast->names, parser->text + item->name_span.begin,
                                 item->name_span.end - item->name_span.begin);
    }
    if (tile_parse_accept(parser, TILE_TOKEN_COLON)) item->type = tile_parse_type(parser);
    tile_parse_expect(parser, TILE_TOKEN_ASSIGN);
    item->value = tile_parse_expression(parser);
}

/* A positional generic argument, or NAME = value. */
static void parse_export_argument(TileParser *parser, TileExport *export) {
    bool named = tile_parse_peek(parser) == TILE_TOKEN_NAME && tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_ASSIGN;
    if (named || export->settings.count) {
        TileNameRef name = tile_parse_name(parser);
        tile_parse_expect(parser, TILE_TOKEN_ASSIGN);
        TileArgumentExpr setting = {.name = name.name, .name_span = name.span};
        setting.value = tile_parse_expression(parser);
        if (!parser->panic) tile_list_push(parser->arena, &export->settings, setting);
        return;
    }
    TileExpr *argument = tile_parse_expression(parser);
    if (!parser->panic) tile_list_push(parser->arena, &export->arguments, argument);
}

/* `export k(f32)` */
static void fail_export_list(TileParser *parser) {
    fail_brackets(parser, TILE_TOKEN_RIGHT_PAREN, TILE_TOKEN_LEFT_BRACKET, TILE_TOKEN_RIGHT_BRACKET);
}

static TileExport parse_one_export(TileParser *parser) {
    TileExport export = {.kernel = tile_parse_name(parser)};
    TileSpan begin = export.kernel.span;
    if (tile_parse_accept(parser, TILE_TOKEN_DOT)) {
        export.module = export.kernel;
        export.kernel = tile_parse_name(parser);
    }
    if (tile_parse_accept(parser, TILE_TOKEN_LEFT_BRACKET)) {
        do {
            parse_export_argument(parser, &export);
            if (parser->panic) return export;
        } while (tile_parse_accept(parser, TILE_TOKEN_COMMA));
        tile_parse_expect(parser, TILE_TOKEN_RIGHT_BRACKET);
    }
    if (tile_parse_peek(parser) == TILE_TOKEN_LEFT_PAREN) fail_export_list(parser);
    if (tile_parse_at_word(parser, "as")) {
        tile_parse_advance(parser);
        export.name = tile_parse_name(parser).name;
    }
    export.span = tile_parse_span_from(parser, begin);
    return export;
}

void tile_parse_export_list(TileParser *parser, TileItem *item) {
    item->kind = TILE_ITEM_EXPORT;
    do {
        TileExport export = parse_one_export(parser);
        tile_list_push(parser->arena, &item->exports, export);
    } while (tile_parse_accept(parser, TILE_TOKEN_COMMA));
}

/* `export kernel k(..)`, as in other languages: the kernel that is behind it is parsed. */
static void skip_export(TileParser *parser) {
    TileTokenKind next = tile_parse_peek_ahead(parser, 1);
    bool follows = next == TILE_TOKEN_KERNEL || next == TILE_TOKEN_FN;
    if (tile_parse_peek(parser) != TILE_TOKEN_EXPORT || !follows || parser->tokens.list.items[parser->position + 1].line_break) return;
    TileSpan begin = tile_parse_span(parser);
    tile_parse_advance(parser);
    TileSpan both = {parser->file, begin.begin, tile_parse_span(parser).end};
    const char *word = next == TILE_TOKEN_KERNEL ? "kernel" : "fn";
    TileDiagnostic *d = tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_EXPECTED, both, "the name of a kernel behind `export`",
                                      tile_token_words(next));
    tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                         next == TILE_TOKEN_KERNEL
                             ? "what is in a file can be imported and launched; a library holds what an `export k[f32]` on a line of its own names"
                             : "the functions of a file can be imported as they are");
    tile_diagnostic_edit(parser->diagnostics, d, both, "%s", word);
}

static void parse_test(TileParser *parser, TileItem *item) {
    item->kind = TILE_ITEM_TEST;
    tile_parse_advance(parser);
    item->name_span = tile_parse_span(parser);
    if (tile_parse_peek(parser) == TILE_TOKEN_STRING)
        item->name = tile_parse_string(parser);
    else
        tile_parse_fail(parser, "the text that names the test");
    item->body = tile_parse_sequence(parser);
    if (!parser->panic) tile_parse_check_sequence_effect(parser, item->body);
}

/* The text of the `///` lines before the current token, without the slashes. */
static const char *take_doc(TileParser *parser) {
    const TileDocComment *doc = NULL;
    for (; parser->next_doc < parser->tokens.docs.count; parser->next_doc++) {
        if (parser->tokens.docs.items[parser->next_doc].token > parser->position) break;
        doc = &parser->tokens.docs.items[parser->next_doc];
    }
    if (!doc || doc->token != parser->position) return NULL;
    TileText text = {.arena = parser->arena};
    const char *c = parser->text + doc->begin, *end = parser->text + doc->end;
    while (c < end) {
        const char *line_end = memchr(c, '\n', (size_t)(end - c));
        if (!line_end) line_end = end;
        const char *slashes = memchr(c, '/', (size_t)(line_end - c));
        const char *words = slashes ? slashes + 3 : line_end;
        if (words < line_end && *words == ' ') words++;
        const char *last = line_end;
        while (last > words && (last[-1] == '\r' || last[-1] == ' ')) last--;
        if (text.length) tile_text_add_char(&text, '\n');
        tile_text_add_bytes(&text, words, (size_t)(last - words));
        c = line_end + 1;
    }
    return tile_text_get(&text);
}

TileItem *tile_parse_item(TileParser *parser) {
    TileItem *item = TILE_NEW(parser->arena, TileItem);
    TileSpan begin = tile_parse_span(parser);
    item->doc = take_doc(parser);
    skip_export(parser);
    switch (tile_parse_peek(parser)) {
    case TILE_TOKEN_KERNEL: parse_function(parser, item, TILE_ITEM_KERNEL); break;
    case TILE_TOKEN_FN: parse_function(parser, item, TILE_ITEM_FN); break;
    case TILE_TOKEN_IMPORT: parse_import(parser, item); break;
    case TILE_TOKEN_CONST: parse_const(parser, item); break;
    case TILE_TOKEN_EXPORT:
        tile_parse_advance(parser);
        tile_parse_export_list(parser, item);
        break;
    case TILE_TOKEN_TEST: parse_test(parser, item); break;
    case TILE_TOKEN_STATIC_ASSERT: {
        item->kind = TILE_ITEM_STATIC_ASSERT;
        tile_parse_advance(parser);
        TileExpr call = {.kind = TILE_EXPR_CALL};
        tile_parse_arguments(parser, &call);
        item->arguments.items = call.arguments.items;
        item->arguments.count = call.arguments.count;
        break;
    }
    default: {
        TileDiagnostic *d = tile_parse_fail_item(parser);
        tile_parse_propose_item(parser, d);
        return NULL;
    }
    }
    item->span = tile_parse_span_from(parser, begin);
    TileTokenKind next = tile_parse_peek(parser);
    if (!parser->panic && next != TILE_TOKEN_NEWLINE && next != TILE_TOKEN_SEMICOLON && next != TILE_TOKEN_END)
        tile_parse_fail(parser, "the end of the line");
    return item;
}
