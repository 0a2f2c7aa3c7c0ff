/* sort, argsort, topk. Elements that are not valid come behind all others. */
#include "parser/check/arguments.h"
#include "parser/check/bounds.h"
#include "parser/check/builtin.h"
#include "parser/check/emit.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/operand.h"
#include "parser/check/reduce.h"
#include "parser/check/report.h"
#include "parser/check/shape.h"
#include "parser/check/sort.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"

typedef struct Sort {
    const TileExpr *call;
    TileMeaning values[TILE_MAX_FOLD]; /* keys, and what moves with them */
    unsigned count, axis;
    bool descending;
    const TileSum *kept;       /* how many are wanted; NULL: all */
    const TileValidity *valid; /* of all values together */
} Sort;

/* ---- arguments ---- */

/* The axis that is named, or the last one. */
static bool read_axis(TileChecker *c, const TileExpr *call, const char *name, unsigned rank, unsigned *axis) {
    const TileExpr *expr = tile_named_argument(call, "axis");
    unsigned axes = 1u << (rank - 1);
    if (expr && !tile_check_axes_of(c, expr, rank, &axes)) return false;
    if (axes & (axes - 1)) return tile_fail(c, ONE_AXIS, call->span, name), false;
    *axis = (unsigned)__builtin_ctz(axes);
    return true;
}

/* `sort(v, 1)`: proposes `sort(v, axis = 1)`. */
static bool fail_axis(TileChecker *c, const TileExpr *call, const TileExpr *expr, const char *name) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BAD_RANK, expr->span, name, "at least 1", "a number");
    if (!tile_named_argument(call, "axis"))
        tile_diagnostic_edit(c->diagnostics, d, expr->span, "axis = %s", tile_span_text(c, expr->span));
    tile_report(c, d);
    return false;
}

static bool is_number(const TileExpr *expr) {
    return expr->kind == TILE_EXPR_INTEGER || (expr->kind == TILE_EXPR_UNARY && expr->a->kind == TILE_EXPR_INTEGER);
}

/* Keys and the tiles that move with them, of a common shape. */
static bool read_sort(TileChecker *c, const TileExpr *call, const char *name, unsigned count, Sort *s) {
    *s = (Sort){.call = call, .count = count};
    for (unsigned i = 0; i < count; i++) {
        const TileExpr *expr = tile_positional_argument(call, i);
        if (i && is_number(expr)) return fail_axis(c, call, expr, name);
        if (!tile_check_tile(c, expr, name, &s->values[i])) {
            TileDiagnostic *d = tile_reported_last(c, TILE_DIAGNOSTIC_BAD_RANK, expr->span);
            if (expr->kind == TILE_EXPR_BOOL)
                tile_diagnostic_edit(c->diagnostics, d, expr->span, "descending = %s", tile_span_text(c, expr->span));
            return false;
        }
    }
    tile_emit_at(c, call->span);
    if (!tile_unify_shapes(c, s->values, count, call->span)) return false;
    for (unsigned i = 0; i < count; i++) s->valid = tile_valid_union(c, s->valid, s->values[i].valid);
    return read_axis(c, call, name, s->values[0].rank, &s->axis);
}

/* ---- which lanes of a result are valid ---- */

/* Are the valid lanes the first ones already? */
static bool is_prefix(const TileValidity *valid) {
    for (unsigned i = 0; valid && i < valid->count; i++)
        if (valid->entries[i].atom->kind != TILE_ATOM_INTERVAL || valid->entries[i].atom->lo) return false;
    return true;
}

/* The axes along which what is not valid differs. */
static unsigned axes_of(const TileValidity *skipped) {
    unsigned axes = 0;
    for (unsigned i = 0; i < skipped->count; i++) {
        const TileValidEntry *entry = &skipped->entries[i];
        unsigned rank = entry->atom->kind == TILE_ATOM_MASK ? entry->atom->mask->type->rank : 1;
        for (unsigned k = 0; k < rank; k++)
            if (entry->axes[k] >= 0) axes |= 1u << entry->axes[k];
    }
    return axes;
}

/* As many lanes as were valid, from the first on: a mask along the line, the same for lines in which the same are valid. */
static const TileValidity *first_lanes(TileChecker *c, const Sort *s, const TileMeaning *shape, TileValue *mask, unsigned axes) {
    TileBuilder *b = tile_emitter(c);
    int64_t extent[TILE_MAX_TILE_RANK];
    int8_t map[TILE_MAX_TILE_RANK], own[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < TILE_MAX_TILE_RANK; i++) {
        map[i] = i == s->axis ? -1 : (int8_t)i;
        own[i] = axes >> i & 1u ? (int8_t)i : -1;
    }
    for (unsigned i = 0; i < shape->rank; i++) {
        if (own[i] < 0 && mask->type->extent[i] > 1) mask = tile_build_slice(b, mask, i, 0, 1);
        extent[i] = i == s->axis ? 1 : mask->type->extent[i];
    }
    TileValue *count = tile_build_reduce(b, tile_build_convert(b, mask, TILE_I32), TILE_KIND_SUM, s->axis);
    count = tile_build_reshape(b, count, shape->rank, extent);
    extent[s->axis] = tile_extent_value(c, shape->extent[s->axis]);
    TileValue *lane = tile_build_iota(b, tile_type_tile(c->context, TILE_I32, shape->rank, extent), s->axis);
    TileValue *inside = tile_build_binary(b, TILE_OP_LT, lane, tile_build_broadcast(b, count, extent));
    const char *words = "what is sorted behind the last element";
    TileAtom *atom = tile_atom_mask(c, inside, inside, NULL, NULL, s->call->span, words);
    TileSpan filled = s->count == 1 ? s->call->span : (TileSpan){0}; /* nothing fills a tuple */
    return tile_valid_add(c, tile_valid_map(c, s->valid, map), atom, own, filled);
}

/* The op; results[i] is valid where s says. */
static void emit_sort(TileChecker *c, const Sort *s, TileMeaning *results) {
    TileValue *operands[TILE_MAX_FOLD + 1], *mask = NULL;
    TileAttribute attributes[4] = {{.key = TILE_ATTRIBUTE_AXIS, .integer = s->axis}};
    static const int64_t part[] = {TILE_PARTS_MASK};
    unsigned count = s->count, attribute_count = 1;
    const TileValidity *skipped = tile_valid_select(c, s->valid, 1u << s->axis, false), *valid = s->valid;
    TileMeaning shape = s->values[0];
    for (unsigned i = 0; i < s->count; i++) operands[i] = tile_emit_value(c, &s->values[i]);
    if (skipped) operands[count++] = mask = tile_emit_valid(c, skipped, &s->values[0]);
    if (s->descending) attributes[attribute_count++] = (TileAttribute){.key = TILE_ATTRIBUTE_DESCENDING, .integer = 1};
    if (s->kept) {
        shape.extent[s->axis] = s->kept;
        attributes[attribute_count++] =
            (TileAttribute){.key = TILE_ATTRIBUTE_EXTENT, .integer = tile_extent_value(c, s->kept)};
    }
    if (mask)
        attributes[attribute_count++] =
            (TileAttribute){.key = TILE_ATTRIBUTE_PARTS, .integers = (int64_t *)(uintptr_t)part, .count = 1};
    if (mask && (s->kept || !is_prefix(skipped))) valid = first_lanes(c, s, &shape, mask, axes_of(skipped));
    tile_emit_at(c, s->call->span);
    TileOp *op =
        tile_build_op(tile_emitter(c), TILE_OP_SORT, operands, count, attributes, attribute_count, NULL, s->count);
    for (unsigned i = 0; i < s->count; i++)
        results[i] = tile_value_meaning(c, tile_op_result(op, i), shape.extent, valid);
}

static TileMeaning tuple_of(TileChecker *c, const TileMeaning *items, unsigned count) {
    TileMeaning tuple = {.kind = TILE_MEANING_TUPLE, .count = (uint8_t)count,
                         .items = TILE_NEW_ARRAY(c->arena, TileMeaning, count)};
    for (unsigned i = 0; i < count; i++) tuple.items[i] = items[i];
    return tuple;
}

/* Adds the lanes' numbers to what is sorted. */
static void add_numbers(TileChecker *c, Sort *s) {
    TileMeaning number = s->values[0];
    number.scalar = TILE_I64;
    number.value = tile_build_iota(tile_emitter(c), tile_meaning_type(c, &number), s->axis);
    s->values[s->count++] = number;
}

static TileMeaning bounded_numbers(TileChecker *c, const Sort *s, TileMeaning numbers) {
    const TileSum *last = tile_sum_subtract(&c->sums, s->values[0].extent[s->axis], tile_sum_integer(&c->sums, 1));
    return tile_bounded(c, numbers, (TileBounds){tile_sum_integer(&c->sums, 0), last});
}

/* ---- sort, argsort, topk ---- */

static const char *const sort_names[] = {"axis", "descending", NULL};

/* sort(keys), or (keys, v, ..) = sort(keys, v, ..) */
TileMeaning tile_check_sort(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    Sort s;
    TileMeaning results[TILE_MAX_FOLD];
    unsigned count = 0;
    if (!tile_check_arguments(c, call, 1, TILE_MAX_FOLD, sort_names)) return tile_error_meaning();
    for (size_t i = 0; i < call->arguments.count; i++) count += !call->arguments.items[i].name;
    if (!read_sort(c, call, builtin->name, count, &s) || !tile_check_flag(c, call, "descending", &s.descending))
        return tile_error_meaning();
    emit_sort(c, &s, results);
    return count == 1 ? results[0] : tuple_of(c, results, count);
}

TileMeaning tile_check_argsort(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    Sort s;
    TileMeaning results[TILE_MAX_FOLD];
    if (!tile_check_arguments(c, call, 1, 1, sort_names)) return tile_error_meaning();
    if (!read_sort(c, call, builtin->name, 1, &s) || !tile_check_flag(c, call, "descending", &s.descending))
        return tile_error_meaning();
    add_numbers(c, &s);
    emit_sort(c, &s, results);
    return bounded_numbers(c, &s, results[1]);
}

/* (values, indices) = topk(v, k): the first k of the descending order. */
TileMeaning tile_check_topk(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    Sort s;
    TileMeaning results[TILE_MAX_FOLD];
    if (!tile_check_arguments(c, call, 2, 2, (const char *const[]){"axis", NULL})) return tile_error_meaning();
    const TileExpr *expr = tile_positional_argument(call, 1);
    if (!read_sort(c, call, builtin->name, 1, &s)) return tile_error_meaning();
    s.kept = tile_check_extent(c, expr);
    if (!s.kept) return tile_error_meaning();
    const TileSum *extent = s.values[0].extent[s.axis];
    if (tile_extent_value(c, s.kept) > tile_extent_value(c, extent)) {
        tile_about_sum(c, s.kept);
        tile_about_sum(c, extent);
        return tile_fail(c, TOPK_COUNT, expr->span, (long long)tile_extent_value(c, s.kept),
                         (long long)tile_extent_value(c, extent));
    }
    s.descending = true;
    tile_emit_at(c, call->span);
    add_numbers(c, &s);
    emit_sort(c, &s, results);
    results[1] = bounded_numbers(c, &s, results[1]);
    return tuple_of(c, results, 2);
}
