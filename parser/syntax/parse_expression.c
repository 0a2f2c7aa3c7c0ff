/* Expressions. Binary operators by precedence climbing; chains are parsed in loops, so only nesting uses stack. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lang/scalar/scalar.h"
#include "parser/syntax/parse.h"

static TileExpr *new_expr(TileParser *parser, TileExprKind kind, TileSpan span) {
    TileExpr *expr = TILE_NEW(parser->arena, TileExpr);
    expr->kind = kind;
    expr->span = span;
    expr->depth = 1;
    return expr;
}

static uint16_t depth_of(const TileExpr *expr) { return expr ? expr->depth : 0; }

/* A chain such as a + b + c is a deep tree without nesting in the text. */
static void set_depth(TileParser *parser, TileExpr *expr, uint16_t below) {
    if (below >= TILE_MAX_DEPTH && !parser->panic) {
        parser->panic = true;
        tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_TOO_DEEP, expr->span, (unsigned)TILE_MAX_DEPTH);
    }
    if (expr->depth <= below) expr->depth = (uint16_t)(below + 1);
}

/* ---- numbers ---- */

static TileExpr *parse_integer(TileParser *parser) {
    TileSpan span = tile_parse_span(parser);
    const char *text = parser->text + span.begin;
    uint32_t length = span.end - span.begin, i = 0;
    uint64_t base = 10, value = 0;
    if (length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'b')) {
        base = text[1] == 'x' ? 16 : 2;
        i = 2;
    }
    bool fits = true;
    for (; i < length; i++) {
        if (text[i] == '_') continue;
        unsigned digit = text[i] <= '9' ? (unsigned)(text[i] - '0') : (unsigned)((text[i] | 32) - 'a' + 10);
        if (digit >= base) break; /* reported by the scanner */
        fits = fits && !__builtin_mul_overflow(value, base, &value) && !__builtin_add_overflow(value, digit, &value);
    }
    if (!fits) tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_NUMBER_TOO_LARGE, span);
    tile_parse_advance(parser);
    TileExpr *expr = new_expr(parser, TILE_EXPR_INTEGER, span);
    expr->integer = value;
    return expr;
}

static TileExpr *parse_float(TileParser *parser) {
    TileSpan span = tile_parse_span(parser);
    char *digits = tile_arena_string(parser->arena, parser->text + span.begin, span.end - span.begin), *end = digits;
    for (const char *next = digits; *next; next++)
        if (*next != '_') *end++ = *next;
    *end = 0;
    tile_parse_advance(parser);
    TileExpr *expr = new_expr(parser, TILE_EXPR_FLOAT, span);
    expr->number = tile_read_number(digits, NULL);
    return expr;
}

static TileExpr *parse_word(TileParser *parser, TileTokenKind kind) {
    TileSpan span = tile_parse_span(parser);
    bool truth = kind == TILE_TOKEN_TRUE || kind == TILE_TOKEN_FALSE;
    TileExpr *expr = new_expr(parser, truth ? TILE_EXPR_BOOL : TILE_EXPR_FLOAT, span);
    tile_parse_advance(parser);
    if (truth)
        expr->truth = kind == TILE_TOKEN_TRUE;
    else
        expr->number = kind == TILE_TOKEN_INF ? INFINITY : NAN;
    return expr;
}

/* ---- primaries ---- */

static TileExpr *parse_parenthesised(TileParser *parser) {
    TileSpan begin = tile_parse_span(parser);
    bool header = parser->header;
    tile_parse_advance(parser);
    TileExpr *tuple = new_expr(parser, TILE_EXPR_TUPLE, begin);
    bool comma = false;
    while (!parser->panic && tile_parse_peek(parser) != TILE_TOKEN_RIGHT_PAREN) {
        TileExpr *item = tile_parse_expression(parser);
        if (parser->panic) break;
        tile_list_push(parser->arena, &tuple->items, item);
        set_depth(parser, tuple, item->depth);
        if (!tile_parse_accept(parser, TILE_TOKEN_COMMA)) break;
        comma = true;
    }
    tile_parse_expect(parser, TILE_TOKEN_RIGHT_PAREN);
    parser->header = header;
    tuple->span = tile_parse_span_from(parser, begin);
    if (parser->panic || comma || tuple->items.count != 1) return tuple;
    TileExpr *inner = tuple->items.items[0];
    inner->parenthesised = true;
    inner->span = tuple->span;
    return inner;
}

static TileSequence *parse_otherwise(TileParser *parser);
static TileSequence *parse_other_if(TileParser *parser);

/* `if` or `static if` */
static bool at_if(TileParser *parser) {
    TileTokenKind kind = tile_parse_peek(parser);
    return kind == TILE_TOKEN_IF || (kind == TILE_TOKEN_STATIC && tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_IF);
}

static TileExpr *parse_if(TileParser *parser) {
    TileExpr *expr = new_expr(parser, TILE_EXPR_IF, tile_parse_span(parser));
    TileSpan begin = expr->span;
    expr->is_static = tile_parse_accept(parser, TILE_TOKEN_STATIC);
    tile_parse_advance(parser);
    if (!tile_parse_enter(parser)) return expr;
    expr->a = tile_parse_comparing(parser);
    tile_parse_skip_word(parser, "then");
    if (tile_parse_at_foreign(parser, "then")) {
        TileSpan word = tile_parse_span(parser);
        tile_parse_advance(parser);
        tile_parse_report_then(parser, word, tile_parse_expression(parser));
    }
    expr->then = tile_parse_sequence(parser);
    if (tile_parse_report_elif(parser))
        expr->otherwise = parse_other_if(parser);
    else if (tile_parse_accept(parser, TILE_TOKEN_ELSE))
        expr->otherwise = parse_otherwise(parser);
    tile_parse_leave(parser);
    expr->span = tile_parse_span_from(parser, begin);
    set_depth(parser, expr, depth_of(expr->a));
    return expr;
}

static TileSequence *parse_otherwise(TileParser *parser) {
    return at_if(parser) ? parse_other_if(parser) : tile_parse_sequence(parser);
}

static TileSequence *parse_other_if(TileParser *parser) {
    TileSequence *sequence = TILE_NEW(parser->arena, TileSequence);
    sequence->value = parse_if(parser);
    sequence->span = sequence->value->span;
    return sequence;
}

static TileExpr *parse_postfix(TileParser *parser, bool to_call);

static TileExpr *parse_name_expression(TileParser *parser) {
    if (tile_parse_fail_lambda(parser)) return new_expr(parser, TILE_EXPR_TUPLE, tile_parse_span(parser));
    TileNameRef ref = tile_parse_name(parser);
    TileTokenKind next = tile_parse_peek(parser);
    if (next == TILE_TOKEN_NAME && strcmp(ref.name, "run") == 0 && tile_parse_enter(parser)) {
        TileExpr *run = new_expr(parser, TILE_EXPR_RUN, ref.span);
        run->a = parse_postfix(parser, true);
        tile_parse_leave(parser);
        run->span = tile_parse_span_from(parser, ref.span);
        set_depth(parser, run, depth_of(run->a));
        return run;
    }
    TileExpr *expr = new_expr(parser, TILE_EXPR_NAME, ref.span);
    expr->name = ref.name;
    return expr;
}

enum { COMPARISON = 4, LOOSEST = 0 };

/* The precedence of a binary operator; -1 for other tokens. */
static int precedence(TileTokenKind kind) {
    switch (kind) {
    case TILE_TOKEN_STAR:
    case TILE_TOKEN_SLASH:
    case TILE_TOKEN_PERCENT:
    case TILE_TOKEN_AT: return 10;
    case TILE_TOKEN_PLUS:
    case TILE_TOKEN_MINUS: return 9;
    case TILE_TOKEN_SHL:
    case TILE_TOKEN_SHR: return 8;
    case TILE_TOKEN_AMPERSAND: return 7;
    case TILE_TOKEN_CARET: return 6;
    case TILE_TOKEN_BAR: return 5;
    case TILE_TOKEN_EQUAL:
    case TILE_TOKEN_NOT_EQUAL:
    case TILE_TOKEN_LESS:
    case TILE_TOKEN_LESS_EQUAL:
    case TILE_TOKEN_GREATER:
    case TILE_TOKEN_GREATER_EQUAL: return COMPARISON;
    case TILE_TOKEN_AND: return 3;
    case TILE_TOKEN_OR: return 2;
    case TILE_TOKEN_ELSE: return 1;
    case TILE_TOKEN_DOTS: return LOOSEST;
    default: return -1;
    }
}

static void fail_expression(TileParser *parser) {
    TileTokenKind found = tile_parse_peek(parser);
    TileSpan span = tile_parse_span(parser), begin = {span.file, span.begin, span.begin};
    bool digits = tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_INTEGER;
    bool new_line = parser->newline_taken;
    TileDiagnostic *d = tile_parse_fail(parser, "an expression");
    bool pointer = found == TILE_TOKEN_AMPERSAND || found == TILE_TOKEN_STAR;
    if (pointer && !new_line && tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_NAME) {
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                             "there are no pointers; `x[n]` is an element itself");
        tile_diagnostic_edit(parser->diagnostics, d, span, "%s", "");
    }
    if (!new_line && (found == TILE_TOKEN_LEFT_BRACKET || found == TILE_TOKEN_LEFT_BRACE))
        tile_diagnostic_note(
            parser->diagnostics, d, (TileSpan){0},
            "a tile has no literal: it is loaded from a tensor, or made by `full`, `iota` and `where`");
    if (found == TILE_TOKEN_DOT && digits) tile_diagnostic_edit(parser->diagnostics, d, begin, "0");
    TileTokenKind next = tile_parse_peek_ahead(parser, 1);
    if (precedence(found) > LOOSEST && (next == TILE_TOKEN_COMMA || next == TILE_TOKEN_RIGHT_PAREN))
        tile_diagnostic_note(parser->diagnostics, d, (TileSpan){0},
                             "an operator is no value: a fold takes a function of the file, or `min` and `max`; sums are `sum` and `cumsum`");
    if (new_line && precedence(found) > LOOSEST) tile_parse_propose_join(parser, d, span);
}

static TileExpr *parse_primary(TileParser *parser) {
    TileTokenKind kind = tile_parse_peek(parser);
    TileSpan span = tile_parse_span(parser);
    if (kind == TILE_TOKEN_BAR && tile_parse_fail_lambda(parser)) return new_expr(parser, TILE_EXPR_TUPLE, span);
    if (at_if(parser)) return parse_if(parser);
    switch (kind) {
    case TILE_TOKEN_NAME: return parse_name_expression(parser);
    case TILE_TOKEN_INTEGER: return parse_integer(parser);
    case TILE_TOKEN_FLOAT: return parse_float(parser);
    case TILE_TOKEN_TRUE:
    case TILE_TOKEN_FALSE:
    case TILE_TOKEN_INF:
    case TILE_TOKEN_NAN: return parse_word(parser, kind);
    case TILE_TOKEN_STRING: {
        TileExpr *expr = new_expr(parser, TILE_EXPR_STRING, span);
        expr->name = tile_parse_string(parser);
        return expr;
    }
    case TILE_TOKEN_LEFT_PAREN: return parse_parenthesised(parser);
    default: fail_expression(parser); return new_expr(parser, TILE_EXPR_TUPLE, span);
    }
}

/* ---- postfix ---- */

static bool at_entry_end(const TileParser *parser) {
    TileTokenKind kind = tile_parse_peek(parser);
    return parser->panic || kind == TILE_TOKEN_COMMA || kind == TILE_TOKEN_RIGHT_BRACKET || kind == TILE_TOKEN_END;
}

/* `low:high` and `low:high:step`, as in Python, from behind the first colon. */
static TileExpr *parse_slice(TileParser *parser, TileSpan begin, const TileExpr *low) {
    bool open = at_entry_end(parser) || tile_parse_peek(parser) == TILE_TOKEN_COLON; /* x[a::2] */
    TileExpr *high = open ? NULL : tile_parse_expression(parser);
    bool stepped = tile_parse_accept(parser, TILE_TOKEN_COLON);
    if (stepped && !at_entry_end(parser)) tile_parse_expression(parser);
    TileSpan span = tile_parse_span_from(parser, begin);
    tile_parse_report_slice(parser, span, low, high, stepped);
    return new_expr(parser, TILE_EXPR_COLON, span);
}

static TileExpr *parse_index_entry(TileParser *parser) {
    TileSpan span = tile_parse_span(parser);
    if (tile_parse_accept(parser, TILE_TOKEN_COLON)) {
        TileExpr *whole = new_expr(parser, TILE_EXPR_COLON, span);
        return at_entry_end(parser) ? whole : parse_slice(parser, span, NULL);
    }
    if (tile_parse_accept(parser, TILE_TOKEN_UNDERSCORE)) return new_expr(parser, TILE_EXPR_NEWAXIS, span);
    if (tile_parse_accept(parser, TILE_TOKEN_ELLIPSIS)) {
        tile_parse_report_ellipsis(parser, span);
        return new_expr(parser, TILE_EXPR_COLON, span);
    }
    TileExpr *entry = tile_parse_expression(parser);
    return tile_parse_accept(parser, TILE_TOKEN_COLON) ? parse_slice(parser, span, entry) : entry;
}

static void parse_index(TileParser *parser, TileExpr *index) {
    tile_parse_advance(parser);
    while (!parser->panic && tile_parse_peek(parser) != TILE_TOKEN_RIGHT_BRACKET) {
        TileExpr *entry = parse_index_entry(parser);
        if (parser->panic) break;
        tile_list_push(parser->arena, &index->items, entry);
        set_depth(parser, index, entry->depth);
        tile_parse_fail_mask(parser, entry);
        if (!tile_parse_accept(parser, TILE_TOKEN_COMMA)) break;
    }
    tile_parse_expect(parser, TILE_TOKEN_RIGHT_BRACKET);
}

static TileArgumentExpr parse_argument(TileParser *parser) {
    TileSpan span = tile_parse_span(parser);
    if (tile_parse_accept(parser, TILE_TOKEN_ELLIPSIS)) {
        TileExpr *spread = new_expr(parser, TILE_EXPR_SPREAD, span);
        TileNameRef ref = tile_parse_name(parser);
        spread->name = ref.name;
        spread->span = tile_parse_span_from(parser, span);
        return (TileArgumentExpr){.value = spread};
    }
    TileArgumentExpr argument = {0};
    if (tile_parse_peek(parser) == TILE_TOKEN_NAME && tile_parse_peek_ahead(parser, 1) == TILE_TOKEN_ASSIGN) {
        TileNameRef ref = tile_parse_name(parser);
        argument.name = ref.name;
        argument.name_span = ref.span;
        tile_parse_advance(parser);
    }
    argument.value = tile_parse_comparing(parser);
    return argument;
}

/* The arguments of a call, from its opening parenthesis on. */
void tile_parse_arguments(TileParser *parser, TileExpr *call) {
    if (!tile_parse_expect(parser, TILE_TOKEN_LEFT_PAREN)) return;
    while (!parser->panic && tile_parse_peek(parser) != TILE_TOKEN_RIGHT_PAREN) {
        TileArgumentExpr argument = parse_argument(parser);
        if (parser->panic) break;
        tile_list_push(parser->arena, &call->arguments, argument);
        set_depth(parser, call, argument.value->depth);
        if (!tile_parse_accept(parser, TILE_TOKEN_COMMA)) break;
    }
    tile_parse_expect(parser, TILE_TOKEN_RIGHT_PAREN);
}

/* `to_call`: stops after the first call. What follows `run k(..)` is applied to its result. */
static TileExpr *parse_postfix(TileParser *parser, bool to_call) {
    TileExpr *expr = parse_primary(parser);
    while (!parser->panic && !(to_call && expr->kind == TILE_EXPR_CALL)) {
        TileTokenKind kind = tile_parse_peek(parser);
        TileExpr *next = NULL;
        if (kind == TILE_TOKEN_DOT) {
            next = new_expr(parser, TILE_EXPR_FIELD, expr->span);
            tile_parse_advance(parser);
            TileNameRef ref = tile_parse_name(parser);
            next->name = ref.name;
            next->op_span = ref.span;
        } else if (kind == TILE_TOKEN_LEFT_BRACKET) {
            next = new_expr(parser, TILE_EXPR_INDEX, expr->span);
            parse_index(parser, next);
        } else if (kind == TILE_TOKEN_LEFT_PAREN) {
            next = new_expr(parser, TILE_EXPR_CALL, expr->span);
            tile_parse_arguments(parser, next);
        } else {
            break;
        }
        next->a = expr;
        next->span = tile_parse_span_from(parser, expr->span);
        set_depth(parser, next, expr->depth);
        expr = next;
    }
    return expr;
}

/* ---- operators ---- */

static TileExpr *parse_unary(TileParser *parser);
static TileExpr *parse_binary(TileParser *parser, int loosest);

/* What follows a type in parentheses, as in C. */
static TileExpr *parse_cast(TileParser *parser, const TileExpr *type) {
    if (!tile_parse_enter(parser)) return new_expr(parser, TILE_EXPR_TUPLE, type->span);
    TileExpr *operand = parse_unary(parser);
    tile_parse_leave(parser);
    tile_parse_report_cast(parser, type, operand);
    return operand;
}

static TileExpr *parse_unary(TileParser *parser) {
    TileTokenKind kind = tile_parse_peek(parser);
    TileSpan span = tile_parse_span(parser);
    bool word = tile_parse_at_not(parser);
    if (kind != TILE_TOKEN_MINUS && kind != TILE_TOKEN_BANG && kind != TILE_TOKEN_TILDE && !word) {
        TileExpr *operand = parse_postfix(parser, false);
        tile_parse_skip_as(parser, operand);
        return tile_parse_at_cast(parser, operand) ? parse_cast(parser, operand) : operand;
    }
    if (word) kind = TILE_TOKEN_BANG;
    TileExpr *expr = new_expr(parser, TILE_EXPR_UNARY, span);
    expr->op = (uint8_t)kind;
    tile_parse_advance(parser);
    if (!tile_parse_enter(parser)) return expr;
    expr->a = word ? parse_binary(parser, COMPARISON) : parse_unary(parser);
    if (word) tile_parse_report_not(parser, span, expr->a);
    tile_parse_leave(parser);
    expr->span = tile_parse_span_from(parser, span);
    set_depth(parser, expr, expr->a->depth);
    return expr;
}

static void check_chain(TileParser *parser, const TileExpr *left, int level, TileSpan op) {
    bool chained = left->kind == TILE_EXPR_BINARY && !left->parenthesised && level == COMPARISON &&
                   precedence((TileTokenKind)left->op) == COMPARISON;
    if (!chained) return;
    TileDiagnostic *d = tile_diagnose(parser->diagnostics, TILE_DIAGNOSTIC_CHAINED_COMPARISON, op);
    if (tile_parse_report_loose_bits(parser, d, left->b)) return;
    TileSpan middle = left->b->span, behind = {op.file, middle.end, middle.end};
    tile_diagnostic_edit(parser->diagnostics, d, behind, " && %.*s", (int)(middle.end - middle.begin),
                         parser->text + middle.begin);
}

/* The exponent, from the second star of `**` on. */
static TileExpr *parse_power(TileParser *parser, TileSpan op, TileExpr *left) {
    tile_parse_advance(parser);
    op.end = tile_parse_last_end(parser);
    TileExpr *right = parse_unary(parser);
    tile_parse_report_power(parser, op, left, right);
    return left;
}

/* `left if c else other`, as in Python. */
static TileExpr *parse_ternary(TileParser *parser, TileExpr *left) {
    TileSpan word = tile_parse_span(parser);
    tile_parse_advance(parser);
    if (!tile_parse_enter(parser)) return left;
    TileExpr *rest = parse_binary(parser, LOOSEST);
    tile_parse_leave(parser);
    tile_parse_report_ternary(parser, word, left, rest);
    return left;
}

/* `c ? left : other`, as in C. */
static TileExpr *parse_choice(TileParser *parser, TileExpr *condition) {
    TileSpan op = tile_parse_span(parser);
    tile_parse_advance(parser);
    if (!tile_parse_enter(parser)) return condition;
    TileExpr *value = parse_binary(parser, LOOSEST);
    bool whole = tile_parse_accept(parser, TILE_TOKEN_COLON);
    TileExpr *other = whole ? parse_binary(parser, LOOSEST) : NULL;
    tile_parse_leave(parser);
    tile_parse_report_choice(parser, op, condition, value, other);
    return condition;
}

static TileExpr *parse_binary(TileParser *parser, int loosest) {
    TileExpr *left = parse_unary(parser);
    while (!parser->panic) {
        TileTokenKind kind = tile_parse_operator(parser);
        int level = precedence(kind);
        if (kind == TILE_TOKEN_IF && loosest == LOOSEST) return parse_ternary(parser, left);
        if (tile_parse_peek(parser) == TILE_TOKEN_ASSIGN && tile_parse_fail_lambda(parser)) return left;
        if (kind == TILE_TOKEN_QUESTION && loosest == LOOSEST) return parse_choice(parser, left);
        if (level < loosest) break;
        TileSpan op = tile_parse_span(parser);
        check_chain(parser, left, level, op);
        tile_parse_report_operator(parser, kind);
        tile_parse_advance(parser);
        kind = tile_parse_comparison(parser, kind, op);
        if (kind == TILE_TOKEN_DOTS) tile_parse_skip_inclusive(parser, op);
        if (kind == TILE_TOKEN_STAR && tile_parse_peek(parser) == TILE_TOKEN_STAR) {
            left = parse_power(parser, op, left);
            continue;
        }
        TileExpr *expr = new_expr(parser, TILE_EXPR_BINARY, left->span);
        expr->op = (uint8_t)kind;
        expr->op_span = op;
        expr->a = left;
        if (kind == TILE_TOKEN_ELSE && tile_parse_peek(parser) == TILE_TOKEN_SKIP) {
            expr->b = new_expr(parser, TILE_EXPR_SKIP, tile_parse_span(parser));
            tile_parse_advance(parser);
        } else {
            expr->b = parse_binary(parser, level + 1);
        }
        expr->span = tile_parse_span_from(parser, left->span);
        set_depth(parser, expr, left->depth > expr->b->depth ? left->depth : expr->b->depth);
        left = expr;
    }
    return left;
}

TileExpr *tile_parse_expression(TileParser *parser) {
    TileSpan span = tile_parse_span(parser);
    if (!tile_parse_enter(parser)) return new_expr(parser, TILE_EXPR_TUPLE, span);
    TileExpr *expr = parse_binary(parser, LOOSEST);
    tile_parse_leave(parser);
    return expr;
}

TileExpr *tile_parse_comparing(TileParser *parser) {
    bool compares = parser->compares;
    parser->compares = true;
    TileExpr *expr = tile_parse_expression(parser);
    parser->compares = compares;
    return expr;
}
