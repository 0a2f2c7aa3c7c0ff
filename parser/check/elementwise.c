/* Elementwise built-in functions, and those that create a tile. */
#include "parser/check/arguments.h"
#include "parser/check/bounds.h"
#include "parser/check/claim.h"
#include "parser/check/builtin.h"
#include "parser/check/elementwise.h"
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/operand.h"
#include "parser/check/operator.h"
#include "parser/check/foreign.h"
#include "parser/check/forms.h"
#include "parser/check/propose.h"
#include "parser/check/reduce.h"
#include "parser/check/report.h"
#include "parser/check/shape.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"

static unsigned types_of(const TileBuiltin *builtin) {
    if (builtin->types != TILE_TAKES_WHAT_OP_DOES) return builtin->types;
    unsigned traits = tile_op_info(builtin->op)->traits;
    return traits & TILE_TRAIT_FLOAT_ONLY ? TILE_TAKES_FLOAT
           : traits & TILE_TRAIT_INT_ONLY ? TILE_TAKES_INTEGER
                                          : TILE_TAKES_NUMBER;
}

static bool takes(unsigned types, TileScalar scalar) {
    if (types == TILE_TAKES_FLOAT) return tile_scalar_is_float(scalar);
    if (types == TILE_TAKES_INTEGER) return tile_scalar_is_int(scalar);
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
    if (!tile_check_operands(c, call, count, operands)) return tile_error_meaning();
    unsigned types = types_of(builtin);
    if (!takes(types, (TileScalar)operands[0].scalar)) {
        const char *wanted = types == TILE_TAKES_FLOAT     ? "floats"
                             : types == TILE_TAKES_INTEGER ? "integers"
                                                           : "numbers";
        TileSpan span = call->arguments.items[0].value->span;
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BAD_ARGUMENT, span, builtin->name, wanted,
                                          tile_meaning_words(c, &operands[0]));
        if (types == TILE_TAKES_FLOAT && count == 1 && !c->frame->item->generics.count)
            tile_diagnostic_edit(c->diagnostics, d, span, "f32(%s)", tile_bare_text(c, span));
        tile_report(c, d);
        return tile_error_meaning();
    }
    TileScalar scalar = (TileScalar)operands[0].scalar;
    /* f8 is computed in f32, and rounded; but a neighbour is one of its own type. */
    bool widened = tile_is_float8(&operands[0]) && builtin->op != TILE_OP_NEXTAFTER;
    for (unsigned i = 0; i < count && widened; i++) operands[i] = tile_convert(c, operands[i], TILE_F32, call->span);
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
    TileMeaning result = tile_value_meaning(c, tile_op_result(op, 0), operands[0].extent, valid);
    if (widened) return result.scalar == TILE_BOOL ? result : tile_convert(c, result, scalar, call->span);
    if (builtin->op != TILE_OP_MIN && builtin->op != TILE_OP_MAX) return result;
    TileBounds a = tile_bounds_of(c, &operands[0]), b = tile_bounds_of(c, &operands[1]);
    return tile_bounded(c, result, tile_bounds_of_extremum(c, builtin->op, a, b));
}

TileMeaning tile_check_elementwise(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    return check_elementwise_as(c, call, builtin, false);
}

static bool has_axis(const TileExpr *call) { return call->arguments.count == 1 || tile_named_argument(call, "axis"); }

/* min and max are elementwise with two arguments, reductions with one. */
TileMeaning tile_check_extremum(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    if (has_axis(call)) return tile_check_reduction(c, call, builtin);
    return tile_check_elementwise(c, call, builtin);
}

TileMeaning tile_check_clamp(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning v[3];
    if (!tile_check_operands(c, call, 3, v)) return tile_error_meaning();
    if (v[0].scalar == TILE_BOOL) return tile_fail(c, BAD_ARGUMENT, call->span, builtin->name, "numbers", "bool");
    TileScalar scalar = (TileScalar)v[0].scalar;
    bool widened = tile_is_float8(&v[0]);
    for (unsigned i = 0; i < 3 && widened; i++) v[i] = tile_convert(c, v[i], TILE_F32, call->span);
    const TileValidity *valid = tile_valid_union(c, tile_valid_union(c, v[0].valid, v[1].valid), v[2].valid);
    if (v[0].sum && v[1].sum && v[2].sum) {
        TileMeaning result = tile_sum_meaning(tile_sum_clamp(&c->sums, v[0].sum, v[1].sum, v[2].sum));
        result.valid = valid;
        return result;
    }
    if (!tile_unify_shapes(c, v, 3, call->span)) return tile_error_meaning();
    TileBounds bounds =
        tile_bounds_of_clamp(c, tile_bounds_of(c, &v[0]), tile_bounds_of(c, &v[1]), tile_bounds_of(c, &v[2]));
    TileValue *x = tile_emit_value(c, &v[0]), *low = tile_emit_value(c, &v[1]), *high = tile_emit_value(c, &v[2]);
    x = tile_emit_binary(c, TILE_OP_MAX, x, low);
    valid = tile_valid_union(c, tile_valid_union(c, v[0].valid, v[1].valid), v[2].valid);
    TileMeaning result = tile_value_meaning(c, tile_emit_binary(c, TILE_OP_MIN, x, high), v[0].extent, valid);
    return widened ? tile_convert(c, result, scalar, call->span) : tile_bounded(c, result, bounds);
}

TileMeaning tile_check_cdiv(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning v[2];
    if (!tile_check_operands(c, call, 2, v)) return tile_error_meaning();
    if (!tile_scalar_is_int((TileScalar)v[0].scalar))
        return tile_fail(c, BAD_ARGUMENT, call->span, builtin->name, "integers", tile_meaning_words(c, &v[0]));
    TileExpr expr = *call;
    expr.b = NULL;
    TileMeaning one = tile_integer_meaning(1);
    TileMeaning sum = tile_apply_binary(c, TILE_TOKEN_PLUS, v[0], v[1], &expr);
    sum = tile_apply_binary(c, TILE_TOKEN_MINUS, sum, one, &expr);
    return tile_apply_binary(c, TILE_TOKEN_SLASH, sum, v[1], &expr);
}

/* A float operand; a literal becomes f32. */
static TileMeaning check_float(TileChecker *c, const TileExpr *expr, const TileBuiltin *builtin) {
    TileMeaning m = tile_check_value(c, expr);
    if (tile_is_literal(&m)) m = tile_literal_as(c, &m, TILE_F32, expr->span);
    if (tile_is_error(&m)) return m;
    if (!tile_scalar_is_float((TileScalar)m.scalar))
        return tile_fail(c, BAD_ARGUMENT, expr->span, builtin->name, "floats", tile_meaning_words(c, &m));
    return m;
}

static TileMeaning fail_exponent(TileChecker *c, const TileExpr *exponent, const TileBuiltin *builtin, const TileMeaning *m) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BAD_ARGUMENT, exponent->span, builtin->name,
                                      "an integer as its exponent", tile_meaning_words(c, m));
    bool is_float = m->kind == TILE_MEANING_VALUE && tile_scalar_is_float((TileScalar)m->scalar);
    if (is_float) tile_diagnostic_edit(c->diagnostics, d, exponent->span, "i32(%s)", tile_bare_text(c, exponent->span));
    tile_report(c, d);
    return tile_error_meaning();
}

/* x 2^n for an integer n of any type. The op takes n as a float of x's type, f32 for narrower types, which not all n fit. */
TileMeaning tile_check_ldexp(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    if (!tile_check_arguments(c, call, 2, 2, NULL)) return tile_error_meaning();
    const TileExpr *exponent = call->arguments.items[1].value;
    TileMeaning v[2] = {check_float(c, call->arguments.items[0].value, builtin)};
    if (tile_is_error(&v[0])) return v[0];
    v[1] = tile_as_value(c, tile_check_value(c, exponent), exponent->span);
    if (tile_is_error(&v[1])) return v[1];
    if (!tile_scalar_is_int((TileScalar)v[1].scalar))
        return fail_exponent(c, exponent, builtin, &v[1]);
    TileScalar scalar = (TileScalar)v[0].scalar, wide = scalar == TILE_F64 ? TILE_F64 : TILE_F32;
    tile_emit_at(c, call->span);
    if (!tile_unify_shapes(c, v, 2, call->span)) return tile_error_meaning();
    const TileValidity *valid = tile_valid_union(c, v[0].valid, v[1].valid);
    for (unsigned i = 0; i < 2; i++) v[i] = tile_convert(c, v[i], wide, call->span);
    TileValue *x = tile_emit_value(c, &v[0]), *n = tile_emit_value(c, &v[1]);
    TileMeaning result = tile_value_meaning(c, tile_emit_binary(c, builtin->op, x, n), v[0].extent, valid);
    return tile_convert(c, result, scalar, call->span);
}

/* (fraction, exponent as an i32) */
TileMeaning tile_check_frexp(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    if (!tile_check_arguments(c, call, 1, 1, NULL)) return tile_error_meaning();
    TileMeaning m = check_float(c, call->arguments.items[0].value, builtin);
    if (tile_is_error(&m)) return m;
    TileScalar scalar = (TileScalar)m.scalar;
    tile_emit_at(c, call->span);
    if (tile_is_float8(&m)) m = tile_convert(c, m, TILE_F32, call->span);
    TileValue *x = tile_emit_value(c, &m), *exponent = tile_build_unary(tile_emitter(c), TILE_OP_FREXP_EXPONENT, x);
    TileMeaning tuple = {.kind = TILE_MEANING_TUPLE, .count = 2, .items = TILE_NEW_ARRAY(c->arena, TileMeaning, 2)};
    TileMeaning fraction = tile_value_meaning(c, tile_build_unary(tile_emitter(c), builtin->op, x), m.extent, m.valid);
    tuple.items[0] = tile_convert(c, fraction, scalar, call->span);
    TileMeaning whole = tile_value_meaning(c, exponent, m.extent, m.valid);
    tuple.items[1] = tile_convert(c, whole, TILE_I32, call->span);
    return tuple;
}

TileMeaning tile_check_where(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
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

TileMeaning tile_check_keep(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
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
    TileBounds bounds = tile_claim_bounds(c, &v[0], v[1].claim, true);
    v[1] = condition_of;
    TileValue *no = tile_build_bool(tile_emitter(c), false), *mask = tile_emit_filled(c, &v[1], v[1].valid, no);
    TileAtom *atom = tile_atom_mask(c, mask, mask, NULL, NULL, call->span, "what `keep` leaves out");
    valid = tile_valid_add(c, valid, atom, axes, call->span);
    return tile_bounded(c, tile_value_meaning(c, tile_emit_value(c, &v[0]), v[0].extent, valid), bounds);
}

/* approx.exp(x): the hardware's approximation may be used. */
TileMeaning tile_check_approximate(TileChecker *c, const TileExpr *call) {
    const TileBuiltin *builtin = tile_find_builtin(call->a->name);
    bool ok =
        builtin && builtin->rule == TILE_BUILTIN_ELEMENTWISE && tile_op_allows(builtin->op, TILE_ATTRIBUTE_APPROX);
    if (!ok) return tile_fail(c, NO_FIELD, call->a->op_span, "approx", call->a->name);
    return check_elementwise_as(c, call, builtin, true);
}

/* ---- creation of tiles ---- */

/* The extents of the arguments from..to, `(4, 8)` as `4, 8`. */
static const char *extents_text(TileChecker *c, const TileExpr *call, size_t from, size_t to) {
    const TileExpr *first = call->arguments.items[from].value, *last = call->arguments.items[to - 1].value;
    if (first == last && first->kind == TILE_EXPR_TUPLE && first->items.count)
        last = first->items.items[first->items.count - 1], first = first->items.items[0];
    return tile_bare_text(c, (TileSpan){first->span.file, first->span.begin, last->span.end});
}

/* `zeros(4, f32)` and `zeros((4, 8), f32)`, as in NumPy, `zeros(f32, 4, 8)`, as in a test, and `full((4, 8), 1.5)`. */
static void fail_extents(TileChecker *c, const TileExpr *call) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_EXTENTS_MISSING, call->span, tile_callee_name(call),
                                      (int)TILE_MAX_TILE_RANK);
    size_t count = call->arguments.count;
    if (call->a->kind == TILE_EXPR_NAME && strcmp(call->a->name, "randperm") != 0 && count > 1) {
        TileScalar scalar;
        const char *first = tile_type_text(c, call->arguments.items[0].value);
        bool leads = strcmp(call->a->name, "full") != 0 && tile_find_type(c, first, &scalar);
        const char *type = leads ? first : tile_type_text(c, call->arguments.items[count - 1].value);
        const char *extents = leads ? extents_text(c, call, 1, count) : extents_text(c, call, 0, count - 1);
        bool untyped = !leads && strcmp(call->a->name, "zeros") == 0 && !tile_find_type(c, type, &scalar); /* `zeros(8, 64)` */
        if (untyped) type = "f32", extents = extents_text(c, call, 0, count);
        if (leads || untyped || count == 2)
            tile_diagnostic_edit(c->diagnostics, d, call->span, "%s[%s](%s)", call->a->name, extents, type);
    }
    tile_note_forms(c, d, call, tile_callee_name(call));
    tile_report(c, d);
}

bool tile_check_extents(TileChecker *c, const TileExpr *call, TileMeaning *shape) {
    const TileExpr *index = call->a;
    if (index->kind != TILE_EXPR_INDEX || !index->items.count || index->items.count > TILE_MAX_TILE_RANK) {
        return fail_extents(c, call), false;
    }
    shape->kind = TILE_MEANING_VALUE;
    shape->rank = (uint8_t)index->items.count;
    for (size_t i = 0; i < index->items.count; i++) {
        shape->extent[i] = tile_check_extent(c, index->items.items[i]);
        if (!shape->extent[i]) return false;
    }
    return true;
}

TileMeaning tile_check_zeros(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning shape = {0};
    if (!tile_check_extents(c, call, &shape) || !tile_check_arguments(c, call, 1, 1, NULL)) return tile_error_meaning();
    const TileExpr *type = call->arguments.items[0].value;
    TileMeaning m = tile_check_expr(c, type);
    if (tile_is_error(&m)) return m;
    if (m.kind != TILE_MEANING_TYPE) return tile_fail(c, NOT_TYPE, type->span, tile_meaning_words(c, &m));
    tile_emit_at(c, call->span);
    return tile_stretch(c, tile_bits_meaning((TileScalar)m.scalar, 0), shape.rank, shape.extent);
}

TileMeaning tile_check_full(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning shape = {0};
    if (!tile_check_extents(c, call, &shape) || !tile_check_arguments(c, call, 1, 1, NULL)) return tile_error_meaning();
    const TileExpr *expr = call->arguments.items[0].value;
    TileMeaning m = tile_as_value(c, tile_check_value(c, expr), expr->span);
    if (tile_is_error(&m)) return m;
    if (m.rank) return tile_fail(c, BAD_RANK, expr->span, "full", "0", tile_meaning_words(c, &m));
    tile_emit_at(c, call->span);
    m = tile_stretch(c, m, shape.rank, shape.extent);
    m.element = NULL; /* it is a tile's, from here on */
    return m;
}

TileMeaning tile_check_bitcast(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
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
