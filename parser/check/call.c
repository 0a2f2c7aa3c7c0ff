/* Calls of functions. A function is checked and emitted at each call, in a frame that has its parameters, its generics
 * and its file in scope. */
#include "parser/check/call.h"
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/function.h"
#include "parser/check/leave.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/operand.h"
#include "parser/check/parameter.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/sequence.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"

enum { CALL_COST = 8 }; /* in ops: nested calls may be much work without emitting ops */

/* ---- results ---- */

static TileMeaning check_scalar_result(TileChecker *c, const TileCall *call, TileMeaning m, const TileTypeExpr *type,
                                       TileSpan span, bool whole) {
    TileScalar scalar;
    if (!tile_find_type(c, type->name, &scalar)) return tile_fail_type(c, type->name_span, type->name);
    if (tile_is_literal(&m)) m = tile_literal_as(c, &m, scalar, span);
    if (tile_is_error(&m)) return m;
    bool fits = m.kind == TILE_MEANING_VALUE && m.scalar == scalar;
    if (type->has_extents)
        fits = fits && m.rank == type->extents.count;
    else
        fits = fits && (m.rank == 0 || call->lifted);
    if (!fits) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_RESULT_TYPE, span, call->item->name,
                                          tile_span_text(c, type->span), tile_meaning_words(c, &m));
        tile_diagnostic_note(c->diagnostics, d, type->span, "the result is declared here");
        bool converts = whole && m.kind == TILE_MEANING_VALUE && m.scalar != scalar &&
                        (type->has_extents ? m.rank == type->extents.count : m.rank == 0 || call->lifted);
        if (converts) tile_diagnostic_edit(c->diagnostics, d, span, "%s(%s)", type->name, tile_bare_text(c, span));
        tile_report(c, d);
        return tile_error_meaning();
    }
    for (size_t i = 0; type->has_extents && i < type->extents.count; i++) {
        const TileSum *wanted = tile_check_integer(c, type->extents.items[i], "an extent");
        if (!wanted) return tile_error_meaning();
        if (wanted != m.extent[i]) tile_about_extents(c, wanted, m.extent[i]);
        if (wanted != m.extent[i])
            return tile_fail(c, EXTENT_MISMATCH, span, tile_sum_words(c, m.extent[i]), tile_sum_words(c, wanted));
    }
    /* A result that does not depend on a tile is broadcast as well: its shape must not depend on the body. */
    bool lifts = call->lifted && !type->has_extents && m.rank == 0;
    return lifts ? tile_lift(c, m) : m;
}

/* The expression that the function returns at its end, NULL if there is no single one. */
static const TileExpr *returned(const TileSequence *body) {
    const TileStatement *last = body->statements.count ? body->statements.items[body->statements.count - 1] : NULL;
    return last && last->kind == TILE_STATEMENT_RETURN ? last->value : NULL;
}

/* `{ a + b }`: the last expression, which is the result in other languages. */
static TileMeaning fail_no_result(TileChecker *c, const TileItem *item) {
    const TileExpr *last = item->body->value;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NO_RESULT, item->name_span, item->name);
    if (last && last->kind != TILE_EXPR_IF)
        tile_diagnostic_edit(c->diagnostics, d, last->span, "return %s", tile_span_text(c, last->span));
    tile_report(c, d);
    return tile_error_meaning();
}

static TileMeaning fail_open_end(TileChecker *c, const TileItem *item) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NO_RESULT, item->name_span, item->name);
    TileSpan end = {item->span.file, item->span.end ? item->span.end - 1 : 0, item->span.end};
    tile_diagnostic_note(c->diagnostics, d, end, "this end can be reached without a `return`");
    tile_report(c, d);
    return tile_error_meaning();
}

/* A function that declares no result type returns a value: proposes to add the type after the parameters. */
static TileMeaning fail_undeclared(TileChecker *c, const TileCall *call, const TileMeaning *m, TileSpan span) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_RESULT_TYPE, span, call->item->name, "nothing",
                                      tile_meaning_words(c, m));
    TileSpan behind = {call->item->signature.file, call->item->signature.end, call->item->signature.end};
    if (m->kind == TILE_MEANING_VALUE && (m->rank == 0 || call->lifted))
        tile_diagnostic_edit(c->diagnostics, d, behind, " -> %s", tile_scalar_name((TileScalar)m->scalar));
    tile_report(c, d);
    return tile_error_meaning();
}

static TileMeaning check_result(TileChecker *c, const TileCall *call, TileMeaning m) {
    const TileTypeExpr *type = call->item->type;
    TileSpan span = call->item->name_span;
    const TileSequence *body = call->item->body;
    const TileExpr *expr = returned(body);
    if (expr)
        span = expr->span;
    else if (body->statements.count)
        span = body->statements.items[body->statements.count - 1]->span;
    if (tile_is_error(&m)) return m;
    if (!type && m.kind != TILE_MEANING_NOTHING) return fail_undeclared(c, call, &m, span);
    if (!type) return m;
    if (m.kind == TILE_MEANING_NOTHING) return fail_no_result(c, call->item);
    if (!tile_sequence_ends(body)) return fail_open_end(c, call->item);
    if (type->kind != TILE_TYPE_EXPR_TUPLE) return check_scalar_result(c, call, m, type, span, expr);
    if (m.kind != TILE_MEANING_TUPLE || m.count != type->items.count)
        return tile_fail(c, RESULT_TYPE, span, call->item->name, tile_span_text(c, type->span),
                         tile_meaning_words(c, &m));
    for (uint32_t i = 0; i < m.count; i++) {
        bool written = expr && expr->kind == TILE_EXPR_TUPLE && expr->items.count == m.count;
        TileSpan place = written ? expr->items.items[i]->span : span;
        m.items[i] = check_scalar_result(c, call, m.items[i], type->items.items[i], place, written);
        if (tile_is_error(&m.items[i])) return m.items[i];
    }
    return m;
}

/* Is there a `return` that is not the last statement? Then flags guard the following statements. */
static bool needs_flags(const TileItem *item) {
    size_t count = item->body->statements.count;
    for (size_t i = 0; i < count; i++) {
        const TileStatement *statement = item->body->statements.items[i];
        if (i + 1 == count && statement->kind == TILE_STATEMENT_RETURN) return false;
        if (tile_statement_returns(statement)) return true;
    }
    return item->body->value && tile_expr_returns(item->body->value);
}

/* The result before a `return` is reached: zero, if the type is declared. */
static TileMeaning empty_result(TileChecker *c, const TileFrame *frame, const TileTypeExpr *type) {
    TileScalar scalar;
    if (!type || type->kind != TILE_TYPE_EXPR_NAME || !tile_find_type(c, type->name, &scalar)) return tile_nothing();
    TileMeaning zero = tile_bits_meaning(scalar, 0);
    if (frame->lifted) return type->has_extents ? tile_nothing() : tile_lift(c, zero);
    if (scalar == TILE_I64 && !type->extents.count) return tile_sum_meaning(tile_sum_integer(&c->sums, 0));
    const TileSum *extent[TILE_MAX_TILE_RANK];
    if (type->extents.count > TILE_MAX_TILE_RANK) return tile_nothing();
    for (size_t i = 0; i < type->extents.count; i++)
        if (!(extent[i] = tile_check_extent(c, type->extents.items[i]))) return tile_error_meaning();
    return tile_stretch(c, zero, (unsigned)type->extents.count, extent);
}

static void declare_results(TileChecker *c, TileFrame *frame) {
    const TileTypeExpr *type = frame->result_type;
    frame->returned = tile_scope_flag(c, NULL, tile_bool_meaning(false));
    frame->result_count = type && type->kind == TILE_TYPE_EXPR_TUPLE ? (unsigned)type->items.count : 1;
    frame->results = TILE_NEW_ARRAY(c->arena, TileVar *, frame->result_count);
    for (unsigned i = 0; i < frame->result_count; i++)
        frame->results[i] = tile_scope_flag(c, NULL, empty_result(c, frame, tile_result_type(type, i)));
}

static TileMeaning result_of(TileChecker *c, const TileFrame *frame) {
    if (!frame->has_flags) return frame->has_value ? frame->value : tile_nothing();
    if (frame->result_count == 1) return frame->results[0]->now;
    TileMeaning tuple = {.kind = TILE_MEANING_TUPLE, .count = frame->result_count};
    tuple.items = TILE_NEW_ARRAY(c->arena, TileMeaning, tuple.count);
    for (unsigned i = 0; i < tuple.count; i++) {
        tuple.items[i] = frame->results[i]->now;
        if (tile_is_error(&tuple.items[i])) return tuple.items[i];
    }
    return tuple;
}

/* The common shape of the arguments that are tiles. */
static bool common_shape(TileChecker *c, const TileCall *call, TileMeaning *shape) {
    for (unsigned i = 0; i < call->count; i++) {
        const TileMeaning *m = &call->arguments[i];
        if (m->kind != TILE_MEANING_VALUE || m->rank == 0 || call->item->params.items[i].type->has_extents) continue;
        if (shape->rank == 0) *shape = *m;
        bool agree = shape->rank == m->rank;
        for (unsigned k = 0; agree && k < m->rank; k++) {
            agree = tile_extents_agree(shape->extent[k], m->extent[k]);
            if (tile_sum_is_literal(shape->extent[k], 1)) shape->extent[k] = m->extent[k];
        }
        if (!agree && shape->rank == m->rank) tile_about_shapes(c, shape, m);
        if (!agree)
            return tile_fail(c, SHAPE_MISMATCH, tile_argument_span(call, i), tile_meaning_words(c, shape),
                             tile_meaning_words(c, m)),
                   false;
    }
    return true;
}

static TileMeaning run_body(TileChecker *c, const TileCall *call, TileFrame *frame) {
    size_t start = c->scope_start;
    c->scope_start = c->bounds.count;
    frame->lifted = call->lifted;
    if (call->lifted && !common_shape(c, call, &frame->shape)) return tile_error_meaning();
    frame->has_flags = needs_flags(call->item);
    if (frame->has_flags) declare_results(c, frame);
    tile_check_sequence(c, call->item->body);
    c->scope_start = start;
    return check_result(c, call, result_of(c, frame));
}

static TileMeaning wrong_count(TileChecker *c, const TileCall *call) {
    unsigned wanted = (unsigned)call->item->params.count;
    TileDiagnostic *d = tile_report_count(c, call->span, call->item->name, wanted, wanted, call->count);
    tile_diagnostic_note(c->diagnostics, d, call->item->name_span, "`%s` is declared here", call->item->name);
    return tile_error_meaning();
}

TileMeaning tile_call_function(TileChecker *c, const TileMeaning *function, TileMeaning *arguments,
                               const TileExpr *const *exprs, unsigned count, TileSpan span) {
    TileCall call = {.item = function->item,
                     .ast = function->ast,
                     .arguments = arguments,
                     .exprs = exprs,
                     .count = count,
                     .given = function->count,
                     .span = span};
    for (unsigned i = 0; i < count; i++)
        if (tile_is_error(&arguments[i])) return arguments[i];
    if (call.item->kind != TILE_ITEM_FN) return tile_fail(c, NOT_FUNCTION, span, tile_meaning_words(c, function));
    if (count != call.item->params.count) return wrong_count(c, &call);
    for (TileFrame *f = c->frame; f; f = f->parent)
        if (f->item == call.item) return tile_fail(c, RECURSIVE, span, call.item->name);
    if (c->depth >= TILE_MAX_CALL_DEPTH) return tile_fail(c, TOO_DEEP, span, (unsigned)TILE_MAX_CALL_DEPTH);
    TileFrame frame = {.parent = c->frame,
                       .item = call.item,
                       .ast = call.ast,
                       .scope_base = c->bounds.count,
                       .call = span,
                       .result_type = call.item->type};
    size_t bounds = c->bounds.count, vars = c->vars.count;
    c->frame = &frame;
    c->depth++;
    frame.binding = true;
    bool ok = tile_bind_call(c, &call, function);
    frame.binding = false;
    tile_spend(c, CALL_COST);
    TileMeaning result = ok && !tile_is_spent(c) ? run_body(c, &call, &frame) : tile_error_meaning();
    c->depth--;
    c->frame = frame.parent;
    tile_scope_cut(c, bounds);
    c->vars.count = vars;
    return result;
}

/* ---- call expressions ---- */

static TileMeaning spread_meaning(TileChecker *c, const TileExpr *expr) {
    TileBound *bound = tile_scope_find(c, tile_spread_name(c, expr->name));
    return bound ? bound->meaning : tile_fail(c, SPREAD_PLACE, expr->span, expr->name);
}

static TileMeaning fail_named(TileChecker *c, const TileArgumentExpr *argument, const char *function) {
    TileSpan name = {argument->name_span.file, argument->name_span.begin, argument->value->span.begin};
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_ARGUMENT_NAME, argument->name_span, function, argument->name);
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "only built-in functions have named arguments");
    tile_diagnostic_edit(c->diagnostics, d, name, "%s", "");
    tile_report(c, d);
    return tile_error_meaning();
}

/* Functions that are given as arguments, behind all others, and that a function has generics for: `apply(x, half)`. */
static void propose_generics(TileChecker *c, const TileExpr *call, const TileItem *item) {
    size_t functions = 0, count = call->arguments.count, wanted = item->params.count;
    for (size_t i = 0; i < item->generics.count; i++) functions += item->generics.items[i].kind == TILE_GENERIC_FN;
    TileDiagnostic *d = tile_reported_last(c, TILE_DIAGNOSTIC_NUMBER_OF_ARGUMENTS, call->span);
    if (!d || !wanted || functions != item->generics.count || count != wanted + functions) return;
    TileSpan first = {call->span.file, call->arguments.items[0].value->span.begin,
                      call->arguments.items[wanted - 1].value->span.end};
    TileSpan given = {call->span.file, call->arguments.items[wanted].value->span.begin,
                      call->arguments.items[count - 1].value->span.end};
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "functions are given in brackets");
    tile_diagnostic_edit(c->diagnostics, d, call->span, "%s[%s](%s)", tile_span_text(c, call->a->span),
                         tile_span_text(c, given), tile_span_text(c, first));
}

/* A kernel is launched, by `run` in a test. */
static TileMeaning fail_kernel_called(TileChecker *c, const TileExpr *call, const TileMeaning *function) {
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_FUNCTION, call->a->span, tile_meaning_words(c, function));
    if (c->test) {
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`run kernel(parameter = value, ..)` launches it");
        tile_diagnostic_edit(c->diagnostics, d, call->a->span, "run %s", function->item->name);
    }
    tile_report(c, d);
    return tile_error_meaning();
}

TileMeaning tile_check_function_call(TileChecker *c, const TileExpr *call, const TileMeaning *function,
                                     const TileExpr *index) {
    TILE_LIST(TileMeaning) arguments = {0};
    TILE_LIST(const TileExpr *) exprs = {0};
    for (size_t i = 0; i < call->arguments.count; i++) {
        const TileArgumentExpr *argument = &call->arguments.items[i];
        if (argument->name && function->item->kind == TILE_ITEM_KERNEL) break;
        if (argument->name) return fail_named(c, argument, function->item->name);
        if (argument->value->kind != TILE_EXPR_SPREAD) {
            tile_list_push(c->arena, &arguments, tile_check_expr(c, argument->value));
            tile_list_push(c->arena, &exprs, argument->value);
            continue;
        }
        TileMeaning spread = spread_meaning(c, argument->value);
        if (tile_is_error(&spread)) return spread;
        for (uint32_t k = 0; k < spread.count; k++) {
            tile_list_push(c->arena, &arguments, spread.items[k]);
            tile_list_push(c->arena, &exprs, NULL);
        }
    }
    if (function->item->kind == TILE_ITEM_KERNEL) return fail_kernel_called(c, call, function);
    TileMeaning filled = index ? tile_check_filled(c, index, function) : *function;
    if (tile_is_error(&filled)) return filled;
    size_t errors = c->diagnostics->error_count;
    tile_emit_at(c, call->span);
    TileMeaning result =
        tile_call_function(c, &filled, arguments.items, exprs.items, (unsigned)arguments.count, call->span);
    if (!index && c->diagnostics->error_count != errors) propose_generics(c, call, function->item);
    return result;
}
