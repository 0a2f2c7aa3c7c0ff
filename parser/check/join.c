/* join, split, cat, permute and reshape. Operands have to be valid along the axes that change: invalid elements would
 * move to other indices. */
#include "parser/check/arguments.h"
#include "parser/check/builtin.h"
#include "parser/check/emit.h"
#include "parser/check/join.h"
#include "parser/check/literal.h"
#include "parser/check/operand.h"
#include "parser/check/reduce.h"
#include "parser/check/report.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"

#include <string.h>

enum { MAX_PARTS = 8 };

static bool check_untouched(TileChecker *c, const TileMeaning *m, unsigned axis, const TileExpr *expr,
                            const char *what) {
    TileMeaning touched = *m;
    touched.valid = tile_valid_select(c, m->valid, 1u << axis, false);
    if (touched.valid) tile_fail_invalid(c, &touched, expr, what);
    return !touched.valid;
}

/* ---- join and split ---- */

/* The tile with a new last axis of extent 1. */
static TileValue *with_last_axis(TileChecker *c, const TileMeaning *m) {
    int64_t extent[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < m->rank; i++) extent[i] = tile_extent_value(c, m->extent[i]);
    extent[m->rank] = 1;
    TileValue *value = tile_emit_value(c, m);
    return tile_build_reshape(tile_emitter(c), value, m->rank + 1u, extent);
}

/* join(a, b)[.., 0] is a, [.., 1] is b. */
TileMeaning tile_check_join(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning v[2];
    const TileExpr *exprs[2];
    if (!tile_check_arguments(c, call, 2, 2, NULL)) return tile_error_meaning();
    for (unsigned i = 0; i < 2; i++) {
        exprs[i] = call->arguments.items[i].value;
        v[i] = tile_check_value(c, exprs[i]);
        if (tile_is_error(&v[i])) return v[i];
    }
    tile_emit_at(c, call->span);
    if (!tile_unify_scalars(c, v, exprs, 2, call->span) || !tile_unify_shapes(c, v, 2, call->span))
        return tile_error_meaning();
    if (v[0].rank == TILE_MAX_TILE_RANK) return tile_fail(c, RANK_LIMIT, call->span, (int)TILE_MAX_TILE_RANK);
    const TileSum *extent[TILE_MAX_TILE_RANK];
    memcpy(extent, v[0].extent, sizeof extent);
    extent[v[0].rank] = tile_sum_integer(&c->sums, 2);
    TileValue *first = with_last_axis(c, &v[0]), *second = with_last_axis(c, &v[1]);
    tile_emit_at(c, call->span);
    TileValue *joined = tile_build_cat(tile_emitter(c), first, second, v[0].rank);
    return tile_value_meaning(c, joined, extent, tile_valid_union(c, v[0].valid, v[1].valid));
}

static TileMeaning half_of(TileChecker *c, const TileMeaning *m, int64_t offset) {
    static const int8_t map[] = {0, 1, 2, 3, 4};
    TileMeaning half = *m;
    half.extent[m->rank - 1] = tile_sum_integer(&c->sums, 1);
    half.value = tile_build_slice(tile_emitter(c), tile_emit_value(c, m), m->rank - 1, offset, 1);
    return tile_reshape_to(c, half, m->rank - 1u, m->extent, map);
}

/* (x[.., 0], x[.., 1]) of a tile whose last axis has extent 2. */
TileMeaning tile_check_split(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    if (!tile_check_arguments(c, call, 1, 1, NULL)) return tile_error_meaning();
    const TileExpr *expr = call->arguments.items[0].value;
    TileMeaning m = tile_check_value(c, expr);
    if (tile_is_error(&m)) return m;
    bool pairs = m.kind == TILE_MEANING_VALUE && m.rank > 0 && tile_sum_is_literal(m.extent[m.rank - 1], 2);
    if (!pairs && m.rank) tile_about_sum(c, m.extent[m.rank - 1]);
    if (!pairs)
        return tile_fail(c, BAD_ARGUMENT, expr->span, builtin->name, "a tile whose last axis has the extent 2",
                         tile_meaning_words(c, &m));
    if (!check_untouched(c, &m, m.rank - 1u, expr, "the axis that split takes apart")) return tile_error_meaning();
    tile_emit_at(c, call->span);
    TileMeaning tuple = {.kind = TILE_MEANING_TUPLE, .count = 2, .items = TILE_NEW_ARRAY(c->arena, TileMeaning, 2)};
    for (unsigned i = 0; i < 2; i++) tuple.items[i] = half_of(c, &m, i);
    return tuple;
}

/* ---- cat ---- */

static bool check_parts(TileChecker *c, const TileExpr *call, TileMeaning *parts, unsigned count) {
    const TileExpr *exprs[MAX_PARTS];
    unsigned next = 0;
    for (size_t i = 0; i < call->arguments.count; i++) {
        if (call->arguments.items[i].name) continue;
        exprs[next] = call->arguments.items[i].value;
        parts[next] = tile_check_value(c, exprs[next]);
        if (tile_is_error(&parts[next])) return false;
        if (parts[next].kind != TILE_MEANING_VALUE || !parts[next].rank)
            return tile_fail(c, BAD_RANK, exprs[next]->span, "cat", "at least 1", tile_meaning_words(c, &parts[next])),
                   false;
        next++;
    }
    return tile_unify_scalars(c, parts, exprs, count, call->span);
}

/* The other axes must agree; there is no broadcast. */
static bool fits_beside(const TileMeaning *a, const TileMeaning *b, unsigned axis) {
    if (a->rank != b->rank) return false;
    for (unsigned i = 0; i < a->rank; i++)
        if (i != axis && a->extent[i] != b->extent[i]) return false;
    return true;
}

static bool check_axis(TileChecker *c, const TileExpr *call, unsigned rank, unsigned *axis) {
    const TileExpr *expr = tile_named_argument(call, "axis");
    int64_t number = 0;
    const TileSum *sum = expr ? tile_check_constant(c, expr, "an axis", &number) : NULL;
    if (expr && !sum) return false;
    if (expr && !tile_find_axis(c, sum, number, rank, expr, &number)) return false;
    *axis = (unsigned)number;
    return true;
}

/* Concatenates a part to `m`. */
static bool append(TileChecker *c, const TileExpr *call, TileMeaning *m, const TileMeaning *part, unsigned axis) {
    if (!fits_beside(m, part, axis) && m->rank == part->rank) tile_about_shapes(c, m, part);
    if (!fits_beside(m, part, axis))
        return tile_fail(c, SHAPE_MISMATCH, call->span, tile_meaning_words(c, m), tile_meaning_words(c, part)), false;
    const TileSum *extent[TILE_MAX_TILE_RANK];
    memcpy(extent, m->extent, sizeof extent);
    extent[axis] = tile_sum_add(&c->sums, m->extent[axis], part->extent[axis]);
    int64_t lanes = tile_extent_value(c, extent[axis]);
    if (lanes > TILE_MAX_TILE_EXTENT) tile_about_sum(c, extent[axis]);
    if (lanes > TILE_MAX_TILE_EXTENT)
        return tile_fail(c, BAD_EXTENT, call->span, (long long)lanes, (int)TILE_MAX_TILE_EXTENT), false;
    TileValue *first = tile_emit_value(c, m), *second = tile_emit_value(c, part);
    tile_emit_at(c, call->span);
    TileValue *value = tile_build_cat(tile_emitter(c), first, second, axis);
    *m = tile_value_meaning(c, value, extent, tile_valid_union(c, m->valid, part->valid));
    return true;
}

TileMeaning tile_check_cat(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    static const char *const names[] = {"axis", NULL};
    TileMeaning parts[MAX_PARTS];
    unsigned axis, count = 0;
    if (!tile_check_arguments(c, call, 2, MAX_PARTS, names)) return tile_error_meaning();
    for (size_t i = 0; i < call->arguments.count; i++) count += !call->arguments.items[i].name;
    if (!check_parts(c, call, parts, count) || !check_axis(c, call, parts[0].rank, &axis)) return tile_error_meaning();
    unsigned next = 0;
    for (size_t i = 0; i < call->arguments.count; i++) {
        if (call->arguments.items[i].name) continue;
        const TileMeaning *part = &parts[next++];
        if (!check_untouched(c, part, axis, call->arguments.items[i].value, "the axis that cat lengthens"))
            return tile_error_meaning();
    }
    tile_emit_at(c, call->span);
    TileMeaning m = parts[0];
    for (unsigned i = 1; i < count; i++)
        if (!append(c, call, &m, &parts[i], axis)) return tile_error_meaning();
    return m;
}

/* ---- permute and reshape ---- */

static TileMeaning check_tile_operand(TileChecker *c, const TileExpr *call, unsigned count) {
    if (!tile_check_arguments(c, call, count, count, NULL)) return tile_error_meaning();
    const TileExpr *expr = call->arguments.items[0].value;
    TileMeaning m = tile_as_value(c, tile_check_value(c, expr), expr->span);
    if (tile_is_error(&m) || (m.kind == TILE_MEANING_VALUE && m.rank)) return m;
    return tile_fail(c, BAD_RANK, expr->span, tile_callee_name(call), "at least 1", tile_meaning_words(c, &m));
}

TileMeaning tile_check_permute(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning m = check_tile_operand(c, call, 2);
    if (tile_is_error(&m)) return m;
    const TileExpr *order = call->arguments.items[1].value;
    int64_t axes[TILE_MAX_TILE_RANK];
    unsigned seen = 0;
    if (order->kind != TILE_EXPR_TUPLE || order->items.count != m.rank)
        return tile_fail(c, BAD_AXES, order->span, m.rank);
    for (int i = 0; i < m.rank; i++) {
        const TileSum *axis = tile_check_constant(c, order->items.items[i], "an axis", &axes[i]);
        if (!axis) return tile_error_meaning();
        if (axes[i] < 0 && axes[i] >= -(int64_t)m.rank) axes[i] += m.rank;
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
/* `reshape(v, (4, -1))`, as in NumPy: proposes what is left of the elements, if the other extents are written numbers.
 */
static void propose_rest(TileChecker *c, const TileExpr *shape, unsigned place, int64_t elements) {
    const TileExpr *open = shape->kind == TILE_EXPR_TUPLE ? shape->items.items[place] : shape;
    TileDiagnostic *d = tile_reported_last(c, TILE_DIAGNOSTIC_BAD_EXTENT, open->span);
    if (!d || strcmp(tile_span_text(c, open->span), "-1") != 0) return;
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "each extent is written; none is left to be computed");
    for (size_t i = 0; shape->kind == TILE_EXPR_TUPLE && i < shape->items.count; i++) {
        const TileExpr *other = shape->items.items[i];
        if (i == place) continue;
        if (other->kind != TILE_EXPR_INTEGER || !other->integer || elements % (int64_t)other->integer) return;
        elements /= (int64_t)other->integer;
    }
    tile_diagnostic_edit(c->diagnostics, d, open->span, "%lld", (long long)elements);
}

TileMeaning tile_check_reshape(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileMeaning m = check_tile_operand(c, call, 2);
    if (tile_is_error(&m)) return m;
    const TileExpr *shape = call->arguments.items[1].value;
    unsigned rank = shape->kind == TILE_EXPR_TUPLE ? (unsigned)shape->items.count : 1;
    if (rank > TILE_MAX_TILE_RANK) return tile_fail(c, RANK_LIMIT, shape->span, (int)TILE_MAX_TILE_RANK);
    const TileSum *extent[TILE_MAX_TILE_RANK];
    int64_t lanes = 1, had = tile_type_lanes(tile_meaning_type(c, &m));
    for (unsigned i = 0; i < rank; i++) {
        extent[i] = tile_check_extent(c, shape->kind == TILE_EXPR_TUPLE ? shape->items.items[i] : shape);
        if (!extent[i]) return propose_rest(c, shape, i, had), tile_error_meaning();
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
