/* Built-in functions: their table, and elementwise and shape functions. Reductions: reduce.c. */
#include "parser/check/builtin.h"
#include "parser/check/candidates.h"
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/fold.h"
#include "parser/check/join.h"
#include "parser/check/literal.h"
#include "parser/check/operand.h"
#include "parser/check/print.h"
#include "parser/check/propose.h"
#include "parser/check/range.h"
#include "parser/check/reduce.h"
#include "parser/check/report.h"
#include "parser/check/scatter.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"

#include <string.h>

enum { TAKES_FLOAT, TAKES_NUMBER, TAKES_INTEGER, TAKES_WHAT_OP_DOES };

/* ---- arguments ---- */

const TileExpr *tile_named_argument(const TileExpr *call, const char *name) {
    for (size_t i = 0; i < call->arguments.count; i++)
        if (call->arguments.items[i].name && strcmp(call->arguments.items[i].name, name) == 0)
            return call->arguments.items[i].value;
    return NULL;
}

static bool name_allowed(const char *name, const char *const *names) {
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0) return true;
    return false;
}

static const char *callee_name(const TileExpr *call) {
    const TileExpr *callee = call->a;
    if (callee->kind == TILE_EXPR_INDEX) callee = callee->a;
    return callee->kind == TILE_EXPR_NAME || callee->kind == TILE_EXPR_FIELD ? callee->name : "the function";
}

/* `sum(v, 1)`: proposes `sum(v, axis = 1)`. */
static void propose_axis_name(TileChecker *c, TileDiagnostic *d, const TileExpr *call, unsigned place) {
    const TileArgumentExpr *argument = place < call->arguments.count ? &call->arguments.items[place] : NULL;
    bool axes = argument && !argument->name && !tile_named_argument(call, "axis") &&
                (argument->value->kind == TILE_EXPR_INTEGER || argument->value->kind == TILE_EXPR_TUPLE);
    if (!axes) return;
    tile_diagnostic_edit(c->diagnostics, d, argument->value->span, "axis = %s",
                         tile_span_text(c, argument->value->span));
}

bool tile_check_arguments(TileChecker *c, const TileExpr *call, unsigned least, unsigned most,
                          const char *const *names) {
    unsigned count = 0;
    for (size_t i = 0; i < call->arguments.count; i++) {
        const TileArgumentExpr *argument = &call->arguments.items[i];
        if (argument->name && !name_allowed(argument->name, names)) {
            TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_ARGUMENT_NAME, argument->name_span,
                                              callee_name(call), argument->name);
            TileNearest nearest = tile_nearest(argument->name);
            tile_nearest_form(c, &nearest, callee_name(call));
            tile_propose_nearest(c, d, argument->name_span, &nearest);
            tile_note_forms(c, tile_report(c, d), call, callee_name(call));
            return false;
        }
        for (size_t k = 0; argument->name && k < i; k++)
            if (call->arguments.items[k].name && strcmp(call->arguments.items[k].name, argument->name) == 0)
                return tile_fail(c, GIVEN_TWICE, argument->name_span, argument->name, callee_name(call)), false;
        count += !argument->name;
    }
    if (count >= least && count <= most) return true;
    TileDiagnostic *d = tile_report_count(c, call->span, callee_name(call), least, most, count);
    if (count == most + 1 && name_allowed("axis", names)) propose_axis_name(c, d, call, most);
    tile_note_forms(c, d, call, callee_name(call));
    return false;
}

/* All positional arguments as values of a common element type and shape. */
static bool check_operands(TileChecker *c, const TileExpr *call, unsigned count, TileMeaning *operands) {
    const TileExpr *exprs[3];
    if (!tile_check_arguments(c, call, count, count, NULL)) return false;
    for (unsigned i = 0; i < count; i++) {
        exprs[i] = call->arguments.items[i].value;
        operands[i] = tile_check_value(c, exprs[i]);
    }
    tile_emit_at(c, call->span);
    return tile_unify_scalars(c, operands, exprs, count, call->span);
}

/* ---- elementwise ---- */

static unsigned types_of(const TileBuiltin *builtin) {
    if (builtin->types != TAKES_WHAT_OP_DOES) return builtin->types;
    unsigned traits = tile_op_info(builtin->op)->traits;
    return traits & TILE_TRAIT_FLOAT_ONLY ? TAKES_FLOAT : traits & TILE_TRAIT_INT_ONLY ? TAKES_INTEGER : TAKES_NUMBER;
}

static bool takes(unsigned types, TileScalar scalar) {
    if (types == TAKES_FLOAT) return tile_scalar_is_float(scalar);
    if (types == TAKES_INTEGER) return tile_scalar_is_int(scalar);
    return scalar != TILE_BOOL;
}

static TileMeaning apply_sums(TileChecker *c, TileOpId op, const TileMeaning *operands) {
    const TileSum *sum = op == TILE_OP_MIN ? tile_sum_min(&c->sums, operands[0].sum, operands[1].sum)
                                           : tile_sum_max(&c->sums, operands[0].sum, operands[1].sum);
    TileMeaning result = tile_sum_meaning(sum);
    result.valid = tile_valid_union(c, operands[0].valid, operands[1].valid);
    return result;
}

static TileMeaning check_elementwise_as(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin,
                                        bool approximate) {
    TileMeaning operands[3];
    unsigned count = builtin->arity;
    if (!check_operands(c, call, count, operands)) return tile_error_meaning();
    unsigned types = types_of(builtin);
    if (!takes(types, (TileScalar)operands[0].scalar)) {
        const char *wanted = types == TAKES_FLOAT ? "floats" : types == TAKES_INTEGER ? "integers" : "numbers";
        TileSpan span = call->arguments.items[0].value->span;
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BAD_ARGUMENT, span, builtin->name, wanted,
                                          tile_meaning_words(c, &operands[0]));
        if (types == TAKES_FLOAT && count == 1 && !c->frame->item->generics.count)
            tile_diagnostic_edit(c->diagnostics, d, span, "f32(%s)", tile_bare_text(c, span));
        tile_report(c, d);
        return tile_error_meaning();
    }
    for (unsigned i = 0; i < count; i++)
        if (!tile_check_computes(c, &operands[i], call->arguments.items[i].value)) return tile_error_meaning();
    bool sums = count == 2 && operands[0].sum && operands[1].sum;
    if (sums && (builtin->op == TILE_OP_MIN || builtin->op == TILE_OP_MAX)) return apply_sums(c, builtin->op, operands);
    if (!tile_unify_shapes(c, operands, count, call->span)) return tile_error_meaning();
    TileValue *values[3];
    const TileValidity *valid = NULL;
    for (unsigned i = 0; i < count; i++) {
        values[i] = tile_emit_value(c, &operands[i]);
        valid = tile_valid_union(c, valid, operands[i].valid);
    }
    TileAttribute approx = {.key = TILE_ATTRIBUTE_APPROX, .integer = 1};
    tile_emit_at(c, call->span);
    TileOp *op = tile_build_op(tile_emitter(c), builtin->op, values, count, &approx, approximate, NULL, 1);
    return tile_value_meaning(c, tile_op_result(op, 0), operands[0].extent, valid);
}

static TileMeaning check_elementwise(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    return check_elementwise_as(c, call, builtin, false);
}

static bool has_axis(const TileExpr *call) { return call->arguments.count == 1 || tile_named_argument(call, "axis"); }

/* min and max are elementwise with two arguments, reductions with one. */
static TileMeaning check_extremum(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    if (has_axis(call)) return tile_check_reduction(c, call, builtin);
    return check_elementwise(c, call, builtin);
}

static TileMeaning check_clamp(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning v[3];
    if (!check_operands(c, call, 3, v)) return tile_error_meaning();
    if (v[0].scalar == TILE_BOOL) return tile_fail(c, BAD_ARGUMENT, call->span, builtin->name, "numbers", "bool");
    if (!tile_check_computes(c, &v[0], call->arguments.items[0].value)) return tile_error_meaning();
    const TileValidity *valid = tile_valid_union(c, tile_valid_union(c, v[0].valid, v[1].valid), v[2].valid);
    if (v[0].sum && v[1].sum && v[2].sum) {
        TileMeaning result = tile_sum_meaning(tile_sum_clamp(&c->sums, v[0].sum, v[1].sum, v[2].sum));
        result.valid = valid;
        return result;
    }
    if (!tile_unify_shapes(c, v, 3, call->span)) return tile_error_meaning();
    TileValue *x = tile_emit_value(c, &v[0]), *low = tile_emit_value(c, &v[1]), *high = tile_emit_value(c, &v[2]);
    x = tile_emit_binary(c, TILE_OP_MAX, x, low);
    valid = tile_valid_union(c, tile_valid_union(c, v[0].valid, v[1].valid), v[2].valid);
    return tile_value_meaning(c, tile_emit_binary(c, TILE_OP_MIN, x, high), v[0].extent, valid);
}

static TileMeaning check_cdiv(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning v[2];
    if (!check_operands(c, call, 2, v)) return tile_error_meaning();
    if (!tile_scalar_is_int((TileScalar)v[0].scalar))
        return tile_fail(c, BAD_ARGUMENT, call->span, builtin->name, "integers", tile_meaning_words(c, &v[0]));
    TileExpr expr = *call;
    expr.b = NULL;
    TileMeaning one = tile_integer_meaning(1);
    TileMeaning sum = tile_apply_binary(c, TILE_TOKEN_PLUS, v[0], v[1], &expr);
    sum = tile_apply_binary(c, TILE_TOKEN_MINUS, sum, one, &expr);
    return tile_apply_binary(c, TILE_TOKEN_SLASH, sum, v[1], &expr);
}

/* Seed and index may be integers of any type, which are widened to i64. */
static TileMeaning check_rand(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning v[2];
    if (!tile_check_arguments(c, call, 2, 2, NULL)) return tile_error_meaning();
    for (unsigned i = 0; i < 2; i++) {
        const TileExpr *expr = call->arguments.items[i].value;
        v[i] = tile_as_value(c, tile_check_value(c, expr), expr->span);
        if (tile_is_error(&v[i])) return v[i];
        if (!tile_scalar_is_int((TileScalar)v[i].scalar))
            return tile_fail(c, BAD_ARGUMENT, expr->span, builtin->name, "integers", tile_meaning_words(c, &v[i]));
        v[i] = tile_convert(c, v[i], TILE_I64, expr->span);
    }
    tile_emit_at(c, call->span);
    if (!tile_unify_shapes(c, v, 2, call->span)) return tile_error_meaning();
    TileValue *seed = tile_emit_value(c, &v[0]), *index = tile_emit_value(c, &v[1]);
    const TileValidity *valid = tile_valid_union(c, v[0].valid, v[1].valid);
    tile_emit_at(c, call->span);
    return tile_value_meaning(c, tile_emit_binary(c, builtin->op, seed, index), v[1].extent, valid);
}

static TileMeaning check_where(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning v[3];
    const TileExpr *exprs[2];
    if (!tile_check_arguments(c, call, 3, 3, NULL)) return tile_error_meaning();
    v[0] = tile_check_expr(c, call->arguments.items[0].value);
    for (unsigned i = 1; i < 3; i++) v[i] = tile_check_value(c, call->arguments.items[i].value);
    exprs[0] = call->arguments.items[1].value;
    exprs[1] = call->arguments.items[2].value;
    for (unsigned i = 0; i < 3; i++)
        if (tile_is_error(&v[i])) return v[i];
    if (v[0].kind != TILE_MEANING_VALUE || v[0].scalar != TILE_BOOL)
        return tile_fail_not_bool(c, call->arguments.items[0].value, &v[0]);
    bool known = v[0].constant && v[0].rank == 0 && !v[0].valid;
    if (tile_is_literal(&v[1]) && tile_is_literal(&v[2]))
        return known ? v[0].bits ? v[1] : v[2] : tile_choice_meaning(c, v[0], v[1], v[2]);
    if (!tile_unify_scalars(c, v + 1, exprs, 2, call->span)) return tile_error_meaning();
    tile_emit_at(c, call->span);
    if (!tile_unify_shapes(c, v + 1, 2, call->span)) return tile_error_meaning();
    if (!known) return tile_select_meaning(c, v, call->span);
    /* Validity does not depend on the value of a constant condition. */
    TileMeaning chosen = v[0].bits ? v[1] : v[2];
    chosen.valid = tile_valid_union(c, chosen.valid, v[0].bits ? v[2].valid : v[1].valid);
    return chosen;
}

static TileMeaning check_keep(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    if (!tile_check_arguments(c, call, 2, 2, NULL)) return tile_error_meaning();
    TileMeaning v[2] = {tile_check_value(c, call->arguments.items[0].value),
                        tile_check_value(c, call->arguments.items[1].value)};
    if (tile_is_error(&v[0]) || tile_is_error(&v[1])) return tile_error_meaning();
    v[0] = tile_as_value(c, v[0], call->span);
    const TileExpr *condition = call->arguments.items[1].value;
    if (v[1].kind != TILE_MEANING_VALUE || v[1].scalar != TILE_BOOL) return tile_fail_not_bool(c, condition, &v[1]);
    if (v[1].rank == 0)
        return tile_fail(c, BAD_RANK, condition->span, "keep", "at least 1", tile_meaning_words(c, &v[1]));
    tile_emit_at(c, call->span);
    TileMeaning condition_of = v[1];
    if (!tile_unify_shapes(c, v, 2, call->span)) return tile_error_meaning();
    /* The excluded elements do not vary along axes that the condition is broadcast along. */
    int8_t axes[] = {0, 1, 2, 3, 4};
    for (int i = 0; i < condition_of.rank; i++)
        if (condition_of.extent[i] != v[1].extent[i]) axes[i] = -1;
    const TileValidity *valid = tile_valid_union(c, v[0].valid, v[1].valid);
    v[1] = condition_of;
    TileValue *no = tile_build_bool(tile_emitter(c), false), *mask = tile_emit_filled(c, &v[1], v[1].valid, no);
    TileAtom *atom = tile_atom_mask(c, mask, mask, NULL, NULL, call->span, "what `keep` leaves out");
    return tile_value_meaning(c, tile_emit_value(c, &v[0]), v[0].extent,
                              tile_valid_add(c, valid, atom, axes, call->span));
}

/* approx.exp(x): the hardware's approximation may be used. */
TileMeaning tile_check_approximate(TileChecker *c, const TileExpr *call) {
    const TileBuiltin *builtin = tile_find_builtin(call->a->name);
    bool ok = builtin && builtin->check == check_elementwise && tile_op_allows(builtin->op, TILE_ATTRIBUTE_APPROX);
    if (!ok) return tile_fail(c, NO_FIELD, call->a->op_span, "approx", call->a->name);
    return check_elementwise_as(c, call, builtin, true);
}

/* ---- creation of tiles ---- */

static bool generic_extents(TileChecker *c, const TileExpr *call, TileMeaning *shape) {
    const TileExpr *index = call->a;
    if (index->kind != TILE_EXPR_INDEX || !index->items.count || index->items.count > TILE_MAX_TILE_RANK) {
        tile_fail(c, EXTENTS_MISSING, call->span, callee_name(call), (int)TILE_MAX_TILE_RANK);
        return false;
    }
    shape->kind = TILE_MEANING_VALUE;
    shape->rank = (uint8_t)index->items.count;
    for (size_t i = 0; i < index->items.count; i++) {
        shape->extent[i] = tile_check_extent(c, index->items.items[i]);
        if (!shape->extent[i]) return false;
    }
    return true;
}

static TileMeaning check_zeros(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning shape = {0};
    if (!generic_extents(c, call, &shape) || !tile_check_arguments(c, call, 1, 1, NULL)) return tile_error_meaning();
    const TileExpr *type = call->arguments.items[0].value;
    TileMeaning m = tile_check_expr(c, type);
    if (tile_is_error(&m)) return m;
    if (m.kind != TILE_MEANING_TYPE) return tile_fail(c, NOT_TYPE, type->span, tile_meaning_words(c, &m));
    tile_emit_at(c, call->span);
    return tile_stretch(c, tile_bits_meaning((TileScalar)m.scalar, 0), shape.rank, shape.extent);
}

static TileMeaning check_full(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning shape = {0};
    if (!generic_extents(c, call, &shape) || !tile_check_arguments(c, call, 1, 1, NULL)) return tile_error_meaning();
    const TileExpr *expr = call->arguments.items[0].value;
    TileMeaning m = tile_as_value(c, tile_check_value(c, expr), expr->span);
    if (tile_is_error(&m)) return m;
    if (m.rank) return tile_fail(c, BAD_RANK, expr->span, "full", "0", tile_meaning_words(c, &m));
    tile_emit_at(c, call->span);
    return tile_stretch(c, m, shape.rank, shape.extent);
}

static TileMeaning check_bitcast(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileScalar to = TILE_I32;
    const TileExpr *index = call->a;
    bool named =
        index->kind == TILE_EXPR_INDEX && index->items.count == 1 && index->items.items[0]->kind == TILE_EXPR_NAME;
    if (!named || !tile_find_type(c, index->items.items[0]->name, &to))
        return tile_fail(c, NOT_TYPE, call->a->span, "nothing in brackets");
    if (!tile_check_arguments(c, call, 1, 1, NULL)) return tile_error_meaning();
    TileMeaning m = tile_check_value(c, call->arguments.items[0].value);
    m = tile_as_value(c, m, call->span);
    if (tile_is_error(&m)) return m;
    if (tile_scalar_bits((TileScalar)m.scalar) != tile_scalar_bits(to) || m.scalar == TILE_BOOL)
        return tile_fail(c, BAD_ARGUMENT, call->span, "bitcast", "a value of the same width",
                         tile_meaning_words(c, &m));
    tile_emit_at(c, call->span);
    TileValue *value = tile_emit_value(c, &m);
    return tile_value_meaning(c, tile_build_bitcast(tile_emitter(c), value, to), m.extent, m.valid);
}

/* ---- shapes ---- */

TileMeaning tile_transpose(TileChecker *c, TileMeaning m, const int64_t *axes) {
    const TileSum *extent[TILE_MAX_TILE_RANK];
    int8_t map[TILE_MAX_TILE_RANK] = {0};
    for (int i = 0; i < m.rank; i++) {
        extent[i] = m.extent[axes[i]];
        map[axes[i]] = (int8_t)i;
    }
    TileValue *value = tile_build_permute(tile_emitter(c), tile_emit_value(c, &m), axes);
    return tile_value_meaning(c, value, extent, tile_valid_map(c, m.valid, map));
}

TileMeaning tile_reshape_to(TileChecker *c, TileMeaning m, unsigned rank, const TileSum *const *extent,
                            const int8_t *map) {
    int64_t numbers[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < rank; i++) numbers[i] = tile_extent_value(c, extent[i]);
    TileValue *value = tile_emit_value(c, &m);
    return tile_value_meaning(c, tile_build_reshape(tile_emitter(c), value, rank, numbers), extent,
                              tile_valid_map(c, m.valid, map));
}

static TileMeaning tile_argument(TileChecker *c, const TileExpr *call, unsigned count) {
    if (!tile_check_arguments(c, call, count, count, NULL)) return tile_error_meaning();
    const TileExpr *expr = call->arguments.items[0].value;
    TileMeaning m = tile_as_value(c, tile_check_value(c, expr), expr->span);
    if (tile_is_error(&m) || (m.kind == TILE_MEANING_VALUE && m.rank)) return m;
    return tile_fail(c, BAD_RANK, expr->span, callee_name(call), "at least 1", tile_meaning_words(c, &m));
}

static TileMeaning check_permute(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning m = tile_argument(c, call, 2);
    if (tile_is_error(&m)) return m;
    const TileExpr *order = call->arguments.items[1].value;
    int64_t axes[TILE_MAX_TILE_RANK];
    unsigned seen = 0;
    if (order->kind != TILE_EXPR_TUPLE || order->items.count != m.rank)
        return tile_fail(c, BAD_AXES, order->span, m.rank);
    for (int i = 0; i < m.rank; i++) {
        const TileSum *axis = tile_check_constant(c, order->items.items[i], "an axis", &axes[i]);
        if (!axis) return tile_error_meaning();
        if (axes[i] < 0 || axes[i] >= m.rank || (seen >> axes[i] & 1)) {
            tile_about_sum(c, axis);
            return tile_fail(c, BAD_AXES, order->span, m.rank);
        }
        seen |= 1u << axes[i];
    }
    tile_emit_at(c, call->span);
    return tile_transpose(c, m, axes);
}

/* The leading and trailing axes that keep their extent keep their validity; those between have to be valid. */
static TileMeaning check_reshape(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning m = tile_argument(c, call, 2);
    if (tile_is_error(&m)) return m;
    const TileExpr *shape = call->arguments.items[1].value;
    unsigned rank = shape->kind == TILE_EXPR_TUPLE ? (unsigned)shape->items.count : 1;
    if (rank > TILE_MAX_TILE_RANK) return tile_fail(c, RANK_LIMIT, shape->span, (int)TILE_MAX_TILE_RANK);
    const TileSum *extent[TILE_MAX_TILE_RANK];
    int64_t lanes = 1, had = tile_type_lanes(tile_meaning_type(c, &m));
    for (unsigned i = 0; i < rank; i++) {
        extent[i] = tile_check_extent(c, shape->kind == TILE_EXPR_TUPLE ? shape->items.items[i] : shape);
        if (!extent[i]) return tile_error_meaning();
        lanes *= tile_extent_value(c, extent[i]);
    }
    if (lanes != had) {
        for (unsigned i = 0; i < rank; i++) tile_about_sum(c, extent[i]);
        for (unsigned i = 0; i < m.rank; i++) tile_about_sum(c, m.extent[i]);
        return tile_fail(c, RESHAPE_COUNT, call->span, (long long)had, (long long)lanes);
    }
    int8_t map[TILE_MAX_TILE_RANK] = {-1, -1, -1, -1, -1};
    unsigned front = 0, back = 0, touched = 0;
    while (front < rank && front < m.rank && extent[front] == m.extent[front]) map[front] = (int8_t)front, front++;
    while (back < rank - front && back < m.rank - front && extent[rank - 1 - back] == m.extent[m.rank - 1 - back]) {
        map[m.rank - 1 - back] = (int8_t)(rank - 1 - back);
        back++;
    }
    for (unsigned i = 0; i < m.rank; i++) touched |= map[i] < 0 ? 1u << i : 0;
    if (tile_valid_touches(m.valid, touched))
        return tile_fail_invalid(c, &m, call->arguments.items[0].value, "an axis that reshape changes");
    tile_emit_at(c, call->span);
    return tile_reshape_to(c, m, rank, extent, map);
}

/* ---- other functions ---- */

static TileMeaning check_gather(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    return tile_check_gather(c, call);
}

static TileMeaning check_scatter(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    tile_check_scatter(c, call);
    return tile_nothing();
}

static TileMeaning check_span(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    return tile_check_span(c, call);
}

static TileMeaning check_tiles(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_TILES_PLACE, call->span);
    if (call->arguments.count == 2) {
        const TileExpr *bounds = call->arguments.items[0].value, *size = call->arguments.items[1].value;
        bool whole = bounds->kind != TILE_EXPR_BINARY || bounds->op != TILE_TOKEN_DOTS;
        tile_diagnostic_edit(c->diagnostics, d, call->span, "span(%s%s, %s)", whole ? "0.." : "",
                             tile_span_text(c, bounds->span), tile_span_text(c, size->span));
    }
    tile_report(c, d);
    return tile_error_meaning();
}

static TileMeaning check_iota(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_CALLABLE, call->span, "`iota[B]` is a tile: it");
    TileSpan parentheses = {call->span.file, call->a->span.end, call->span.end};
    bool sized = call->a->kind == TILE_EXPR_NAME && call->arguments.count == 1;
    const char *size = sized ? tile_span_text(c, call->arguments.items[0].value->span) : NULL;
    if (sized)
        tile_diagnostic_edit(c->diagnostics, d, parentheses, "[%s]", size);
    else if (call->a->kind == TILE_EXPR_INDEX)
        tile_diagnostic_edit(c->diagnostics, d, parentheses, "%s", "");
    tile_report(c, d);
    return tile_error_meaning();
}

static TileMeaning refuse(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    return tile_fail(c, UNSUPPORTED, call->span, builtin->name);
}

static const TileBuiltin builtins[] = {
    {"min", check_extremum, TILE_OP_MIN, 2, TAKES_NUMBER, TILE_KIND_MIN},
    {"max", check_extremum, TILE_OP_MAX, 2, TAKES_NUMBER, TILE_KIND_MAX},
    {"clamp", check_clamp, TILE_OP_COUNT, 3, TAKES_NUMBER, 0},
    {"cdiv", check_cdiv, TILE_OP_COUNT, 2, TAKES_INTEGER, 0},
    {"where", check_where, TILE_OP_SELECT, 3, TAKES_NUMBER, 0},
    {"keep", check_keep, TILE_OP_COUNT, 2, TAKES_NUMBER, 0},
    {"sum", tile_check_reduction, TILE_OP_ADD, 1, TAKES_NUMBER, TILE_KIND_SUM},
    {"prod", tile_check_reduction, TILE_OP_MUL, 1, TAKES_NUMBER, TILE_KIND_PROD},
    {"any", tile_check_reduction, TILE_OP_OR, 1, TAKES_NUMBER, TILE_KIND_ANY},
    {"all", tile_check_reduction, TILE_OP_AND, 1, TAKES_NUMBER, TILE_KIND_ALL},
    {"mean", tile_check_mean, TILE_OP_COUNT, 1, TAKES_FLOAT, 0},
    {"argmin", tile_check_arg_reduction, TILE_OP_COUNT, 1, TAKES_NUMBER, TILE_KIND_MIN},
    {"argmax", tile_check_arg_reduction, TILE_OP_COUNT, 1, TAKES_NUMBER, TILE_KIND_MAX},
    {"cumsum", tile_check_cumulative, TILE_OP_COUNT, 1, TAKES_NUMBER, TILE_KIND_SUM},
    {"cumprod", tile_check_cumulative, TILE_OP_COUNT, 1, TAKES_NUMBER, TILE_KIND_PROD},
    {"dot", tile_check_dot, TILE_OP_DOT, 3, TAKES_NUMBER, 0},
    {"permute", check_permute, TILE_OP_PERMUTE, 2, TAKES_NUMBER, 0},
    {"reshape", check_reshape, TILE_OP_RESHAPE, 2, TAKES_NUMBER, 0},
    {"zeros", check_zeros, TILE_OP_CONST, 1, TAKES_NUMBER, 0},
    {"full", check_full, TILE_OP_CONST, 1, TAKES_NUMBER, 0},
    {"iota", check_iota, TILE_OP_IOTA, 0, TAKES_NUMBER, 0},
    {"bitcast", check_bitcast, TILE_OP_BITCAST, 1, TAKES_NUMBER, 0},
    {"gather", check_gather, TILE_OP_LOAD_TILE, 0, TAKES_NUMBER, 0},
    {"scatter", check_scatter, TILE_OP_STORE_TILE, 0, TAKES_NUMBER, 0},
    {"span", check_span, TILE_OP_COUNT, 2, TAKES_NUMBER, 0},
    {"tiles", check_tiles, TILE_OP_COUNT, 2, TAKES_NUMBER, 0},
    {"reduce", tile_check_fold, TILE_OP_COUNT, 0, TAKES_NUMBER, 0},
    {"scan", tile_check_fold, TILE_OP_COUNT, 0, TAKES_NUMBER, 0},
    {"sort", refuse, TILE_OP_COUNT, 0, TAKES_NUMBER, 0},
    {"topk", refuse, TILE_OP_COUNT, 0, TAKES_NUMBER, 0},
    {"histogram", refuse, TILE_OP_COUNT, 0, TAKES_NUMBER, 0},
    {"split", tile_check_split, TILE_OP_SLICE, 1, TAKES_NUMBER, 0},
    {"join", tile_check_join, TILE_OP_CAT, 2, TAKES_NUMBER, 0},
    {"cat", tile_check_cat, TILE_OP_CAT, 2, TAKES_NUMBER, 0},
    {"rand", check_rand, TILE_OP_RAND, 2, TAKES_INTEGER, 0},
    {"atomic_add", tile_check_atomic, TILE_OP_ATOMIC_TILE, 2, TAKES_NUMBER, TILE_UPDATE_ADD},
    {"atomic_max", tile_check_atomic, TILE_OP_ATOMIC_TILE, 2, TAKES_NUMBER, TILE_UPDATE_MAX},
    {"atomic_min", tile_check_atomic, TILE_OP_ATOMIC_TILE, 2, TAKES_NUMBER, TILE_UPDATE_MIN},
    {"atomic_cas", tile_check_atomic, TILE_OP_ATOMIC_TILE, 2, TAKES_NUMBER, TILE_UPDATE_CAS},
    {"print", tile_check_print, TILE_OP_PRINT, 0, TAKES_NUMBER, 0},
};

/* Elementwise operations with the trait FUNCTION are functions with the mnemonic's name. */
static const TileBuiltin op_functions[TILE_OP_COUNT] = {
#define ANY 0
#define OP(id, mnemonic, class, operands, results, regions, forms, traits, rule, attributes, doc)                      \
    {mnemonic, check_elementwise, TILE_OP_##id, operands, TAKES_WHAT_OP_DOES, 0},
#include "lang/ir/ops.def"
#undef OP
#undef ANY
};

void tile_nearest_builtin(TileNearest *nearest) {
    for (int op = 0; op < TILE_OP_COUNT; op++) {
        const char *name = tile_op_info((TileOpId)op)->mnemonic;
        bool function = tile_op_info((TileOpId)op)->traits & TILE_TRAIT_FUNCTION;
        if (function && *name == *nearest->name) tile_nearest_try(nearest, name);
    }
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (*builtins[i].name == *nearest->name) tile_nearest_try(nearest, builtins[i].name);
}

const TileBuiltin *tile_find_builtin(const char *name) {
    TileOpId op = tile_op_find(name, strlen(name));
    if (op != TILE_OP_COUNT && (tile_op_info(op)->traits & TILE_TRAIT_FUNCTION)) return &op_functions[op];
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (strcmp(builtins[i].name, name) == 0) return &builtins[i];
    return NULL;
}
