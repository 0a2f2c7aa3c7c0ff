/* A kernel as a function: parameters, dimensions, clauses, body. */
#include "base/limits.h"
#include "parser/check/bindings.h"
#include "parser/check/claim.h"
#include "parser/check/constant.h"
#include "parser/check/dimension.h"
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/item.h"
#include "parser/check/kernel.h"
#include "parser/check/literal.h"
#include "parser/check/names.h"
#include "parser/check/operand.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/sequence.h"
#include "parser/check/type.h"
#include "parser/check/values.h"

/* ---- parameters ---- */

static void bind_parameter(TileChecker *c, const TileParam *param, TileMeaning meaning) {
    TileBound *other = tile_scope_find(c, param->name);
    if (other) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NAME_TAKEN, param->span, param->name);
        tile_diagnostic_note(c->diagnostics, d, other->span, "`%s` is bound here", param->name);
        tile_report(c, d);
    }
    tile_scope_push(c, (TileBound){.name = param->name, .meaning = meaning, .span = param->span, .fixed = true});
}

static void add_tensor(TileChecker *c, TileBoundParams *kernel, const TileParam *param, TileScalar scalar,
                       TileFormat format) {
    static const TileAccess accesses[] = {
        [TILE_WORD_IN] = TILE_ACCESS_IN, [TILE_WORD_OUT] = TILE_ACCESS_OUT, [TILE_WORD_INOUT] = TILE_ACCESS_INOUT};
    const TileTypeExpr *type = param->type;
    if (type->extents.count > TILE_MAX_TENSOR_RANK) {
        tile_fail(c, RANK_LIMIT, type->span, (int)TILE_MAX_TENSOR_RANK);
        return;
    }
    TileTensor *tensor = TILE_NEW(c->arena, TileTensor);
    *tensor = (TileTensor){.name = param->name,
                           .scalar = scalar,
                           .format = format,
                           .access = accesses[type->access],
                           .rank = (unsigned)type->extents.count,
                           .span = param->span};
    tensor->value = tile_func_add_parameter(c->func, param->name,
                                            tile_type_tensor(c->context, format ? TILE_U8 : scalar, tensor->rank, tensor->access));
    tile_list_push(c->arena, &kernel->params, (TileBoundParam){param, tensor});
    bind_parameter(c, param, (TileMeaning){.kind = TILE_MEANING_TENSOR, .tensor = tensor});
}

/* A static scalar is compiled in; a launch requires that the argument has this value. */
static void require_value(TileChecker *c, const TileParam *param, TileValue *value, const TileMeaning *wanted) {
    tile_emit_at(c, param->span);
    TileValue *expected = tile_emit_value(c, wanted);
    TileValue *ok = tile_emit_binary(c, TILE_OP_EQ, value, expected);
    const char *text = tile_arena_format(c->arena, "%s as compiled in", param->name);
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_TEXT, .text = tile_intern_string(c->context->strings, text)};
    tile_build_op(tile_emitter(c), TILE_OP_REQUIRE, &ok, 1, &attribute, 1, NULL, 0);
}

static void add_scalar(TileChecker *c, TileBoundParams *kernel, const TileParam *param, TileScalar scalar) {
    bool is_static = tile_is_static(kernel->item, param->name);
    TileMeaning m;
    if (param->type->is_const) {
        m = tile_bound_constant(c, param->name, scalar, param->span);
        bind_parameter(c, param, m);
        return;
    }
    TileValue *value = tile_func_add_parameter(c->func, param->name, tile_type_scalar(c->context, scalar));
    tile_list_push(c->arena, &kernel->params, (TileBoundParam){param, NULL});
    m = tile_scalar_meaning(c, value, NULL);
    if (m.sum) m.sum->products[0].symbols[0]->name = param->name;
    if (is_static) {
        m = tile_bound_constant(c, param->name, scalar, param->span);
        if (!tile_is_error(&m)) require_value(c, param, value, &m);
    }
    bind_parameter(c, param, m);
}

static void add_parameter(TileChecker *c, TileBoundParams *kernel, const TileParam *param) {
    const TileTypeExpr *type = param->type;
    TileScalar scalar;
    TileFormat format;
    bool tensor = type->access != TILE_WORD_NONE && type->has_extents;
    if (type->kind != TILE_TYPE_EXPR_NAME) {
        tile_fail(c, PARAMETER_TYPE, type->span);
    } else if (!tile_find_element(c, type->name, &scalar, &format) || (format && !tensor)) {
        tile_fail_type(c, type->name_span, type->name);
        bind_parameter(c, param, tile_error_meaning());
    } else if (tile_fail_single(c, type, format)) {
        bind_parameter(c, param, tile_error_meaning());
    } else if (tensor) {
        add_tensor(c, kernel, param, scalar, format);
    } else if (type->access == TILE_WORD_NONE && !type->has_extents) {
        add_scalar(c, kernel, param, scalar);
    } else {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_PARAMETER_TYPE, type->span);
        if (type->has_extents)
            tile_diagnostic_edit(c->diagnostics, d, type->span, "in %s", tile_span_text(c, type->span));
        else
            tile_diagnostic_edit(c->diagnostics, d, type->span, "%s[]", tile_span_text(c, type->span));
        bind_parameter(c, param, tile_error_meaning());
    }
}

/* The parameters of the given function beyond those of the generic's type become parameters of the kernel. */
static void add_spread(TileChecker *c, TileBoundParams *kernel, const TileParam *param) {
    const TileGeneric *generic = NULL;
    for (size_t i = 0; i < kernel->item->generics.count; i++)
        if (kernel->item->generics.items[i].name == param->name) generic = &kernel->item->generics.items[i];
    if (!generic || generic->kind != TILE_GENERIC_FN || !generic->type->open) {
        tile_fail(c, SPREAD_PLACE, param->span, param->name);
        return;
    }
    TileMeaning function = tile_scope_meaning(c, param->name, param->span);
    TileMeaning spread = {.kind = TILE_MEANING_SPREAD};
    if (function.kind == TILE_MEANING_FUNCTION) {
        size_t named = generic->type->items.count, count = function.item->params.count;
        spread.count = (uint32_t)(count > named ? count - named : 0);
        spread.items = TILE_NEW_ARRAY(c->arena, TileMeaning, spread.count);
        for (uint32_t i = 0; i < spread.count; i++) {
            const TileParam *extra = &function.item->params.items[named + i];
            add_parameter(c, kernel, extra);
            spread.items[i] = tile_scope_meaning(c, extra->name, extra->span);
        }
    }
    tile_scope_push(
        c,
        (TileBound){.name = tile_spread_name(c, param->name), .meaning = spread, .span = param->span, .fixed = true});
}

/* ---- clauses ---- */

static void fail_clause_name(TileChecker *c, TileDiagnosticCode code, const TileNameRef *name) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, code, name->span, name->name);
    tile_propose_visible(c, d, name->name, name->span);
    tile_report(c, d);
}

static void check_statics(TileChecker *c, const TileItem *kernel) {
    for (size_t i = 0; i < kernel->statics.count; i++) {
        const TileNameRef *name = &kernel->statics.items[i];
        TileBound *bound = tile_scope_find(c, name->name);
        if (!bound || (!bound->meaning.sum && !bound->meaning.constant && !tile_is_error(&bound->meaning)))
            fail_clause_name(c, TILE_DIAGNOSTIC_STATIC_NAME, name);
    }
}

static void check_overlaps(TileChecker *c, const TileItem *kernel) {
    for (size_t i = 0; i < kernel->overlaps.count; i++) {
        const TileNameRef *name = &kernel->overlaps.items[i];
        TileBound *bound = tile_scope_find(c, name->name);
        if (!bound || (bound->meaning.kind != TILE_MEANING_TENSOR && !tile_is_error(&bound->meaning)))
            fail_clause_name(c, TILE_DIAGNOSTIC_OVERLAP_NAME, name);
    }
    c->overlaps = kernel->overlaps.count > 0;
    /* The launcher checks that arguments do not overlap, unless the kernel allows it. */
    for (uint32_t i = 0; i < c->func->body.argument_count; i++)
        c->func->parameters[i].noalias =
            c->func->body.arguments[i]->type->kind == TILE_TYPE_TENSOR && kernel->overlaps.count == 0;
}

/* What it tells where it holds; NULL: nothing. */
static const TileClaim *check_require(TileChecker *c, const TileRequire *require, const TileExpr *expr) {
    TileMeaning m = tile_check_condition(c, expr);
    if (tile_is_error(&m) || !tile_check_host_value(c, &m, expr->span)) return NULL;
    tile_make_constant(c, &m);
    const char *text = tile_span_text(c, expr->span);
    const char *known = m.constant ? "" : tile_known_values(c, expr);
    if (*known) text = tile_arena_format(c->arena, "%s where %s", text, known);
    if (require->text) text = tile_arena_format(c->arena, "%s: %s", text, require->text);
    if (m.constant) {
        if (!m.bits && !tile_is_chosen(c, expr)) c->unreal = true;
        if (m.bits || !tile_is_chosen(c, expr)) return NULL;
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_REQUIRE_FAILED, expr->span, text);
        tile_note_values(c, d, expr);
        tile_report(c, d);
        return NULL;
    }
    tile_emit_at(c, expr->span);
    TileValue *condition = tile_emit_value(c, &m);
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_TEXT, .text = tile_intern_string(c->context->strings, text)};
    tile_build_op(tile_emitter(c), TILE_OP_REQUIRE, &condition, 1, &attribute, 1, NULL, 0);
    tile_claim_assume(c, m.claim, true); /* no program runs where it is false */
    return m.claim;
}

/* What one requires may tell more where a later one holds: of `H == K * g` only where K * g is known not to be negative. So all but the
 * last are assumed again. */
static void check_requires(TileChecker *c, const TileItem *kernel) {
    TILE_LIST(const TileClaim *) claims = {0};
    for (size_t i = 0; i < kernel->requires.count; i++)
        for (size_t k = 0; k < kernel->requires.items[i].conditions.count; k++) {
            const TileClaim *claim = check_require(c, &kernel->requires.items[i], kernel->requires.items[i].conditions.items[k]);
            if (claim) tile_list_push(c->arena, &claims, claim);
        }
    for (size_t i = 0; i + 1 < claims.count; i++) tile_claim_assume(c, claims.items[i], true);
}

/* ---- the kernel ---- */

void tile_check_kernel(TileChecker *c, const TileItem *item) {
    TileBoundParams kernel = {.item = item};
    TileFrame frame = {.item = item, .ast = c->ast, .call = item->name_span};
    c->frame = &frame;
    c->where = item->name_span;
    c->func = tile_func_create(c->module, item->name, TILE_FUNC_KERNEL, TILE_FORM_TILE);
    c->builder = tile_builder_at_end(c->module, &c->func->body);
    c->func->location = tile_emitter(c)->location;
    bool ok = tile_check_all_used(c, item);
    ok = tile_bind_generics(c, item) && ok;
    if (!ok || !tile_bind_tunes(c, item)) return;
    for (size_t i = 0; i < item->params.count; i++) {
        const TileParam *param = &item->params.items[i];
        if (param->spread)
            add_spread(c, &kernel, param);
        else
            add_parameter(c, &kernel, param);
    }
    tile_bind_dimensions(c, &kernel);
    check_statics(c, item);
    check_overlaps(c, item);
    check_requires(c, item);
    c->scope_start = c->bounds.count;
    uint32_t before = c->diagnostics->error_count;
    tile_check_sequence(c, item->body);
    bool errors = c->diagnostics->error_count > before;
    if (!c->grid_count && !errors) tile_fail(c, NO_GRID, item->name_span, item->name);
    tile_build_end(tile_emitter(c), TILE_OP_RETURN, NULL, 0);
}
