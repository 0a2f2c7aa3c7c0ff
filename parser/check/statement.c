/* Statements of each kind. */
#include "parser/check/assert.h"
#include "parser/check/bounds.h"
#include "parser/check/constant.h"
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/grid.h"
#include "parser/check/index.h"
#include "parser/check/leave.h"
#include "parser/check/literal.h"
#include "parser/check/loop.h"
#include "parser/check/meaning.h"
#include "parser/check/observed.h"
#include "parser/check/names.h"
#include "parser/check/operand.h"
#include "parser/check/operator.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/sequence.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"
#include "parser/check/statement.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"
#include "parser/check/warn.h"

/* ---- bindings ---- */

/* The meanings that a name can have; with `let` a literal stays untyped, a variable has a type. */
static TileMeaning bound_value(TileChecker *c, TileMeaning m, bool is_var, TileSpan span) {
    switch (m.kind) {
    case TILE_MEANING_ERROR: return m;
    case TILE_MEANING_INTEGER:
    case TILE_MEANING_NUMBER:
    case TILE_MEANING_CHOICE:
    case TILE_MEANING_VALUE: return tile_as_value(c, m, span);
    case TILE_MEANING_RANGE:
        if (!is_var) return m;
        break;
    case TILE_MEANING_TENSOR:
        if (!is_var && c->test) return m;
        break;
    default: break;
    }
    return tile_fail(c, NOT_VALUE, span, tile_meaning_words(c, &m));
}

static void bind_one(TileChecker *c, const TileStatement *statement, TileNameRef name, TileMeaning m, TileSpan span) {
    bool is_var = statement->kind == TILE_STATEMENT_VAR;
    m = bound_value(c, m, is_var, span);
    if (m.kind == TILE_MEANING_RANGE) {
        TileRange *range = tile_arena_copy(c->arena, m.range, sizeof *m.range);
        if (!range->name) range->name = name.name;
        m.range = range;
    }
    /* Emitted at the binding, so that the host computes what it can and loops do not repeat it. */
    if (!is_var && m.kind == TILE_MEANING_VALUE && m.sum && m.sum->count) m.value = tile_emit_sum(c, m.sum);
    tile_name_symbol(&m, name.name);
    if (m.value && !m.value->name && m.value->op) m.value->name = tile_intern_string(c->context->strings, name.name);
    if (!is_var) {
        tile_scope_bind(c, name, m, false);
        return;
    }
    if (m.kind == TILE_MEANING_VALUE && m.rank == 0 && c->frame->lifted) m = tile_lift(c, m);
    tile_scope_declare(c, name, m);
}

/* `let a = f(x)` of a function with several results: proposes to name the first. */
static TileMeaning fail_tuple(TileChecker *c, const TileStatement *statement, unsigned count) {
    TileNameRef name = statement->names.items[0];
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_VALUE, statement->value->span, "a tuple");
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "each of its parts has a name of its own");
    TileText parts = {.arena = c->arena};
    for (unsigned i = 2; i <= count; i++) tile_text_format(&parts, ", _%s%u", name.name, i);
    tile_diagnostic_edit(c->diagnostics, d, name.span, "(%s%s)", name.name, tile_text_get(&parts));
    tile_report(c, d);
    return tile_error_meaning();
}

/* The parts of a tuple that is written out are bound as each alone would be: they may be ranges. All are computed first. */
static void bind_parts(TileChecker *c, const TileStatement *statement) {
    const TileExpr *tuple = statement->value;
    TileMeaning *parts = TILE_NEW_ARRAY(c->arena, TileMeaning, statement->names.count);
    for (size_t i = 0; i < statement->names.count; i++) {
        parts[i] = tile_check_expr(c, tuple->items.items[i]);
        if (parts[i].kind != TILE_MEANING_RANGE || statement->kind == TILE_STATEMENT_VAR)
            parts[i] = tile_value_of(c, parts[i], tuple->items.items[i]);
    }
    for (size_t i = 0; i < statement->names.count; i++)
        bind_one(c, statement, statement->names.items[i], parts[i], tuple->items.items[i]->span);
}

static void check_binding(TileChecker *c, const TileStatement *statement) {
    const TileExpr *written = statement->tuple ? statement->value : NULL;
    if (written && written->kind == TILE_EXPR_TUPLE && written->items.count == statement->names.count)
        return bind_parts(c, statement);
    TileMeaning m = tile_check_expr(c, statement->value);
    bool host = !c->in_grid && c->frame->item->kind == TILE_ITEM_KERNEL;
    if (host && !tile_check_host_value(c, &m, statement->value->span)) m = tile_error_meaning();
    if (!statement->tuple) {
        if (m.kind == TILE_MEANING_TUPLE) m = fail_tuple(c, statement, m.count);
        bind_one(c, statement, statement->names.items[0], m, statement->value->span);
        return;
    }
    bool fits = m.kind == TILE_MEANING_TUPLE && m.count == statement->names.count;
    if (!fits && !tile_is_error(&m))
        tile_fail(c, TUPLE_COUNT, statement->value->span, (unsigned)statement->names.count, tile_meaning_words(c, &m));
    for (size_t i = 0; i < statement->names.count; i++)
        bind_one(c, statement, statement->names.items[i], fits ? m.items[i] : tile_error_meaning(),
                 statement->value->span);
}

/* ---- assignment ---- */

static TileTokenKind plain_operator(TileTokenKind op) {
    switch (op) {
    case TILE_TOKEN_PLUS_ASSIGN: return TILE_TOKEN_PLUS;
    case TILE_TOKEN_MINUS_ASSIGN: return TILE_TOKEN_MINUS;
    case TILE_TOKEN_STAR_ASSIGN: return TILE_TOKEN_STAR;
    case TILE_TOKEN_SLASH_ASSIGN: return TILE_TOKEN_SLASH;
    case TILE_TOKEN_PERCENT_ASSIGN: return TILE_TOKEN_PERCENT;
    case TILE_TOKEN_AMPERSAND_ASSIGN: return TILE_TOKEN_AMPERSAND;
    case TILE_TOKEN_BAR_ASSIGN: return TILE_TOKEN_BAR;
    case TILE_TOKEN_CARET_ASSIGN: return TILE_TOKEN_CARET;
    case TILE_TOKEN_SHL_ASSIGN: return TILE_TOKEN_SHL;
    default: return TILE_TOKEN_SHR;
    }
}

/* A conversion; a scalar that is to become a tile is broadcast. */
static void propose_fitting(TileChecker *c, TileDiagnostic *d, const TileVar *var, const TileMeaning *value,
                            TileSpan span) {
    const TileMeaning *now = &var->now;
    const char *type = tile_scalar_name((TileScalar)now->scalar), *text = tile_bare_text(c, span);
    TileText extents = {.arena = c->arena};
    if (value->kind != TILE_MEANING_VALUE) return;
    if (value->rank == now->rank && value->scalar != now->scalar)
        tile_diagnostic_edit(c->diagnostics, d, span, "%s(%s)", type, text);
    if (value->rank && !now->rank && value->scalar == now->scalar) tile_propose_start_tile(c, d, var, value);
    if (value->rank || !now->rank) return;
    for (unsigned i = 0; i < now->rank; i++)
        tile_text_format(&extents, "%s%s", i ? ", " : "", tile_sum_words(c, now->extent[i]));
    tile_diagnostic_edit(c->diagnostics, d, span, "full[%s](%s(%s))", tile_text_get(&extents), type, text);
}

/* The value, converted to the variable's declared type. */
static bool fit_variable(TileChecker *c, const TileVar *var, TileMeaning *value, TileSpan span) {
    const TileMeaning *now = &var->now;
    if (tile_is_error(value) || tile_is_error(now)) return false;
    if (tile_is_literal(value)) *value = tile_literal_as(c, value, (TileScalar)now->scalar, span);
    if (tile_is_error(value)) return false;
    bool fits = value->kind == TILE_MEANING_VALUE && value->scalar == now->scalar;
    if (fits && value->rank != now->rank) fits = value->rank == 0 && c->frame->lifted;
    for (unsigned i = 0; fits && i < value->rank; i++) fits = value->extent[i] == now->extent[i];
    if (!fits) {
        if (value->kind == TILE_MEANING_VALUE && value->rank == now->rank && value->scalar == now->scalar)
            tile_about_shapes(c, value, now);
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_VAR_TYPE, span, var->name,
                                          tile_meaning_words(c, now), tile_meaning_words(c, value));
        tile_diagnostic_note(c->diagnostics, d, var->span, "`%s` is declared here", var->name);
        propose_fitting(c, d, var, value, span);
        tile_report(c, d);
        return false;
    }
    *value = tile_stretch(c, *value, now->rank, now->extent);
    return true;
}

static void assign_variable(TileChecker *c, TileVar *var, const TileStatement *statement) {
    TileTokenKind op = (TileTokenKind)statement->op;
    const char *word = c->fill_word;
    c->fill_word = tile_fill_word(statement->value);
    TileDiagnosticsMark before = tile_diagnostics_mark(c->diagnostics);
    TileMeaning value = tile_check_value(c, statement->value);
    if (op != TILE_TOKEN_ASSIGN) {
        TileExpr expr = {.kind = TILE_EXPR_BINARY,
                         .op = (uint8_t)plain_operator(op),
                         .span = statement->span,
                         .op_span = statement->span,
                         .a = statement->target,
                         .b = statement->value};
        value = tile_apply_binary(c, plain_operator(op), var->now, value, &expr);
    }
    tile_emit_at(c, statement->span);
    if (fit_variable(c, var, &value, statement->value->span)) {
        tile_warn_accumulation(c, var, statement, before);
        tile_var_assign(c, var, value, statement->value->span);
    }
    c->fill_word = word;
}

static void assign_tensor(TileChecker *c, const TileStatement *statement) {
    TileTokenKind op = (TileTokenKind)statement->op;
    const TileExpr *expr = statement->value;
    bool skip = expr->kind == TILE_EXPR_BINARY && expr->op == TILE_TOKEN_ELSE && expr->b->kind == TILE_EXPR_SKIP;
    const TileValidity *loaded = NULL;
    if (skip) expr = expr->a;
    TileMeaning value = tile_check_value(c, expr);
    if (op != TILE_TOKEN_ASSIGN && !tile_is_error(&value)) {
        TileExpr both = {.kind = TILE_EXPR_BINARY,
                         .op = (uint8_t)plain_operator(op),
                         .span = statement->span,
                         .op_span = statement->span,
                         .a = statement->target,
                         .b = statement->value};
        TileMeaning old = tile_check_value(c, statement->target);
        loaded = old.valid;
        value = tile_apply_binary(c, plain_operator(op), old, value, &both);
    }
    tile_emit_at(c, statement->span);
    c->update = op != TILE_TOKEN_ASSIGN ? statement : NULL;
    tile_check_store(c, statement->target, value, expr, loaded, skip);
    c->update = NULL;
}

/* Reports a target that is no variable; `bound` is what its name means, if it has one. */
static void fail_target(TileChecker *c, const TileExpr *target, const TileBound *bound) {
    if (!bound) {
        TileMeaning m = tile_check_expr(c, target);
        if (!tile_is_error(&m)) tile_fail(c, NOT_ASSIGNABLE, target->span, tile_meaning_words(c, &m));
        return;
    }
    if (bound->meaning.kind == TILE_MEANING_TENSOR) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_ASSIGNABLE, target->span,
                                          tile_meaning_words(c, &bound->meaning));
        tile_propose_whole(c, d, bound->meaning.tensor, target->span, true);
        tile_report(c, d);
        return;
    }
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_VARIABLE, target->span, target->name);
    tile_diagnostic_note(c->diagnostics, d, bound->span,
                         bound->fixed ? "`%s` is bound here, and keeps its value"
                                      : "`%s` is bound here; `var` would make it assignable",
                         target->name);
    if (!bound->fixed) tile_propose_var(c, d, bound->span);
    tile_report(c, d);
}

static TileBound *bound_target(TileChecker *c, const TileExpr *target) {
    return target->kind == TILE_EXPR_NAME ? tile_scope_find(c, target->name) : NULL;
}

static void assign_part(TileChecker *c, const TileExpr *target, TileMeaning value, const TileExpr *expr) {
    TileBound *bound = bound_target(c, target);
    tile_emit_at(c, target->span);
    if (target->kind == TILE_EXPR_INDEX)
        tile_check_store(c, target, tile_value_of(c, value, expr), expr, NULL, false);
    else if (!bound || !bound->var) {
        if (bound || !tile_check_undeclared(c, target)) fail_target(c, target, bound);
    } else if (fit_variable(c, bound->var, &value, expr->span)) {
        tile_var_assign(c, bound->var, value, expr->span);
    }
}

/* No edit of the whole value of a tuple is right for one of its parts. */
static void take_back(TileChecker *c, TileDiagnostic *d, const TileExpr *expr) {
    if (!d->has_edit || d->edit.begin > expr->span.begin || d->edit.end < expr->span.end) return;
    d->has_edit = false;
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`let (a, b) = ..` names the parts, so that each can be converted");
}

/* (a, y[n]) = f(a, b): all is computed before the first is assigned. */
static void assign_parts(TileChecker *c, const TileStatement *statement) {
    const TileExpr *target = statement->target, *expr = statement->value;
    if (statement->op != TILE_TOKEN_ASSIGN) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_ASSIGNABLE, target->span, "a tuple");
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`(a, b) = ..` assigns the parts; `%s` takes one variable",
                             tile_token_text((TileTokenKind)statement->op));
        tile_report(c, d);
        return;
    }
    TileMeaning m = tile_check_expr(c, expr);
    if (tile_is_error(&m)) return;
    if (m.kind != TILE_MEANING_TUPLE || m.count != target->items.count) {
        tile_fail(c, TUPLE_COUNT, expr->span, (unsigned)target->items.count, tile_meaning_words(c, &m));
        return;
    }
    bool apart = expr->kind == TILE_EXPR_TUPLE;
    size_t reported = c->diagnostics->list.count;
    for (size_t i = 0; i < target->items.count; i++)
        assign_part(c, target->items.items[i], m.items[i], apart ? expr->items.items[i] : expr);
    for (size_t i = reported; !apart && i < c->diagnostics->list.count; i++) take_back(c, c->diagnostics->list.items[i], expr);
}

static void check_assignment(TileChecker *c, const TileStatement *statement) {
    const TileExpr *target = statement->target;
    TileBound *bound = bound_target(c, target);
    if (target->kind == TILE_EXPR_INDEX) {
        assign_tensor(c, statement);
    } else if (target->kind == TILE_EXPR_TUPLE) {
        assign_parts(c, statement);
    } else if (bound && bound->var) {
        assign_variable(c, bound->var, statement);
    } else {
        TileMeaning value = tile_check_expr(c, statement->value);
        if (!bound && tile_check_undeclared(c, target)) return;
        if (!tile_is_error(&value)) fail_target(c, target, bound);
    }
}

/* ---- break, continue, return ---- */

static void check_leave(TileChecker *c, const TileStatement *statement) {
    TileLoopFrame *loop = c->frame->loop;
    bool is_break = statement->kind == TILE_STATEMENT_BREAK;
    if (!loop) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_OUTSIDE_LOOP, statement->span,
                                          is_break ? "break" : "continue");
        if (c->frame->item->kind == TILE_ITEM_KERNEL && c->in_grid) {
            tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`return` ends a program of the grid");
            tile_diagnostic_edit(c->diagnostics, d, statement->span, "return");
        }
        tile_report(c, d);
        return;
    }
    loop->skip->now = tile_bool_meaning(true);
    if (is_break && loop->broke) loop->broke->now = tile_bool_meaning(true);
}

/* An early returned value is stored in variables. */
static void keep_result(TileChecker *c, TileFrame *frame, TileMeaning value, TileSpan span) {
    bool tuple = value.kind == TILE_MEANING_TUPLE;
    if ((tuple ? value.count : 1) != frame->result_count) {
        const char *wanted = frame->result_type ? tile_span_text(c, frame->result_type->span) : "nothing";
        tile_fail(c, RESULT_TYPE, span, frame->item->name, wanted, tile_meaning_words(c, &value));
        return;
    }
    for (unsigned i = 0; i < frame->result_count; i++) {
        const TileTypeExpr *type = tile_result_type(frame->result_type, i);
        TileMeaning part = tuple ? value.items[i] : value;
        TileScalar scalar;
        if (type && tile_find_type(c, type->name, &scalar) && tile_is_literal(&part))
            part = tile_literal_as(c, &part, scalar, span);
        TileMeaning *now = &frame->results[i]->now;
        const TileValidity *other = now->kind == TILE_MEANING_VALUE ? now->valid : NULL; /* of what an earlier `return` gave */
        *now = tile_as_value(c, part, span);
        if (other && now->kind == TILE_MEANING_VALUE) now->valid = tile_valid_union(c, now->valid, other);
    }
}

static void check_return(TileChecker *c, const TileStatement *statement) {
    TileFrame *frame = c->frame;
    bool kernel = frame->item->kind == TILE_ITEM_KERNEL;
    if (kernel && !c->in_grid) {
        tile_fail(c, HOST_STATEMENT, statement->span, "`return`");
        return;
    }
    if (kernel && statement->value) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_KERNEL_RESULT, statement->value->span);
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "its results are stored: `y[n] = ..`, where `y` is `out`");
        tile_report(c, d);
        return;
    }
    TileMeaning value = statement->value ? tile_check_expr(c, statement->value) : tile_nothing();
    if (!frame->has_flags) {
        frame->value = value;
        frame->has_value = statement->value != NULL;
        return;
    }
    frame->returned->now = tile_bool_meaning(true);
    if (statement->value && !tile_is_error(&value)) keep_result(c, frame, value, statement->value->span);
}

/* ---- all kinds ---- */

static bool host_allows(const TileStatement *statement) {
    switch (statement->kind) {
    case TILE_STATEMENT_LET:
    case TILE_STATEMENT_TEMP:
    case TILE_STATEMENT_GRID:
    case TILE_STATEMENT_ASSERT:
    case TILE_STATEMENT_STATIC_ASSERT: return true;
    default: return false;
    }
}

static bool test_allows(const TileStatement *statement) {
    switch ((TileStatementKind)statement->kind) {
    case TILE_STATEMENT_LET:
    case TILE_STATEMENT_VAR:
    case TILE_STATEMENT_ASSIGN:
    case TILE_STATEMENT_EXPR:
    case TILE_STATEMENT_FOR:
    case TILE_STATEMENT_WHILE:
    case TILE_STATEMENT_BREAK:
    case TILE_STATEMENT_CONTINUE:
    case TILE_STATEMENT_ASSERT:
    case TILE_STATEMENT_STATIC_ASSERT: return true;
    case TILE_STATEMENT_RETURN:
    case TILE_STATEMENT_GRID:
    case TILE_STATEMENT_TEMP: return false;
    }
    return false;
}

static void fail_host_statement(TileChecker *c, const TileStatement *statement, const char *words) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_HOST_STATEMENT, statement->span, words);
    bool ranges = statement->kind == TILE_STATEMENT_FOR && !statement->is_static && !statement->is_ordered &&
                  statement->value->kind == TILE_EXPR_CALL && statement->value->a->kind == TILE_EXPR_NAME &&
                  strcmp(statement->value->a->name, "tiles") == 0;
    if (ranges) {
        TileSpan word = {statement->span.file, statement->span.begin, statement->span.begin + 3};
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`grid` runs a program for each range");
        tile_diagnostic_edit(c->diagnostics, d, word, "grid");
    }
    if (statement->kind == TILE_STATEMENT_ASSIGN)
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                             "programs read and write tensors: `grid n in tiles(N, 64) { y[n] = 2 * x[n] }`");
    tile_report(c, d);
}

void tile_check_statement(TileChecker *c, const TileStatement *statement) {
    static const char *const words[] = {
        [TILE_STATEMENT_VAR] = "`var`",           [TILE_STATEMENT_ASSIGN] = "an assignment",
        [TILE_STATEMENT_EXPR] = "this",           [TILE_STATEMENT_FOR] = "`for`",
        [TILE_STATEMENT_WHILE] = "`while`",       [TILE_STATEMENT_BREAK] = "`break`",
        [TILE_STATEMENT_CONTINUE] = "`continue`", [TILE_STATEMENT_RETURN] = "`return`",
        [TILE_STATEMENT_GRID] = "`grid`",         [TILE_STATEMENT_TEMP] = "`temp`"};
    c->fill_word = "0";
    tile_emit_at(c, statement->span);
    tile_spend(c, 1); /* unrolling a loop takes time even if nothing is emitted */
    if (!c->in_grid && c->frame->item->kind == TILE_ITEM_KERNEL && !host_allows(statement)) {
        fail_host_statement(c, statement, words[statement->kind]);
        return;
    }
    if (c->test && !c->frame->parent && !test_allows(statement)) {
        tile_fail(c, TEST_STATEMENT, statement->span, words[statement->kind]);
        return;
    }
    tile_observe_statement(c, statement->span);
    switch ((TileStatementKind)statement->kind) {
    case TILE_STATEMENT_LET:
    case TILE_STATEMENT_VAR: check_binding(c, statement); break;
    case TILE_STATEMENT_ASSIGN: check_assignment(c, statement); break;
    case TILE_STATEMENT_EXPR: tile_check_expr_statement(c, statement->value); break;
    case TILE_STATEMENT_FOR: tile_check_for(c, statement); break;
    case TILE_STATEMENT_WHILE: tile_check_while(c, statement); break;
    case TILE_STATEMENT_BREAK:
    case TILE_STATEMENT_CONTINUE: check_leave(c, statement); break;
    case TILE_STATEMENT_RETURN: check_return(c, statement); break;
    case TILE_STATEMENT_GRID: tile_check_grid(c, statement); break;
    case TILE_STATEMENT_TEMP: tile_check_temp(c, statement); break;
    case TILE_STATEMENT_ASSERT:
    case TILE_STATEMENT_STATIC_ASSERT: tile_check_assert(c, statement); break;
    }
}
