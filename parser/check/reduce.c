/* Reductions and dot. Invalid elements along the reduced axis are replaced by the identity element before the op. */
#include "parser/check/arguments.h"
#include "parser/check/bounds.h"
#include "parser/check/builtin.h"
#include "parser/check/claim.h"
#include "parser/check/emit.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/operand.h"
#include "parser/check/reduce.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"

#include <string.h>

#include "lang/ir/eval.h"
#include "lang/scalar/scalar.h"

static const char *const reduction_names[] = {"axis", "keep", NULL};

/* ---- identity elements ---- */

/* The identity element, combined with itself: for f8 that saturates infinities. */
static uint64_t neutral_bits(TileName kind, TileScalar scalar) {
    uint64_t identity = tile_eval_identity(kind, scalar), operands[] = {identity, identity};
    tile_eval(tile_eval_combiner(kind), scalar, scalar, operands, &identity);
    return identity;
}

static TileValue *emit_bits(TileChecker *c, TileScalar scalar, uint64_t bits) {
    return tile_build_bits(tile_emitter(c), tile_type_scalar(c->context, scalar), bits);
}

/* ---- axes ---- */

bool tile_find_axis(TileChecker *c, const TileSum *sum, int64_t number, unsigned rank, const TileExpr *expr,
                    int64_t *axis) {
    *axis = number < 0 && number >= -(int64_t)rank ? number + rank : number;
    if (*axis >= 0 && *axis < rank) return true;
    tile_about_sum(c, sum);
    tile_fail(c, NO_AXIS, expr->span, (long long)number, rank);
    return false;
}

static bool read_axis(TileChecker *c, const TileExpr *expr, unsigned rank, unsigned *axes) {
    int64_t axis;
    const TileSum *sum = tile_check_constant(c, expr, "an axis", &axis);
    if (!sum) return false;
    if (!tile_find_axis(c, sum, axis, rank, expr, &axis)) return false;
    if (*axes >> axis & 1u) tile_about_sum(c, sum);
    if (*axes >> axis & 1u) return tile_fail(c, AXIS_TWICE, expr->span, (long long)axis), false;
    *axes |= 1u << axis;
    return true;
}

bool tile_check_axes_of(TileChecker *c, const TileExpr *expr, unsigned rank, unsigned *axes) {
    *axes = 0;
    if (expr->kind != TILE_EXPR_TUPLE) return read_axis(c, expr, rank, axes);
    for (size_t i = 0; i < expr->items.count; i++)
        if (!read_axis(c, expr->items.items[i], rank, axes)) return false;
    return true;
}

bool tile_check_axes(TileChecker *c, const TileExpr *call, unsigned rank, unsigned *axes) {
    const TileExpr *expr = tile_named_argument(call, "axis");
    *axes = (1u << rank) - 1;
    return !expr || tile_check_axes_of(c, expr, rank, axes);
}

static bool reads_keep(TileChecker *c, const TileExpr *call, bool *keep) {
    const TileExpr *expr = tile_named_argument(call, "keep");
    *keep = false;
    if (!expr) return true;
    TileMeaning m = tile_check_value(c, expr);
    if (tile_is_literal(&m)) m = tile_literal_as(c, &m, TILE_BOOL, expr->span);
    if (tile_is_error(&m)) return false;
    if (m.kind != TILE_MEANING_VALUE || m.scalar != TILE_BOOL)
        return tile_fail(c, NOT_BOOL, expr->span, tile_meaning_words(c, &m)), false;
    if (!m.constant) tile_about_constant(c, &m);
    if (!m.constant) return tile_fail(c, NOT_CONSTANT, expr->span, "`keep`"), false;
    *keep = m.bits;
    return true;
}

TileMeaning tile_check_reduced(TileChecker *c, const TileExpr *call, const char *const *names) {
    if (!tile_check_arguments(c, call, 1, 1, names)) return tile_error_meaning();
    const TileExpr *expr = call->arguments.items[0].value;
    TileMeaning m = tile_as_value(c, tile_check_value(c, expr), expr->span);
    if (tile_is_error(&m)) return m;
    if (m.kind != TILE_MEANING_VALUE || m.rank == 0)
        return tile_fail(c, BAD_RANK, expr->span, call->a->kind == TILE_EXPR_NAME ? call->a->name : "the reduction",
                         "at least 1", tile_meaning_words(c, &m));
    tile_emit_at(c, call->span);
    return m;
}

/* ---- reductions ---- */

/* Replaces invalid elements along the axis by the identity element, and removes the axis. */
static TileMeaning reduce_axis(TileChecker *c, TileMeaning m, TileName kind, unsigned axis) {
    const TileValidity *skipped = tile_valid_select(c, m.valid, 1u << axis, false);
    TileScalar scalar = (TileScalar)m.scalar;
    TileValue *x = tile_emit_value(c, &m);
    if (skipped) x = tile_emit_filled(c, &m, skipped, emit_bits(c, scalar, neutral_bits(kind, scalar)));
    const TileSum *extent[TILE_MAX_TILE_RANK];
    int8_t map[TILE_MAX_TILE_RANK];
    unsigned rank = 0;
    for (unsigned i = 0; i < m.rank; i++) {
        map[i] = i == axis ? -1 : (int8_t)rank;
        if (i != axis) extent[rank++] = m.extent[i];
    }
    x = tile_build_reduce(tile_emitter(c), x, kind, axis);
    return tile_value_meaning(c, x, extent, tile_valid_map(c, m.valid, map));
}

/* One op per axis, innermost first, so that invalid elements of an outer axis are only replaced when that axis is
 * reduced: inner lines need no fill for them. With `keep`, the axes are kept with extent 1. */
static TileMeaning reduce_axes(TileChecker *c, TileMeaning m, TileName kind, unsigned axes, bool keep) {
    TileMeaning result = m;
    for (unsigned axis = m.rank; axis-- > 0;)
        if (axes >> axis & 1) result = reduce_axis(c, result, kind, axis);
    if (!keep) return result;
    const TileSum *extent[TILE_MAX_TILE_RANK];
    int8_t map[TILE_MAX_TILE_RANK];
    int64_t numbers[TILE_MAX_TILE_RANK];
    unsigned left = 0;
    for (unsigned axis = 0; axis < m.rank; axis++) {
        bool gone = axes >> axis & 1;
        if (!gone) map[left++] = (int8_t)axis;
        extent[axis] = gone ? tile_sum_integer(&c->sums, 1) : m.extent[axis];
        numbers[axis] = tile_extent_value(c, extent[axis]);
    }
    TileValue *x = tile_build_reshape(tile_emitter(c), tile_emit_value(c, &result), m.rank, numbers);
    return tile_value_meaning(c, x, extent, tile_valid_map(c, result.valid, map));
}

/* Narrow integers are accumulated in i32, floats of 16 and 8 bits in f32, rounded once at the end; f8 is compared in f32, too. */
TileScalar tile_accumulator(TileName kind, TileScalar scalar) {
    if (tile_scalar_is_float(scalar) && tile_scalar_bits(scalar) == 8) return TILE_F32;
    if (kind != TILE_KIND_SUM && kind != TILE_KIND_PROD) return scalar;
    if (tile_scalar_is_float(scalar)) return tile_scalar_bits(scalar) < 32 ? TILE_F32 : scalar;
    return tile_scalar_bits(scalar) < 32 ? TILE_I32 : scalar;
}

static TileMeaning reduce(TileChecker *c, TileMeaning m, TileName kind, unsigned axes, bool keep, TileSpan span) {
    TileScalar scalar = (TileScalar)m.scalar, wide = tile_accumulator(kind, scalar);
    TileMeaning result = reduce_axes(c, tile_convert(c, m, wide, span), kind, axes, keep);
    return tile_scalar_is_float(scalar) ? tile_convert(c, result, scalar, span) : result;
}

TileMeaning tile_check_reduction(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    unsigned axes;
    bool keep;
    TileMeaning m = tile_check_reduced(c, call, reduction_names);
    if (tile_is_error(&m) || !tile_check_axes(c, call, m.rank, &axes) || !reads_keep(c, call, &keep))
        return tile_error_meaning();
    bool logical = builtin->kind == TILE_KIND_ANY || builtin->kind == TILE_KIND_ALL;
    if (logical != (m.scalar == TILE_BOOL))
        return tile_fail(c, BAD_ARGUMENT, call->arguments.items[0].value->span, builtin->name,
                         logical ? "bool" : "numbers", tile_meaning_words(c, &m));
    TileMeaning result = reduce(c, m, (TileName)builtin->kind, axes, keep, call->span);
    if (logical && result.rank == 0) result.claim = tile_claim_of_elements(c, m.claim, builtin->kind == TILE_KIND_ALL);
    return result;
}

/* The number of valid elements of each line, as f32 or f64, with the result's shape. */
static TileMeaning count_valid(TileChecker *c, const TileMeaning *m, unsigned axes, bool keep, TileScalar scalar,
                               TileSpan span) {
    const TileValidity *skipped = tile_valid_select(c, m->valid, axes, false);
    TileMeaning ones = tile_bits_meaning(scalar, tile_scalar_from_integer(scalar, 1));
    if (skipped) {
        TileMeaning tile = tile_stretch(c, ones, m->rank, m->extent);
        tile.valid = skipped;
        return reduce_axes(c, tile, TILE_KIND_SUM, axes, keep);
    }
    int64_t count = 1;
    for (unsigned axis = 0; axis < m->rank; axis++)
        if (axes >> axis & 1) count *= tile_extent_value(c, m->extent[axis]);
    return tile_bits_meaning(scalar, tile_scalar_from_integer(scalar, count));
}

TileMeaning tile_check_mean(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    unsigned axes;
    bool keep;
    TileMeaning m = tile_check_reduced(c, call, reduction_names);
    if (tile_is_error(&m) || !tile_check_axes(c, call, m.rank, &axes) || !reads_keep(c, call, &keep))
        return tile_error_meaning();
    if (!tile_scalar_is_float((TileScalar)m.scalar))
        return tile_fail(c, BAD_ARGUMENT, call->arguments.items[0].value->span, builtin->name, "floats",
                         tile_meaning_words(c, &m));
    TileScalar wide = tile_accumulator(TILE_KIND_SUM, (TileScalar)m.scalar);
    TileMeaning v[2];
    v[0] = reduce_axes(c, tile_convert(c, m, wide, call->span), TILE_KIND_SUM, axes, keep);
    v[1] = count_valid(c, &m, axes, keep, wide, call->span);
    if (!tile_unify_shapes(c, v, 2, call->span)) return tile_error_meaning();
    TileValue *quotient = tile_emit_binary(c, TILE_OP_DIV, tile_emit_value(c, &v[0]), tile_emit_value(c, &v[1]));
    TileMeaning result = tile_value_meaning(c, quotient, v[0].extent, v[0].valid);
    return tile_convert(c, result, (TileScalar)m.scalar, call->span);
}

/* Invalid lanes get the identity element and an index greater than all others, so that they win only in a line without
 * valid elements. */
TileMeaning tile_check_arg_reduction(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    unsigned axes;
    TileMeaning m = tile_check_reduced(c, call, (const char *const[]){"axis", NULL});
    if (tile_is_error(&m) || !tile_check_axes(c, call, m.rank, &axes)) return tile_error_meaning();
    if ((axes & (axes - 1)) != 0) return tile_fail_one_axis(c, call, builtin->name);
    if (m.scalar == TILE_BOOL) return tile_fail(c, BAD_ARGUMENT, call->span, builtin->name, "numbers", "bool");
    if (tile_is_float8(&m)) m = tile_convert(c, m, TILE_F32, call->span);
    int axis = __builtin_ctz(axes);
    const TileValidity *skipped = tile_valid_select(c, m.valid, axes, false);
    TileMeaning index = m;
    index.scalar = TILE_I64;
    index.value = tile_build_iota(tile_emitter(c), tile_meaning_type(c, &index), axis);
    TileValue *x = tile_emit_value(c, &m), *lanes = index.value;
    if (skipped) {
        x = tile_emit_filled(
            c, &m, skipped,
            emit_bits(c, (TileScalar)m.scalar, neutral_bits((TileName)builtin->kind, (TileScalar)m.scalar)));
        lanes = tile_emit_filled(c, &index, skipped, tile_emit_sum(c, tile_sum_integer(&c->sums, INT64_MAX)));
    }
    TileValue *operands[] = {x, lanes};
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_KIND, .integer = builtin->kind},
                                  {.key = TILE_ATTRIBUTE_AXIS, .integer = axis}};
    TileOp *op = tile_build_op(tile_emitter(c), TILE_OP_ARG_REDUCE, operands, 2, attributes, 2, NULL, 1);
    TileValue *found = tile_op_result(op, 0);
    if (skipped) {
        TileValue *none = tile_build_integer(tile_emitter(c), found->type, INT64_MAX);
        TileValue *zero = tile_build_integer(tile_emitter(c), found->type, 0);
        found = tile_emit_select(c, tile_emit_binary(c, TILE_OP_EQ, found, none), zero, found);
    }
    const TileSum *extent[TILE_MAX_TILE_RANK];
    int8_t map[TILE_MAX_TILE_RANK];
    unsigned rank = 0;
    for (int i = 0; i < m.rank; i++) {
        map[i] = i == axis ? -1 : (int8_t)rank;
        if (i != axis) extent[rank++] = m.extent[i];
    }
    const TileSum *last = tile_sum_subtract(&c->sums, m.extent[axis], tile_sum_integer(&c->sums, 1));
    TileMeaning place = tile_value_meaning(c, found, extent, tile_valid_map(c, m.valid, map));
    return tile_bounded(c, place, (TileBounds){tile_sum_integer(&c->sums, 0), last});
}

/* ---- dot ---- */

static TileScalar dot_accumulator(TileScalar scalar) {
    if (scalar == TILE_F64) return TILE_F64;
    return tile_scalar_is_float(scalar) ? TILE_F32 : TILE_I32;
}

static bool fail_mask(TileChecker *c, const TileValidEntry *entry, unsigned free, unsigned axis, const TileExpr *expr,
                      const char *side) {
    tile_about_atom(c, entry->atom);
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_DOT_MASK, expr->span, side, free, axis);
    tile_diagnostic_note(c->diagnostics, d, entry->atom->span,
                         "the mask begins here; what it leaves out would be 0 in the sum, and 0 times NaN is NaN");
    tile_diagnostic_edit(c->diagnostics, d, expr->span, "(%s else 0)", tile_span_text(c, expr->span));
    tile_report(c, d);
    return false;
}

/* The atoms that make steps of the contraction invalid, for an operand whose contracted axis is `axis`. A mask that has
 * other axes, too, cannot protect the other operand from NaNs. */
static bool contracted(TileChecker *c, const TileMeaning *m, int axis, const TileValidity **valid, const TileExpr *expr,
                       const char *side) {
    *valid = tile_valid_select(c, m->valid, 1u << axis, false);
    for (unsigned i = 0; *valid && i < (*valid)->count; i++) {
        const TileValidEntry *entry = &(*valid)->entries[i];
        unsigned rank = entry->atom->kind == TILE_ATOM_MASK ? entry->atom->mask->type->rank : 0;
        for (unsigned k = 0; k < rank; k++)
            if (entry->axes[k] >= 0 && entry->axes[k] != axis)
                return fail_mask(c, entry, (unsigned)entry->axes[k], (unsigned)axis, expr, side);
    }
    return true;
}

static const TileValidity *moved_axis(TileChecker *c, const TileValidity *valid, int from, int to) {
    int8_t map[] = {-1, -1, -1, -1, -1};
    map[from] = (int8_t)to;
    return tile_valid_map(c, valid, map);
}

static const char *dot_shapes(const TileMeaning *a, const TileMeaning *b) {
    unsigned rank = a->rank;
    if (rank < 2 || b->rank != rank) return "two tiles of one rank, at least 2";
    for (unsigned i = 0; i + 2 < rank; i++)
        if (!tile_extents_agree(a->extent[i], b->extent[i])) return "equal leading axes, or such of the extent 1";
    return a->extent[rank - 1] == b->extent[rank - 2] ? NULL : "[.., M, K] and [.., K, N]";
}

static bool multiplies(TileScalar a, TileScalar b) {
    bool bytes = tile_scalar_is_int(a) && tile_scalar_is_int(b) && tile_scalar_bits(a) == 8 && tile_scalar_bits(b) == 8;
    return bytes || (a == b && tile_scalar_is_float(a));
}

/* Both operands are set to zero where a step is invalid in either: 0 * NaN is NaN. */
static bool fill_contraction(TileChecker *c, TileMeaning *a, TileMeaning *b, TileValue **x, TileValue **y,
                             const TileExpr *const *exprs) {
    int ka = a->rank - 1, kb = a->rank - 2;
    const TileValidity *va, *vb;
    if (!contracted(c, a, ka, &va, exprs[0], "left") || !contracted(c, b, kb, &vb, exprs[1], "right")) return false;
    const TileValidity *left = tile_valid_union(c, va, moved_axis(c, vb, kb, ka));
    const TileValidity *right = tile_valid_union(c, vb, moved_axis(c, va, ka, kb));
    /* -0 * 0 is -0, the identity element of sums; 0 * 0 would change a sum of -0 to 0. */
    uint64_t minus_zero = tile_scalar_from_double((TileScalar)a->scalar, -0.0);
    *x = left ? tile_emit_filled(c, a, left, emit_bits(c, (TileScalar)a->scalar, minus_zero)) : tile_emit_value(c, a);
    *y = right ? tile_emit_filled(c, b, right, emit_bits(c, (TileScalar)b->scalar, 0)) : tile_emit_value(c, b);
    return true;
}

static const TileValidity *dot_validity(TileChecker *c, const TileMeaning *a, const TileMeaning *b) {
    int8_t left[TILE_MAX_TILE_RANK], right[TILE_MAX_TILE_RANK];
    for (int i = 0; i < a->rank; i++) left[i] = right[i] = (int8_t)i;
    left[a->rank - 1] = -1;
    right[a->rank - 2] = -1;
    return tile_valid_union(c, tile_valid_map(c, a->valid, left), tile_valid_map(c, b->valid, right));
}

/* Leading axes of extent 1 stretch. */
static void stretch_batch(TileChecker *c, TileMeaning *a, TileMeaning *b) {
    const TileSum *left[TILE_MAX_TILE_RANK], *right[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < a->rank; i++) {
        left[i] = a->extent[i];
        right[i] = b->extent[i];
        if (i + 2 < a->rank) left[i] = right[i] = tile_sum_is_literal(left[i], 1) ? right[i] : left[i];
    }
    *a = tile_stretch(c, *a, a->rank, left);
    *b = tile_stretch(c, *b, b->rank, right);
}

/* Reports the shapes; proposes to transpose the operand that then fits. */
static TileMeaning fail_dot_shape(TileChecker *c, const char *wanted, const TileMeaning *a, const TileMeaning *b,
                                  const TileExpr *const *exprs, TileSpan span) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_DOT_SHAPE, span, wanted, tile_meaning_words(c, a),
                                      tile_meaning_words(c, b));
    bool tiles = a->kind == TILE_MEANING_VALUE && b->kind == TILE_MEANING_VALUE && b->rank;
    const TileSum *steps = tiles && a->rank ? a->extent[a->rank - 1] : NULL;
    const TileSum *wants = tiles ? b->extent[b->rank > 1 ? b->rank - 2 : 0] : NULL;
    if (steps && b->rank == 2 && tile_extents_agree(steps, b->extent[1]))
        tile_diagnostic_edit(c->diagnostics, d, exprs[1]->span, "%s.T", tile_operand_text(c, exprs[1]));
    else if (steps && a->rank == 2 && tile_extents_agree(wants, a->extent[0]))
        tile_diagnostic_edit(c->diagnostics, d, exprs[0]->span, "%s.T", tile_operand_text(c, exprs[0]));
    tile_report(c, d);
    return tile_error_meaning();
}

/* Reports the types; proposes to convert an integer to the other's float, and a narrow float to the wider. */
static TileMeaning fail_dot_type(TileChecker *c, const TileMeaning *a, const TileMeaning *b,
                                 const TileExpr *const *exprs, TileSpan span) {
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_DOT_TYPE, span, tile_meaning_words(c, a), tile_meaning_words(c, b));
    TileScalar left = (TileScalar)a->scalar, right = (TileScalar)b->scalar;
    bool float_left = tile_scalar_is_float(left), float_right = tile_scalar_is_float(right);
    bool to_left = float_left && (!float_right || tile_scalar_bits(left) > tile_scalar_bits(right));
    bool to_right = float_right && (!float_left || tile_scalar_bits(right) > tile_scalar_bits(left));
    if (to_left || to_right) {
        TileSpan place = exprs[to_left]->span;
        tile_diagnostic_edit(c->diagnostics, d, place, "%s(%s)", tile_scalar_name(to_left ? left : right),
                             tile_bare_text(c, place));
    }
    tile_report(c, d);
    return tile_error_meaning();
}

/* Of tiles of one rank, at least 2. */
static TileMeaning multiply(TileChecker *c, TileMeaning a, TileMeaning b, const TileMeaning *acc, TileName precision,
                            const TileExpr *const *exprs, TileSpan span) {
    if (a.kind != TILE_MEANING_VALUE || b.kind != TILE_MEANING_VALUE || dot_shapes(&a, &b)) {
        const char *wanted =
            a.kind == TILE_MEANING_VALUE && b.kind == TILE_MEANING_VALUE ? dot_shapes(&a, &b) : "two tiles";
        if (a.rank == b.rank && a.rank > 1) tile_about_shapes(c, &a, &b);
        return fail_dot_shape(c, wanted, &a, &b, exprs, span);
    }
    if (!multiplies((TileScalar)a.scalar, (TileScalar)b.scalar))
        return fail_dot_type(c, &a, &b, exprs, span);
    tile_emit_at(c, span);
    stretch_batch(c, &a, &b);
    TileMeaning shape = a;
    shape.extent[a.rank - 1] = b.extent[b.rank - 1];
    shape.scalar = (uint8_t)dot_accumulator((TileScalar)a.scalar);
    TileMeaning sum = tile_bits_meaning((TileScalar)shape.scalar, 0);
    if (acc) {
        sum = *acc;
        bool fits = sum.kind == TILE_MEANING_VALUE && sum.scalar == shape.scalar && sum.rank == shape.rank;
        for (unsigned i = 0; fits && i < shape.rank; i++) fits = tile_extents_agree(sum.extent[i], shape.extent[i]);
        shape.value = NULL;
        if (!fits && sum.scalar == shape.scalar && sum.rank == shape.rank) tile_about_shapes(c, &sum, &shape);
        if (!fits)
            return tile_fail(c, DOT_ACCUMULATOR, span, tile_meaning_words(c, &shape), tile_meaning_words(c, &sum));
    }
    TileValue *x, *y;
    if (!fill_contraction(c, &a, &b, &x, &y, exprs)) return tile_error_meaning();
    sum = tile_stretch(c, sum, shape.rank, shape.extent);
    TileValue *operands[] = {x, y, tile_emit_value(c, &sum)};
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_PRECISION, .integer = precision};
    tile_emit_at(c, span);
    TileOp *op =
        tile_build_op(tile_emitter(c), TILE_OP_DOT, operands, 3, &attribute, precision != TILE_PRECISION_IEEE, NULL, 1);
    return tile_value_meaning(c, tile_op_result(op, 0), shape.extent,
                              tile_valid_union(c, dot_validity(c, &a, &b), sum.valid));
}

/* With new axes of extent 1: bit set in `axes`, of the result's rank. */
static TileMeaning with_axes(TileChecker *c, TileMeaning m, unsigned axes, unsigned rank) {
    const TileSum *extent[TILE_MAX_TILE_RANK];
    int8_t map[TILE_MAX_TILE_RANK] = {-1, -1, -1, -1, -1};
    unsigned old = 0;
    for (unsigned i = 0; i < rank; i++) {
        extent[i] = axes >> i & 1u ? tile_sum_integer(&c->sums, 1) : m.extent[old];
        if (!(axes >> i & 1u)) map[old++] = (int8_t)i;
    }
    return tile_reshape_to(c, m, rank, extent, map);
}

/* Without those axes. */
static TileMeaning without_axes(TileChecker *c, TileMeaning m, unsigned axes) {
    const TileSum *extent[TILE_MAX_TILE_RANK];
    int8_t map[TILE_MAX_TILE_RANK] = {-1, -1, -1, -1, -1};
    unsigned rank = 0;
    for (unsigned i = 0; i < m.rank; i++) {
        if (axes >> i & 1u) continue;
        extent[rank] = m.extent[i];
        map[i] = (int8_t)rank++;
    }
    return tile_reshape_to(c, m, rank, extent, map);
}

/* A vector on the left is a row, one on the right a column; the result does not have that axis. */
TileMeaning tile_apply_dot(TileChecker *c, TileMeaning a, TileMeaning b, const TileMeaning *acc, TileName precision,
                           const TileExpr *const *exprs, TileSpan span) {
    bool tiles = a.kind == TILE_MEANING_VALUE && b.kind == TILE_MEANING_VALUE && a.rank && b.rank;
    bool row = tiles && a.rank == 1, column = tiles && b.rank == 1;
    if (!row && !column) return multiply(c, a, b, acc, precision, exprs, span);
    const TileSum *steps = b.extent[column ? 0 : b.rank - 2];
    if (!tile_extents_agree(a.extent[a.rank - 1], steps)) {
        const char *wanted = !row ? "[.., M, K] and [K]" : !column ? "[K] and [.., K, N]" : "[K] and [K]";
        tile_about_extents(c, a.extent[a.rank - 1], steps);
        return fail_dot_shape(c, wanted, &a, &b, exprs, span);
    }
    unsigned rank = a.rank > b.rank ? a.rank : b.rank;
    rank = rank < 2 ? 2 : rank;
    unsigned all = (1u << rank) - 1, last = 1u << (rank - 1), before = 1u << (rank - 2);
    unsigned gone = (row ? before : 0) | (column ? last : 0);
    tile_emit_at(c, span);
    if (row) a = with_axes(c, a, all & ~last, rank);
    if (column) b = with_axes(c, b, all & ~before, rank);
    TileMeaning sum = acc ? *acc : a;
    unsigned left = rank - (unsigned)__builtin_popcount(gone);
    if (acc && (acc->kind != TILE_MEANING_VALUE || acc->rank != left))
        return tile_fail(c, DOT_ACCUMULATOR, span, left ? tile_arena_format(c->arena, "a tile of rank %u", left) : "a scalar",
                         tile_meaning_words(c, acc));
    if (acc) sum = with_axes(c, sum, gone, rank);
    TileMeaning m = multiply(c, a, b, acc ? &sum : NULL, precision, exprs, span);
    return tile_is_error(&m) ? m : without_axes(c, m, gone);
}

/* dot[tf32], dot[tf32x3], dot[ordered]. */
static bool read_dot_word(const TileExpr *call, TileName *precision, bool *ordered) {
    *precision = TILE_PRECISION_IEEE;
    *ordered = false;
    if (call->a->kind != TILE_EXPR_INDEX) return true;
    const TileExpr *entry = call->a->items.count == 1 ? call->a->items.items[0] : NULL;
    const char *word = entry && entry->kind == TILE_EXPR_NAME ? entry->name : "";
    if (strcmp(word, "tf32") == 0) return *precision = TILE_PRECISION_TF32, true;
    if (strcmp(word, "tf32x3") == 0) return *precision = TILE_PRECISION_TF32X3, true;
    return *ordered = strcmp(word, "ordered") == 0;
}

/* The dot that gave a value, which may have lost an axis since. */
static void set_ordered(TileChecker *c, TileValue *value) {
    while (value->op->id == TILE_OP_RESHAPE) value = tile_op_operand(value->op, 0);
    tile_op_set_integer(c->module, value->op, TILE_ATTRIBUTE_ORDERED, 1);
}

TileMeaning tile_check_dot(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileName precision;
    bool ordered;
    if (!read_dot_word(call, &precision, &ordered)) return tile_fail(c, DOT_PRECISION, call->a->span);
    if (!tile_check_arguments(c, call, 2, 3, NULL)) return tile_error_meaning();
    TileMeaning v[3] = {0};
    for (size_t i = 0; i < call->arguments.count; i++) {
        v[i] = tile_check_value(c, call->arguments.items[i].value);
        if (tile_is_error(&v[i])) return v[i];
    }
    if (precision != TILE_PRECISION_IEEE && v[0].scalar != TILE_F32) return tile_fail(c, DOT_PRECISION, call->a->span);
    const TileExpr *exprs[] = {call->arguments.items[0].value, call->arguments.items[1].value};
    TileMeaning m =
        tile_apply_dot(c, v[0], v[1], call->arguments.count == 3 ? &v[2] : NULL, precision, exprs, call->span);
    if (ordered && !tile_is_error(&m)) set_ordered(c, m.value);
    return m;
}
