/* Ranges: tiles, spans, shifts, fields. A range is not a value of the IR: only its arithmetic is emitted. */
#include "parser/check/arguments.h"
#include "parser/check/bounds.h"
#include "parser/check/element.h"
#include "parser/check/emit.h"
#include "parser/check/meaning.h"
#include "parser/check/operand.h"
#include "parser/check/propose.h"
#include "parser/check/range.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/validity.h"

#include <string.h>

bool tile_is_call_of(const TileExpr *expr, const char *name) {
    return expr->kind == TILE_EXPR_CALL && expr->a->kind == TILE_EXPR_NAME && strcmp(expr->a->name, name) == 0;
}

/* a..b, or an integer n for 0..n. */
static bool check_limits(TileChecker *c, const TileExpr *expr, TileTiles *tiles) {
    if (expr->kind == TILE_EXPR_BINARY && expr->op == TILE_TOKEN_DOTS) {
        tiles->lo = tile_check_integer(c, expr->a, "the start of a range");
        tiles->hi = tile_check_integer(c, expr->b, "the limit of a range");
        return tiles->lo && tiles->hi;
    }
    tiles->lo = tile_sum_integer(&c->sums, 0);
    tiles->hi = tile_check_integer(c, expr, "the extent of a range");
    return tiles->hi != NULL;
}

bool tile_check_tiles(TileChecker *c, const TileExpr *expr, TileTiles *tiles) {
    tiles->span = expr->span;
    if (!tile_check_arguments(c, expr, 2, 2, NULL)) return false;
    bool ok = check_limits(c, expr->arguments.items[0].value, tiles);
    tiles->size = tile_check_extent(c, expr->arguments.items[1].value);
    return ok && tiles->size;
}

static TileRange *new_range(TileChecker *c, const TileSum *first, const TileSum *size, TileSpan span,
                            const char *name) {
    TileRange *range = TILE_NEW(c->arena, TileRange);
    *range = (TileRange){.name = name, .first = first, .size = size, .span = span, .birth = tile_now(c)};
    range->step = tile_sum_integer(&c->sums, 1);
    range->root = range;
    tile_list_push(c->arena, &c->ranges, range);
    return range;
}

/* A range that has been written alike: it has the same lanes, and is the same source of what is invalid. */
static TileRange *find_range(const TileChecker *c, const TileSum *first, const TileSum *size, const TileSum *limit) {
    for (size_t i = c->ranges.count; i-- > 0;) {
        TileRange *range = c->ranges.items[i];
        if (range->first == first && range->size == size && range->limit == limit) return range;
    }
    return NULL;
}

static TileMeaning range_meaning(TileRange *range) { return (TileMeaning){.kind = TILE_MEANING_RANGE, .range = range}; }

static const TileSum *minus_one(TileChecker *c, const TileSum *sum) {
    return tile_sum_subtract(&c->sums, sum, tile_sum_integer(&c->sums, 1));
}

static const TileSum *scalar(TileChecker *c, TileValue *value) { return tile_scalar_meaning(c, value, NULL).sum; }

/* The number of lanes whose index is less than the limit; `inside`: that of the first lane is. As an exact integer: if
 * limit - first overflows 64 bits, it is not what the code computes. */
static const TileSum *lanes_below(TileChecker *c, const TileRange *range, const TileSum *limit, bool inside) {
    TileSumTable *t = &c->sums;
    tile_sum_wrapped(t);
    const TileSum *rest = tile_sum_subtract(t, limit, range->first);
    TileInterval most = tile_sum_interval(t, limit), least = tile_sum_interval(t, range->first);
    bool wraps = tile_sum_wrapped(t) || (tile_sum_exceeds(t, rest) && (most.above || least.below || least.least < 0));
    wraps |= !inside && tile_sum_falls(t, rest) && (most.below || most.least < 0 || least.above);
    if (!wraps) return tile_sum_min(t, range->size, rest);
    TileValue *left = tile_emit_sum(c, rest), *size = tile_emit_sum(c, range->size);
    TileValue *zero = tile_emit_sum(c, tile_sum_integer(t, 0));
    TileValue *many = tile_emit_binary(c, TILE_OP_LE, left, zero);
    TileValue *lanes = tile_emit_select(c, many, size, tile_emit_binary(c, TILE_OP_MIN, size, left));
    if (inside) return scalar(c, lanes);
    TileValue *some = tile_emit_binary(c, TILE_OP_LT, tile_emit_sum(c, range->first), tile_emit_sum(c, limit));
    return scalar(c, tile_emit_select(c, some, lanes, zero));
}

/* min(first + size, limit), as an exact integer; `past` is the sum, which may wrap. */
static const TileSum *end_of(TileChecker *c, const TileRange *range, const TileSum *past, bool wraps,
                             const TileSum *limit) {
    if (!wraps) return tile_sum_min(&c->sums, past, limit);
    if (past->count == 0) return limit;
    TileValue *end = tile_emit_sum(c, past), *most = tile_emit_sum(c, limit);
    TileValue *wrapped = tile_emit_binary(c, TILE_OP_LT, end, tile_emit_sum(c, range->first));
    TileValue *least = tile_emit_binary(c, TILE_OP_MIN, end, most);
    return scalar(c, tile_emit_select(c, wrapped, most, least));
}

static void add_lanes(TileChecker *c, TileRange *range, const TileSum *limit, bool inside) {
    range->lanes = tile_atom_interval(c, (TileAtom){.root = range,
                                                    .first = range->first,
                                                    .step = range->step,
                                                    .size = range->size,
                                                    .birth = range->birth,
                                                    .hi = lanes_below(c, range, limit, inside),
                                                    .span = range->span,
                                                    .limit = limit});
}

/* Lanes first .. first + size, valid below `limit`. There are `limit - first` valid lanes, unless that wraps, or more
 * than `size`. */
static void set_limit(TileChecker *c, TileRange *range, const TileSum *lo, const TileSum *limit, bool inside) {
    TileSumTable *t = &c->sums;
    size_t hidden = tile_facts_hide(c);
    const TileSum *past, *most, *rest = tile_sum_subtract(t, limit, range->first);
    bool wraps = tile_sum_add_exceeds(t, range->first, range->size, &past);
    if (inside) wraps = wraps && tile_sum_add_exceeds(t, limit, range->size, &most);
    bool whole = !wraps && tile_sum_at_most(t, past, limit);
    if (tile_sum_proves(t, lo, range->first, NULL)) range->lowest = lo;
    bool counted = !tile_sum_falls(t, rest) || tile_sum_proves(t, range->first, limit, NULL);
    if (whole || counted) range->highest = minus_one(c, limit);
    range->limit = limit;
    range->end = end_of(c, range, past, wraps, limit);
    if (!whole) add_lanes(c, range, limit, inside);
    tile_facts_restore(c, hidden);
}

TileMeaning tile_range_of(TileChecker *c, const TileTiles *tiles, const TileSum *first, TileNameRef name) {
    TileRange *range = new_range(c, first, tiles->size, name.span, name.name);
    set_limit(c, range, tiles->lo, tiles->hi, true);
    if (range->lanes) range->lanes->holds_first = true; /* there is no range without an index */
    return range_meaning(range);
}

TileMeaning tile_whole_range(TileChecker *c, const TileSum *extent, TileSpan span) {
    TileRange *range = new_range(c, tile_sum_integer(&c->sums, 0), extent, span, NULL);
    range->lowest = range->first;
    range->highest = minus_one(c, extent);
    range->end = extent;
    return range_meaning(range);
}

TileMeaning tile_check_span(TileChecker *c, const TileExpr *call) {
    if (!tile_check_arguments(c, call, 2, 2, NULL)) return tile_error_meaning();
    const TileExpr *bounds = call->arguments.items[0].value;
    bool limited = bounds->kind == TILE_EXPR_BINARY && bounds->op == TILE_TOKEN_DOTS;
    const TileSum *start = tile_check_integer(c, limited ? bounds->a : bounds, "the start of a span");
    const TileSum *limit = limited ? tile_check_integer(c, bounds->b, "the limit of a span") : start;
    const TileSum *size = tile_check_extent(c, call->arguments.items[1].value);
    if (!start || !limit || !size) return tile_error_meaning();
    TileRange *range = find_range(c, start, size, limited ? limit : NULL);
    if (range) return range_meaning(range);
    range = new_range(c, start, size, call->span, NULL);
    if (limited) {
        set_limit(c, range, start, limit, false);
    } else {
        range->lowest = start;
        range->end = tile_sum_add(&c->sums, start, size);
        range->highest = minus_one(c, range->end);
    }
    return range_meaning(range);
}

/* ---- arithmetic ---- */

static TileRange *copy_range(TileChecker *c, const TileRange *range, TileSpan span) {
    TileRange *copy = tile_arena_copy(c->arena, range, sizeof *range);
    copy->span = span;
    copy->birth = tile_now(c);
    return copy;
}

static TileMeaning add_to_range(TileChecker *c, const TileRange *range, const TileSum *by, TileSpan span) {
    TileSumTable *t = &c->sums;
    TileRange *moved = copy_range(c, range, span);
    moved->first = tile_sum_add(t, range->first, by);
    tile_sum_wrapped(t);
    if (range->lowest) moved->lowest = tile_sum_add(t, range->lowest, by);
    if (range->highest) moved->highest = tile_sum_add(t, range->highest, by);
    if (tile_sum_wrapped(t)) moved->lowest = moved->highest = NULL;
    if (range->end) moved->end = tile_sum_add(t, range->end, by);
    return range_meaning(moved);
}

/* Bounds are scaled, too, if the sign of the stride is known. */
static void scale_bounds(TileChecker *c, const TileRange *range, const TileSum *by, TileRange *scaled) {
    TileSumTable *t = &c->sums;
    const TileSum *zero = tile_sum_integer(t, 0);
    size_t hidden = tile_facts_hide(c);
    bool up = tile_sum_proves(t, zero, by, NULL), down = tile_sum_proves(t, by, zero, NULL);
    tile_facts_restore(c, hidden);
    const TileSum *low = up ? range->lowest : down ? range->highest : NULL;
    const TileSum *high = up ? range->highest : down ? range->lowest : NULL;
    tile_sum_wrapped(t);
    scaled->lowest = low ? tile_sum_multiply(t, low, by) : NULL;
    scaled->highest = high ? tile_sum_multiply(t, high, by) : NULL;
    if (tile_sum_wrapped(t)) scaled->lowest = scaled->highest = NULL;
}

static TileMeaning scale_range(TileChecker *c, const TileRange *range, const TileSum *by, TileSpan span) {
    TileRange *scaled = copy_range(c, range, span);
    scaled->first = tile_sum_multiply(&c->sums, range->first, by);
    scaled->step = tile_sum_multiply(&c->sums, range->step, by);
    scale_bounds(c, range, by, scaled);
    scaled->end = NULL;
    return range_meaning(scaled);
}

/* A shift by a tile is different for each lane: that is a gather. */
static TileMeaning fail_tile_shift(TileChecker *c, const TileMeaning *by, bool left, const TileExpr *expr) {
    const TileExpr *range = left ? expr->a : expr->b, *tile = left ? expr->b : expr->a;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_INTEGER, tile->span, "what shifts a range",
                                      tile_arena_format(c->arena, "a tile, %s", tile_meaning_words(c, by)));
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`.idx` gives the indices of a range as a tile");
    tile_diagnostic_edit(c->diagnostics, d, range->span, "%s.idx", tile_operand_text(c, range));
    tile_report(c, d);
    return tile_error_meaning();
}

TileMeaning tile_shift_range(TileChecker *c, TileTokenKind op, const TileMeaning *a, const TileMeaning *b,
                             const TileExpr *expr) {
    TileSpan span = expr->span;
    bool left = a->kind == TILE_MEANING_RANGE, both = left && b->kind == TILE_MEANING_RANGE;
    const TileRange *range = left ? a->range : b->range;
    const TileMeaning *other = left ? b : a;
    bool known_op = op == TILE_TOKEN_PLUS || op == TILE_TOKEN_MINUS || op == TILE_TOKEN_STAR;
    if (both || !known_op) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BAD_OPERAND, span, tile_token_text(op),
                                          tile_meaning_words(c, left ? a : b));
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`.idx` gives the indices of a range as a tile");
        TileSpan place = (left ? expr->a : expr->b)->span;
        if (!both)
            tile_diagnostic_edit(c->diagnostics, d, place, "%s.idx", tile_operand_text(c, left ? expr->a : expr->b));
        tile_report(c, d);
        return tile_error_meaning();
    }
    if (other->kind == TILE_MEANING_VALUE && other->rank && other->scalar == TILE_I64)
        return fail_tile_shift(c, other, left, expr);
    const TileSum *by = tile_integer_of(c, *other, (left ? expr->b : expr->a)->span, "what shifts a range", true);
    if (!by) return tile_error_meaning();
    if (op == TILE_TOKEN_STAR) return scale_range(c, range, by, span);
    if (op == TILE_TOKEN_PLUS) return add_to_range(c, range, by, span);
    if (left) return add_to_range(c, range, tile_sum_subtract(&c->sums, tile_sum_integer(&c->sums, 0), by), span);
    TileMeaning negated = scale_range(c, range, tile_sum_integer(&c->sums, -1), span);
    return add_to_range(c, negated.range, by, span);
}

/* ---- fields ---- */

static TileMeaning range_indices(TileChecker *c, const TileRange *range, TileSpan span) {
    tile_emit_at(c, span);
    int64_t lanes = tile_extent_value(c, range->size);
    const TileType *type = tile_type_tile(c->context, TILE_I64, 1, &lanes);
    TileValue *value = tile_build_iota(tile_emitter(c), type, 0);
    if (!tile_sum_is_literal(range->step, 1)) {
        TileValue *step = tile_emit_sum(c, range->step);
        value = tile_emit_binary(c, TILE_OP_MUL, value, tile_build_splat(tile_emitter(c), step, type));
    }
    if (!tile_sum_is_literal(range->first, 0)) {
        TileValue *first = tile_emit_sum(c, range->first);
        value = tile_emit_binary(c, TILE_OP_ADD, value, tile_build_splat(tile_emitter(c), first, type));
    }
    const TileValidity *valid = range->lanes ? tile_valid_add(c, NULL, range->lanes, (const int8_t[]){0}, span) : NULL;
    TileMeaning indices = tile_value_meaning(c, value, &range->size, valid);
    bool whole = range->lowest && range->highest && !tile_sum_may_fall(&c->sums, range->lowest) &&
                 !tile_sum_may_exceed(&c->sums, range->highest);
    if (whole) indices = tile_bounded(c, indices, (TileBounds){range->lowest, range->highest});
    indices.element = tile_element_of_range(c, range, &indices);
    return indices;
}

TileMeaning tile_range_field(TileChecker *c, const TileRange *range, const TileExpr *expr) {
    if (strcmp(expr->name, "start") == 0) return tile_sum_meaning(range->first);
    if (strcmp(expr->name, "size") == 0) return tile_sum_meaning(range->size);
    if (strcmp(expr->name, "idx") == 0) return range_indices(c, range, expr->span);
    if (strcmp(expr->name, "end") == 0 && range->end) return tile_sum_meaning(range->end);
    if (strcmp(expr->name, "end") == 0) return tile_fail(c, NO_FIELD, expr->op_span, "a strided range", "end");
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NO_FIELD, expr->op_span,
                                      "a range (which has start, size, end and idx)", expr->name);
    TileNearest nearest = tile_nearest(expr->name);
    tile_nearest_try(&nearest, "start");
    tile_nearest_try(&nearest, "size");
    if (range->end) tile_nearest_try(&nearest, "end");
    tile_nearest_try(&nearest, "idx");
    tile_propose_nearest(c, d, expr->op_span, &nearest);
    tile_report(c, d);
    return tile_error_meaning();
}
