/* Parameters of a function: its arguments and generics are matched with what the call gives, and bound. */
#include "parser/check/bindings.h"
#include "parser/check/constant.h"
#include "parser/check/covered.h"
#include "parser/check/expression.h"
#include "parser/check/formats.h"
#include "parser/check/function.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/names.h"
#include "parser/check/operand.h"
#include "parser/check/parameter.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"

TileSpan tile_argument_span(const TileCall *call, unsigned i) {
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

static bool bind_type(TileChecker *c, const TileCall *call, const TileGeneric *generic, TileScalar scalar,
                      TileSpan span) {
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
static bool unify_scalar(TileChecker *c, const TileCall *call, const TileTypeExpr *type, TileScalar scalar,
                         TileSpan span) {
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

static bool unify_extent(TileChecker *c, const TileCall *call, const TileExpr *expr, const TileSum *extent,
                         TileSpan span) {
    bool name = expr->kind == TILE_EXPR_NAME && !tile_scope_find(c, expr->name);
    if (name && !tile_is_constant(c, call->ast, expr->name)) {
        bind(c, expr->name, expr->span, tile_sum_meaning(extent));
        return true;
    }
    const TileSum *wanted = tile_check_integer(c, expr, "an extent");
    if (!wanted) return false;
    if (wanted == extent) return true;
    tile_about_extents(c, wanted, extent);
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_EXTENT_MISMATCH, span, tile_sum_words(c, extent),
                                      tile_sum_words(c, wanted));
    tile_diagnostic_note(c->diagnostics, d, expr->span, "the extent of `%s` is declared here", call->item->name);
    tile_report(c, d);
    return false;
}

static bool unify_extents(TileChecker *c, const TileCall *call, const TileTypeExpr *type, const TileSum *const *extent,
                          unsigned rank, TileSpan span) {
    if (type->extents.count != rank)
        return tile_fail(c, ARGUMENT_RANK, span, (unsigned)type->extents.count, rank), false;
    for (unsigned i = 0; i < rank; i++)
        if (!unify_extent(c, call, type->extents.items[i], extent[i], span)) return false;
    return true;
}

static bool wrong_kind(TileChecker *c, const TileCall *call, const TileParam *param, const char *wanted,
                       const TileMeaning *m, TileSpan span) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_ARGUMENT_KIND, span, param->name, wanted,
                                      tile_meaning_words(c, m));
    tile_diagnostic_note(c->diagnostics, d, param->span, "`%s` of `%s` is declared here", param->name,
                         call->item->name);
    TileScalar scalar;
    bool of_values = param->type->kind == TILE_TYPE_EXPR_NAME && !param->type->access;
    bool indices = of_values && (!tile_find_type(c, param->type->name, &scalar) || scalar == TILE_I64);
    TileSpan type = {param->type->span.file, param->type->span.begin, param->type->name_span.end};
    if (of_values && param->type->has_extents && m->kind == TILE_MEANING_TENSOR && type.file == span.file)
        tile_diagnostic_edit(c->diagnostics, d, type, "in %s", param->type->name);
    const TileExpr *argument = NULL;
    for (size_t i = 0; call->exprs && i < call->item->params.count && !argument; i++)
        if (&call->item->params.items[i] == param) argument = call->exprs[i];
    if (indices && argument && m->kind == TILE_MEANING_RANGE)
        tile_diagnostic_edit(c->diagnostics, d, argument->span, "%s.idx", tile_operand_text(c, argument));
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

/* A format of elements is no type that a generic could be. */
static bool unify_format(TileChecker *c, const TileCall *call, const TileTypeExpr *type, const TileTensor *tensor,
                         TileSpan span) {
    TileFormat wanted = tile_scope_find(c, type->name) ? TILE_FORMAT_PLAIN : tile_format_find(type->name);
    if (wanted == tensor->format) return true;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_TYPE_MISMATCH, span, type->name,
                                      tile_tensor_type_name(tensor));
    tile_diagnostic_note(c->diagnostics, d, type->span, "the parameter of `%s` is declared here", call->item->name);
    tile_report(c, d);
    return false;
}

static bool unify_tensor(TileChecker *c, TileCall *call, const TileParam *param, TileMeaning *m, TileSpan span) {
    if (m->kind != TILE_MEANING_TENSOR) return wrong_kind(c, call, param, "a tensor", m, span);
    TileTensor *tensor = m->tensor;
    bool reads = param->type->access != TILE_WORD_OUT, writes = param->type->access != TILE_WORD_IN;
    bool unreadable = reads && tensor->access == TILE_ACCESS_OUT && !tile_cover_is_whole(c, tensor);
    if (unreadable || (writes && tensor->access == TILE_ACCESS_IN)) {
        TileDiagnosticCode code = unreadable ? TILE_DIAGNOSTIC_WRITE_ONLY : TILE_DIAGNOSTIC_READ_ONLY;
        TileDiagnostic *d = tile_diagnose(c->diagnostics, code, span, tensor->name);
        tile_diagnostic_note(c->diagnostics, d, param->span, "`%s` of `%s` is declared here", param->name,
                             call->item->name);
        tile_propose_inout(c, d, tensor->span, unreadable ? "out" : "in");
        tile_report(c, d);
        return false;
    }
    if (!unify_format(c, call, param->type, tensor, span)) return false;
    return (tensor->format || unify_scalar(c, call, param->type, tensor->scalar, span)) &&
           unify_extents(c, call, param->type, tensor->dims + tensor->own, tensor->rank - tensor->own, span);
}

/* Matches a typed argument with its parameter; literals wait until the types are bound. */
static bool unify_argument(TileChecker *c, TileCall *call, unsigned i) {
    const TileParam *param = &call->item->params.items[i];
    const TileTypeExpr *type = param->type;
    TileMeaning *m = &call->arguments[i];
    TileSpan span = tile_argument_span(call, i);
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

static bool settle_literal(TileChecker *c, TileCall *call, unsigned i) {
    const TileTypeExpr *type = call->item->params.items[i].type;
    TileMeaning *m = &call->arguments[i];
    if (!tile_is_literal(m)) return true;
    const TileGeneric *generic = find_generic(call->item, type->name);
    TileScalar scalar;
    if (generic && !tile_scope_find(c, type->name)) {
        TileScalar natural = tile_literal_is_integer(m) && admits(generic, TILE_I64) ? TILE_I64 : TILE_F32;
        if (!bind_type(c, call, generic, natural, tile_argument_span(call, i))) return false;
    }
    if (!tile_find_type(c, type->name, &scalar)) return tile_fail_type(c, type->name_span, type->name), false;
    *m = tile_literal_as(c, m, scalar, tile_argument_span(call, i));
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
static bool bind_given(TileChecker *c, const TileCall *call, const TileMeaning *generics, uint32_t count) {
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

static bool bind_defaults(TileChecker *c, const TileCall *call) {
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

/* Called once the types in them are known. */
static bool check_function_types(TileChecker *c, const TileCall *call) {
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

bool tile_bind_call(TileChecker *c, TileCall *call, const TileMeaning *function) {
    bool ok = bind_given(c, call, function->given, function->count);
    for (unsigned i = 0; ok && i < call->count; i++) ok = unify_argument(c, call, i);
    for (unsigned i = 0; ok && i < call->count; i++) ok = settle_literal(c, call, i);
    ok = ok && bind_defaults(c, call) && check_function_types(c, call);
    for (unsigned i = 0; ok && i < call->count; i++)
        bind(c, call->item->params.items[i].name, call->item->params.items[i].span, call->arguments[i]);
    return ok;
}
