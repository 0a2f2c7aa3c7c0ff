/* Calls: of functions, types and built-ins. A function is checked and emitted at each call, in a frame that has its
 * parameters, its generics and its file in scope. */
#include "parser/check/bindings.h"
#include "parser/check/builtin.h"
#include "parser/check/call.h"
#include "parser/check/candidates.h"
#include "parser/check/constant.h"
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/function.h"
#include "parser/check/literal.h"
#include "parser/check/names.h"
#include "parser/check/operand.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/stand_in.h"
#include "parser/check/statement.h"
#include "parser/check/test.h"
#include "parser/check/type.h"

#include <string.h>

enum { CALL_COST = 8 }; /* in ops: nested calls may be much work without emitting ops */

typedef struct Call {
    const TileItem *item;
    const TileAst *ast;
    TileMeaning *arguments;
    const TileExpr *const *exprs; /* NULL entries for spread arguments */
    unsigned count;
    uint32_t given; /* generics in brackets, given at the call */
    TileSpan span;
    bool lifted;
} Call;

static TileSpan argument_span(const Call *call, unsigned i) {
    return call->exprs && call->exprs[i] ? call->exprs[i]->span : call->span;
}

static const TileGeneric *find_generic(const TileItem *item, const char *name) {
    for (size_t i = 0; i < item->generics.count; i++)
        if (item->generics.items[i].name == name) return &item->generics.items[i];
    return NULL;
}

static void bind(TileChecker *c, const char *name, TileSpan span, TileMeaning meaning) {
    tile_scope_push(c, (TileBound){.name = name, .meaning = meaning, .span = span, .fixed = true});
}

/* ---- unification ---- */

static bool admits(const TileGeneric *generic, TileScalar scalar) {
    uint32_t types = 0;
    for (size_t i = 0; i < generic->classes.count; i++) tile_class_types(generic->classes.items[i].name, &types);
    return types >> scalar & 1u;
}

/* A class that does not exist is reported at its declaration, not at the call. */
static bool check_classes(TileChecker *c, const TileGeneric *generic) {
    uint32_t types = 0;
    for (size_t i = 0; i < generic->classes.count; i++) {
        const TileNameRef *class = &generic->classes.items[i];
        if (!tile_class_types(class->name, &types)) return tile_fail_type(c, class->span, class->name), false;
    }
    return true;
}

static bool bind_type(TileChecker *c, const Call *call, const TileGeneric *generic, TileScalar scalar, TileSpan span) {
    if (!check_classes(c, generic)) return false;
    if (!admits(generic, scalar)) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_CLASS_MISMATCH, span,
                                          tile_scalar_name(scalar), generic->name, call->item->name);
        tile_diagnostic_note(c->diagnostics, d, generic->span, "`%s` is declared here", generic->name);
        tile_report(c, d);
        return false;
    }
    bind(c, generic->name, generic->span, (TileMeaning){.kind = TILE_MEANING_TYPE, .scalar = (uint8_t)scalar});
    return true;
}

/* The element type of a parameter: binds a generic, or is compared with the bound type. */
static bool unify_scalar(TileChecker *c, const Call *call, const TileTypeExpr *type, TileScalar scalar, TileSpan span) {
    const TileGeneric *generic = find_generic(call->item, type->name);
    TileScalar wanted;
    if (generic && generic->kind == TILE_GENERIC_TYPE && !tile_scope_find(c, type->name))
        return bind_type(c, call, generic, scalar, span);
    if (!tile_find_type(c, type->name, &wanted)) return tile_fail_type(c, type->name_span, type->name), false;
    if (wanted == scalar) return true;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_TYPE_MISMATCH, span, tile_scalar_name(wanted),
                                      tile_scalar_name(scalar));
    tile_diagnostic_note(c->diagnostics, d, type->span, "the parameter of `%s` is declared here", call->item->name);
    if (!type->access && call->exprs)
        tile_diagnostic_edit(c->diagnostics, d, span, "%s(%s)", tile_scalar_name(wanted), tile_bare_text(c, span));
    tile_report(c, d);
    return false;
}

static void about_extents(TileChecker *c, const TileSum *a, const TileSum *b) {
    if ((tile_sum_open(a) | tile_sum_open(b)) & TILE_OPEN_NAME) c->about |= TILE_OPEN_NUMBER;
}

static bool unify_extent(TileChecker *c, const Call *call, const TileExpr *expr, const TileSum *extent, TileSpan span) {
    bool name = expr->kind == TILE_EXPR_NAME && !tile_scope_find(c, expr->name);
    if (name && !tile_is_constant(c, call->ast, expr->name)) {
        bind(c, expr->name, expr->span, tile_sum_meaning(extent));
        return true;
    }
    const TileSum *wanted = tile_check_integer(c, expr, "an extent");
    if (!wanted) return false;
    if (wanted == extent) return true;
    about_extents(c, wanted, extent);
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_EXTENT_MISMATCH, span, tile_sum_words(c, extent),
                                      tile_sum_words(c, wanted));
    tile_diagnostic_note(c->diagnostics, d, expr->span, "the extent of `%s` is declared here", call->item->name);
    tile_report(c, d);
    return false;
}

static bool unify_extents(TileChecker *c, const Call *call, const TileTypeExpr *type, const TileSum *const *extent,
                          unsigned rank, TileSpan span) {
    if (type->extents.count != rank)
        return tile_fail(c, ARGUMENT_RANK, span, (unsigned)type->extents.count, rank), false;
    for (unsigned i = 0; i < rank; i++)
        if (!unify_extent(c, call, type->extents.items[i], extent[i], span)) return false;
    return true;
}

static bool wrong_kind(TileChecker *c, const Call *call, const TileParam *param, const char *wanted,
                       const TileMeaning *m, TileSpan span) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_ARGUMENT_KIND, span, param->name, wanted,
                                      tile_meaning_words(c, m));
    tile_diagnostic_note(c->diagnostics, d, param->span, "`%s` of `%s` is declared here", param->name,
                         call->item->name);
    TileScalar scalar;
    bool of_values = param->type->kind == TILE_TYPE_EXPR_NAME && !param->type->access;
    bool indices = of_values && (!tile_find_type(c, param->type->name, &scalar) || scalar == TILE_I64);
    if (indices && m->kind == TILE_MEANING_RANGE)
        tile_diagnostic_edit(c->diagnostics, d, span, "%s.idx", tile_span_text(c, span));
    tile_report(c, d);
    return false;
}

bool tile_check_parameter(TileChecker *c, const TileParam *param) {
    const TileTypeExpr *type = param->type;
    bool constant = type && type->is_const;
    if (type && !constant && type->kind != TILE_TYPE_EXPR_FN && type->kind != TILE_TYPE_EXPR_TUPLE) return true;
    bool function = type && type->kind == TILE_TYPE_EXPR_FN;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_PARAMETER_KIND, param->span, param->name,
                                      constant   ? "a constant"
                                      : function ? "a function"
                                      : type     ? "a tuple"
                                                 : "a list of arguments");
    if (constant)
        tile_diagnostic_note(c->diagnostics, d, param->span, "a constant is a generic: `[%s: %s]`", param->name,
                             tile_span_text(c, type->span));
    if (function)
        tile_diagnostic_note(c->diagnostics, d, param->span, "a function is a generic: `[%s: fn(..) -> ..]`",
                             param->name);
    tile_report(c, d);
    return false;
}

static bool unify_tensor(TileChecker *c, Call *call, const TileParam *param, TileMeaning *m, TileSpan span) {
    if (m->kind != TILE_MEANING_TENSOR) return wrong_kind(c, call, param, "a tensor", m, span);
    TileTensor *tensor = m->tensor;
    bool reads = param->type->access != TILE_WORD_OUT, writes = param->type->access != TILE_WORD_IN;
    bool unreadable = reads && tensor->access == TILE_ACCESS_OUT;
    if (unreadable || (writes && tensor->access == TILE_ACCESS_IN)) {
        TileDiagnosticCode code = unreadable ? TILE_DIAGNOSTIC_WRITE_ONLY : TILE_DIAGNOSTIC_READ_ONLY;
        TileDiagnostic *d = tile_diagnose(c->diagnostics, code, span, tensor->name);
        tile_diagnostic_note(c->diagnostics, d, param->span, "`%s` of `%s` is declared here", param->name,
                             call->item->name);
        tile_propose_inout(c, d, tensor->span, unreadable ? "out" : "in");
        tile_report(c, d);
        return false;
    }
    return unify_scalar(c, call, param->type, tensor->scalar, span) &&
           unify_extents(c, call, param->type, tensor->dims, tensor->rank, span);
}

/* Matches a typed argument with its parameter; literals wait until the types are bound. */
static bool unify_argument(TileChecker *c, Call *call, unsigned i) {
    const TileParam *param = &call->item->params.items[i];
    const TileTypeExpr *type = param->type;
    TileMeaning *m = &call->arguments[i];
    TileSpan span = argument_span(call, i);
    if (!tile_check_parameter(c, param)) return false;
    if (type->access != TILE_WORD_NONE) return unify_tensor(c, call, param, m, span);
    if (type->kind == TILE_TYPE_EXPR_RANGE) {
        if (m->kind != TILE_MEANING_RANGE) return wrong_kind(c, call, param, "a range", m, span);
        return unify_extent(c, call, type->extents.items[0], m->range->size, span);
    }
    if (tile_is_literal(m)) return !type->has_extents || wrong_kind(c, call, param, "a tile", m, span);
    if (m->kind != TILE_MEANING_VALUE)
        return wrong_kind(c, call, param, type->has_extents ? "a tile" : "a value", m, span);
    if (!unify_scalar(c, call, type, (TileScalar)m->scalar, span)) return false;
    if (type->has_extents) return unify_extents(c, call, type, m->extent, m->rank, span);
    call->lifted = call->lifted || m->rank > 0;
    return true;
}

static bool settle_literal(TileChecker *c, Call *call, unsigned i) {
    const TileTypeExpr *type = call->item->params.items[i].type;
    TileMeaning *m = &call->arguments[i];
    if (!tile_is_literal(m)) return true;
    const TileGeneric *generic = find_generic(call->item, type->name);
    TileScalar scalar;
    if (generic && !tile_scope_find(c, type->name)) {
        TileScalar natural = tile_literal_is_integer(m) && admits(generic, TILE_I64) ? TILE_I64 : TILE_F32;
        if (!bind_type(c, call, generic, natural, argument_span(call, i))) return false;
    }
    if (!tile_find_type(c, type->name, &scalar)) return tile_fail_type(c, type->name_span, type->name), false;
    *m = tile_literal_as(c, m, scalar, argument_span(call, i));
    return !tile_is_error(m);
}

/* ---- generics ---- */

/* A constant of the declared type; without one, i64 or f32. */
static bool bind_constant(TileChecker *c, const TileGeneric *generic, TileMeaning m, TileSpan span) {
    TileScalar scalar;
    if (generic->type && !tile_find_type(c, generic->type->name, &scalar))
        return tile_fail_type(c, generic->type->name_span, generic->type->name), false;
    m = generic->type && tile_is_literal(&m) ? tile_literal_as(c, &m, scalar, span) : tile_as_value(c, m, span);
    if (tile_is_error(&m)) return false;
    if (m.kind != TILE_MEANING_VALUE) return tile_fail(c, NOT_VALUE, span, tile_meaning_words(c, &m)), false;
    if (generic->type && m.scalar != scalar) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_TYPE_MISMATCH, span, tile_scalar_name(scalar),
                                          tile_meaning_words(c, &m));
        tile_diagnostic_note(c->diagnostics, d, generic->span, "`%s` is declared here", generic->name);
        tile_report(c, d);
        return false;
    }
    if (!tile_make_constant(c, &m)) {
        const char *what = tile_arena_format(c->arena, "the constant `%s`", generic->name);
        tile_about_constant(c, &m);
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_CONSTANT, span, what);
        tile_diagnostic_note(c->diagnostics, d, generic->span, "`%s` is declared here", generic->name);
        if (m.sum) tile_propose_static(c, d, tile_sum_words(c, m.sum));
        tile_report(c, d);
        return false;
    }
    bind(c, generic->name, generic->span, m);
    return true;
}

/* Generics in brackets, with a check of their kinds. */
static bool bind_given(TileChecker *c, const Call *call, const TileMeaning *generics, uint32_t count) {
    bool ok = true;
    for (uint32_t i = 0; ok && i < count; i++) {
        const TileGeneric *generic = &call->item->generics.items[i];
        switch ((TileGenericKind)generic->kind) {
        case TILE_GENERIC_TYPE: ok = bind_type(c, call, generic, (TileScalar)generics[i].scalar, call->span); break;
        case TILE_GENERIC_CONST: ok = bind_constant(c, generic, generics[i], call->span); break;
        case TILE_GENERIC_FN: bind(c, generic->name, generic->span, generics[i]); break;
        }
    }
    return ok;
}

/* A function that is checked by itself has no call. */
static bool stands_alone(const TileChecker *c) { return c->stands_alone && !c->frame->parent->item->name; }

static bool bind_stand_in(TileChecker *c, const TileGeneric *generic) {
    uint32_t types = 0;
    if (!check_classes(c, generic)) return false;
    for (size_t i = 0; i < generic->classes.count; i++) tile_class_types(generic->classes.items[i].name, &types);
    TileScalar scalar = tile_stand_in_type(types, false);
    bind(c, generic->name, generic->span, (TileMeaning){.kind = TILE_MEANING_TYPE, .scalar = (uint8_t)scalar});
    return true;
}

static bool bind_defaults(TileChecker *c, const Call *call) {
    for (size_t i = 0; i < call->item->generics.count; i++) {
        const TileGeneric *generic = &call->item->generics.items[i];
        if (tile_scope_find(c, generic->name)) continue;
        if (generic->kind == TILE_GENERIC_TYPE && stands_alone(c)) {
            if (!bind_stand_in(c, generic)) return false;
            continue;
        }
        if (!generic->value) return tile_fail(c, CANNOT_INFER, call->span, generic->name, call->item->name), false;
        TileMeaning m = tile_check_expr(c, generic->value);
        if (tile_is_error(&m)) return false;
        if (generic->kind != TILE_GENERIC_CONST)
            bind(c, generic->name, generic->span, m);
        else if (!bind_constant(c, generic, m, generic->value->span))
            return false;
    }
    return true;
}

/* ---- results ---- */

static TileMeaning check_scalar_result(TileChecker *c, const Call *call, TileMeaning m, const TileTypeExpr *type,
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
        if (wanted != m.extent[i]) about_extents(c, wanted, m.extent[i]);
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

static bool sequence_returns(const TileSequence *sequence);

/* Both sides of an `if` return, so code after it is not reached. */
static bool expr_returns(const TileExpr *expr) {
    return expr && expr->kind == TILE_EXPR_IF && expr->otherwise && sequence_returns(expr->then) &&
           sequence_returns(expr->otherwise);
}

static bool sequence_returns(const TileSequence *sequence) {
    for (size_t i = 0; i < sequence->statements.count; i++) {
        const TileStatement *statement = sequence->statements.items[i];
        if (statement->kind == TILE_STATEMENT_RETURN) return true;
        if (statement->kind == TILE_STATEMENT_EXPR && expr_returns(statement->value)) return true;
    }
    return expr_returns(sequence->value);
}

static TileMeaning fail_open_end(TileChecker *c, const TileItem *item) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NO_RESULT, item->name_span, item->name);
    TileSpan end = {item->span.file, item->span.end ? item->span.end - 1 : 0, item->span.end};
    tile_diagnostic_note(c->diagnostics, d, end, "this end can be reached without a `return`");
    tile_report(c, d);
    return tile_error_meaning();
}

/* A function that declares no result type returns a value: proposes to add the type after the parameters. */
static TileMeaning fail_undeclared(TileChecker *c, const Call *call, const TileMeaning *m, TileSpan span) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_RESULT_TYPE, span, call->item->name, "nothing",
                                      tile_meaning_words(c, m));
    TileSpan behind = {call->item->signature.file, call->item->signature.end, call->item->signature.end};
    if (m->kind == TILE_MEANING_VALUE && (m->rank == 0 || call->lifted))
        tile_diagnostic_edit(c->diagnostics, d, behind, " -> %s", tile_scalar_name((TileScalar)m->scalar));
    tile_report(c, d);
    return tile_error_meaning();
}

static TileMeaning check_result(TileChecker *c, const Call *call, TileMeaning m) {
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
    if (m.kind == TILE_MEANING_NOTHING) return tile_fail(c, NO_RESULT, call->item->name_span, call->item->name);
    if (!sequence_returns(body)) return fail_open_end(c, call->item);
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
static bool common_shape(TileChecker *c, const Call *call, TileMeaning *shape) {
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
            return tile_fail(c, SHAPE_MISMATCH, argument_span(call, i), tile_meaning_words(c, shape),
                             tile_meaning_words(c, m)),
                   false;
    }
    return true;
}

TileMeaning tile_lift(TileChecker *c, TileMeaning m) {
    return tile_stretch(c, m, c->frame->shape.rank, c->frame->shape.extent);
}

const char *tile_spread_name(TileChecker *c, const char *name) {
    return tile_intern_string(c->names, tile_arena_format(c->arena, "...%s", name));
}

static TileMeaning run_body(TileChecker *c, const Call *call, TileFrame *frame) {
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

static TileMeaning wrong_count(TileChecker *c, const Call *call) {
    unsigned wanted = (unsigned)call->item->params.count;
    TileDiagnostic *d = tile_report_count(c, call->span, call->item->name, wanted, wanted, call->count);
    tile_diagnostic_note(c->diagnostics, d, call->item->name_span, "`%s` is declared here", call->item->name);
    return tile_error_meaning();
}

/* Called once the types in them are known. */
static bool check_function_types(TileChecker *c, const Call *call) {
    bool ok = true;
    for (size_t i = 0; i < call->item->generics.count; i++) {
        const TileGeneric *generic = &call->item->generics.items[i];
        if (generic->kind != TILE_GENERIC_FN) continue;
        bool given = i < call->given;
        const TileBound *bound = tile_scope_find(c, generic->name);
        ok = tile_check_function_type(c, generic, &bound->meaning, given ? call->span : generic->value->span) && ok;
    }
    return ok;
}

static bool bind_call(TileChecker *c, Call *call, const TileMeaning *function) {
    bool ok = bind_given(c, call, function->given, function->count);
    for (unsigned i = 0; ok && i < call->count; i++) ok = unify_argument(c, call, i);
    for (unsigned i = 0; ok && i < call->count; i++) ok = settle_literal(c, call, i);
    ok = ok && bind_defaults(c, call) && check_function_types(c, call);
    for (unsigned i = 0; ok && i < call->count; i++)
        bind(c, call->item->params.items[i].name, call->item->params.items[i].span, call->arguments[i]);
    return ok;
}

TileMeaning tile_call_function(TileChecker *c, const TileMeaning *function, TileMeaning *arguments,
                               const TileExpr *const *exprs, unsigned count, TileSpan span) {
    Call call = {.item = function->item,
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
    bool ok = bind_call(c, &call, function);
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

TileMeaning tile_check_function_call(TileChecker *c, const TileExpr *call, const TileMeaning *function,
                                     const TileExpr *index) {
    TILE_LIST(TileMeaning) arguments = {0};
    TILE_LIST(const TileExpr *) exprs = {0};
    for (size_t i = 0; i < call->arguments.count; i++) {
        const TileArgumentExpr *argument = &call->arguments.items[i];
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
    TileMeaning filled = index ? tile_check_filled(c, index, function) : *function;
    if (tile_is_error(&filled)) return filled;
    tile_emit_at(c, call->span);
    return tile_call_function(c, &filled, arguments.items, exprs.items, (unsigned)arguments.count, call->span);
}

/* A call by a name that several imports have, if nothing in an inner scope has it. */
static bool is_ambiguous_call(TileChecker *c, const TileExpr *callee) {
    const TileAst *where;
    if (callee->kind != TILE_EXPR_NAME || tile_scope_find(c, callee->name)) return false;
    return !tile_find_item(c->frame->ast, callee->name, false, &where) && tile_is_ambiguous(c, callee->name);
}

static TileMeaning check_conversion(TileChecker *c, const TileExpr *call, const TileMeaning *type) {
    if (!tile_check_arguments(c, call, 1, 1, NULL)) return tile_error_meaning();
    const TileExpr *expr = call->arguments.items[0].value;
    TileMeaning m = tile_check_value(c, expr);
    tile_emit_at(c, call->span);
    return tile_convert(c, m, (TileScalar)type->scalar, expr->span);
}

TileMeaning tile_check_call(TileChecker *c, const TileExpr *expr) {
    const TileExpr *callee = expr->a;
    bool approximate =
        callee->kind == TILE_EXPR_FIELD && callee->a->kind == TILE_EXPR_NAME && strcmp(callee->a->name, "approx") == 0;
    if (approximate && !tile_scope_find(c, callee->a->name)) return tile_check_approximate(c, expr);
    if (tile_is_maker(c, expr)) return tile_check_maker(c, expr);
    const TileExpr *index = callee->kind == TILE_EXPR_INDEX ? callee : NULL;
    const TileExpr *named = index ? index->a : callee;
    if (is_ambiguous_call(c, named)) {
        tile_fail_ambiguous(c, named->name, named->span, expr, index);
        return tile_error_meaning();
    }
    TileMeaning m = tile_check_expr(c, named);
    switch (m.kind) {
    case TILE_MEANING_ERROR: return m;
    case TILE_MEANING_BUILTIN: return m.builtin->check(c, expr, m.builtin);
    case TILE_MEANING_FUNCTION: return tile_check_function_call(c, expr, &m, index);
    case TILE_MEANING_TYPE:
        if (!index) return check_conversion(c, expr, &m);
        break;
    default: break;
    }
    return tile_fail(c, NOT_CALLABLE, callee->span, tile_meaning_words(c, &m));
}
