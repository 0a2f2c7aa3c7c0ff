/* The entries of an index expression.
 *
 * An access has the operands of its op and the atoms of its validity: lanes of ranges beyond their limit, and indices
 * that are not proven to be in bounds of their dimension. */
#include "parser/check/access.h"
#include "parser/check/bounds.h"
#include "parser/check/claim.h"
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/lacks.h"
#include "parser/check/meaning.h"
#include "parser/check/meet.h"
#include "parser/check/names.h"
#include "parser/check/operand.h"
#include "parser/check/packed_access.h"
#include "parser/check/propose.h"
#include "parser/check/range.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"

#include <string.h>

/* ---- entries ---- */

/* Steps small enough that adding dimensions, or distances from them, does not overflow. */
static bool is_ordinary(int64_t step) { return step != 0 && step > -((int64_t)1 << 48) && step < (int64_t)1 << 48; }

/* The lanes of first + l * step in 0 .. dim, if the step is not large. */
static void inside_known(TileChecker *c, const TileRange *range, const TileSum *dim, int64_t step, TileAtom *atom) {
    TileSumTable *t = &c->sums;
    const TileSum *zero = tile_sum_integer(t, 0), *one = tile_sum_integer(t, 1);
    const TileSum *stride = tile_sum_integer(t, step > 0 ? step : -step), *lo, *hi;
    if (step > 0) {
        lo = tile_sum_divide_up(t, tile_sum_subtract(t, zero, range->first), stride);
        hi = tile_sum_divide_up(t, tile_sum_subtract(t, dim, range->first), stride);
    } else {
        lo = tile_sum_add(t, tile_sum_divide(t, tile_sum_subtract(t, range->first, dim), stride), one);
        hi = tile_sum_add(t, tile_sum_divide(t, range->first, stride), one);
    }
    lo = tile_sum_max(t, zero, lo);
    hi = tile_sum_min(t, range->size, hi);
    atom->lo = tile_sum_is_literal(lo, 0) ? NULL : lo;
    atom->hi = hi == range->size ? NULL : hi;
}

/* The same for any step: whatever the direction, and all lanes or none if the step is 0. Correct modulo 2^64, too:
 * where the bounds wrap, no lane is inside, or those are whose index wraps to one that is. */
static void inside_any(TileChecker *c, const TileRange *range, const TileSum *dim, TileAtom *atom) {
    TileValue *first = tile_emit_sum(c, range->first), *step = tile_emit_sum(c, range->step),
              *size = tile_emit_sum(c, range->size), *limit = tile_emit_sum(c, dim);
    TileValue *zero = tile_emit_sum(c, tile_sum_integer(&c->sums, 0)),
              *one = tile_emit_sum(c, tile_sum_integer(&c->sums, 1));
    TileValue *up = tile_emit_binary(c, TILE_OP_GT, step, zero), *flat = tile_emit_binary(c, TILE_OP_EQ, step, zero);
    TileValue *short_of = tile_emit_select(c, up, one, zero); /* the last lane before the dimension, for a positive
                                                               * step */
    TileValue *lanes[2], *ends[] = {zero, limit};
    for (unsigned i = 0; i < 2; i++) {
        TileValue *distance = tile_emit_binary(c, TILE_OP_SUB, ends[i], first);
        TileValue *before = tile_emit_binary(c, TILE_OP_SUB, distance, short_of);
        lanes[i] = tile_emit_binary(c, TILE_OP_ADD, tile_emit_binary(c, TILE_OP_DIV, before, step), one);
    }
    TileValue *inside = tile_emit_binary(c, TILE_OP_AND, tile_emit_binary(c, TILE_OP_GE, first, zero),
                                         tile_emit_binary(c, TILE_OP_LT, first, limit));
    TileValue *lo = tile_emit_select(c, flat, zero, tile_emit_select(c, up, lanes[0], lanes[1]));
    TileValue *hi =
        tile_emit_select(c, flat, tile_emit_select(c, inside, size, zero), tile_emit_select(c, up, lanes[1], lanes[0]));
    atom->lo = tile_scalar_meaning(c, tile_emit_binary(c, TILE_OP_MAX, zero, lo), NULL).sum;
    atom->hi = tile_scalar_meaning(c, tile_emit_binary(c, TILE_OP_MIN, size, hi), NULL).sum;
}

static void find_inside(TileChecker *c, const TileRange *range, const TileSum *dim, TileAtom *atom) {
    int64_t step;
    if (tile_sum_known(&c->sums, range->step, &step) && is_ordinary(step))
        inside_known(c, range, dim, step, atom);
    else
        inside_any(c, range, dim, atom);
}

static void add_interval(TileChecker *c, TileAccessed *access, unsigned d, const TileRange *range, TileSpan span) {
    const TileSum *dim = access->tensor->dims[d];
    int8_t axis[] = {(int8_t)access->rank};
    access->kinds[d] = TILE_ACCESS_RANGE;
    access->ranges[d] = range;
    access->axis_of[d] = (int)access->rank;
    access->extent[access->rank++] = range->size;
    if (range->lanes) access->valid = tile_valid_add(c, access->valid, range->lanes, axis, access->span);
    if (tile_proven_inside(c, range->lowest, range->highest, dim)) return;
    TileAtom atom = {
        .root = range->root, .first = range->first, .step = range->step, .dim = dim, .size = range->size, .span = span};
    if (!tile_atom_same(c, &atom)) {
        find_inside(c, range, dim, &atom);
        if (!atom.lo && !atom.hi) return;
    }
    bool unshifted = range->first == range->root->first && range->step == range->root->step;
    atom.birth = unshifted ? range->root->birth : range->birth;
    tile_keep_known(c, &atom, range->lowest, range->highest);
    access->valid = tile_valid_add(c, access->valid, tile_atom_interval(c, atom), axis, access->span);
}

static void add_range(TileChecker *c, TileAccessed *access, unsigned d, const TileRange *range, TileSpan span) {
    size_t hidden = tile_facts_hide(c);
    add_interval(c, access, d, range, span);
    tile_facts_restore(c, hidden);
}

/* Literals and constants of the file: the index is this number in every instance and every iteration. */
static bool is_written(TileChecker *c, const TileExpr *expr) {
    switch ((TileExprKind)expr->kind) {
    case TILE_EXPR_INTEGER: return true;
    case TILE_EXPR_UNARY: return is_written(c, expr->a);
    case TILE_EXPR_BINARY: return is_written(c, expr->a) && is_written(c, expr->b);
    case TILE_EXPR_NAME: return !tile_scope_find(c, expr->name) && tile_is_constant(c, c->frame->ast, expr->name);
    default: return false;
    }
}

/* An element that cannot exist: the access would have no effect wherever the kernel runs. */
static bool check_inside(TileChecker *c, const TileAccessed *access, unsigned d, const TileSum *index,
                         const TileExpr *entry) {
    const TileSum *dim = access->tensor->dims[d];
    bool below = index->constant < 0, above = dim->count == 0 && index->constant >= dim->constant;
    if (index->count || (!below && !above) || c->frame->parent || !is_written(c, entry)) return true;
    TileDiagnostic *diagnostic =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_INDEX_OUTSIDE, entry->span, (long long)index->constant,
                      tile_sum_words(c, dim), access->tensor->name);
    if (below) tile_diagnostic_note(c->diagnostics, diagnostic, (TileSpan){0}, "an index does not count from the end");
    const TileSum *meant = tile_sum_add(&c->sums, dim, below ? index : tile_sum_integer(&c->sums, -1));
    if (meant->count || meant->constant >= 0)
        tile_diagnostic_edit(c->diagnostics, diagnostic, entry->span, "%s", tile_sum_words(c, meant));
    tile_report(c, diagnostic);
    return false;
}

static void add_integer(TileChecker *c, TileAccessed *access, unsigned d, const TileMeaning *m, TileSpan span) {
    const TileSum *dim = access->tensor->dims[d];
    access->kinds[d] = TILE_ACCESS_INDEX;
    access->indices[d] = m->sum;
    access->poisoned[d] = m->valid != NULL;
    access->valid = tile_valid_union(c, access->valid, m->valid);
    if (tile_proven_inside(c, m->sum, m->sum, dim)) return;
    access->poisoned[d] = true;
    TileAtom *atom = tile_atom_condition(c, m->sum, dim, m->valid, span);
    size_t known = tile_claim_assume_chosen(c);
    bool chosen = c->sides.count && tile_proven_inside(c, m->sum, m->sum, dim);
    tile_keep_known(c, atom, m->sum, m->sum);
    tile_facts_restore(c, known);
    chosen = chosen || tile_chosen_never(c);
    const TileValidity **valid = chosen ? &access->chosen : &access->valid;
    *valid = tile_valid_add(c, *valid, atom, NULL, access->span);
}

/* Is the index in bounds of the dimension? */
TileValue *tile_access_index_mask(TileChecker *c, const TileMeaning *index, const TileSum *dim) {
    TileValue *value = index->value;
    TileValue *zero = tile_build_integer(tile_emitter(c), value->type, 0);
    TileValue *limit = tile_emit_sum(c, dim);
    limit = tile_build_splat(tile_emitter(c), limit, value->type);
    TileValue *ok = tile_emit_binary(c, TILE_OP_AND, tile_emit_binary(c, TILE_OP_GE, value, zero),
                                     tile_emit_binary(c, TILE_OP_LT, value, limit));
    return ok;
}

/* An invalid index becomes -1, which is out of bounds of every dimension. */
TileMeaning tile_access_sound_index(TileChecker *c, TileMeaning m) {
    if (!m.valid) return m;
    TileValue *sound = tile_emit_filled(c, &m, m.valid, tile_emit_sum(c, tile_sum_integer(&c->sums, -1)));
    return m.rank ? tile_value_meaning(c, sound, m.extent, m.valid) : tile_scalar_meaning(c, sound, m.valid);
}

static bool add_gather(TileChecker *c, TileAccessed *access, unsigned d, TileMeaning m, TileSpan span) {
    const TileSum *dim = access->tensor->dims[d];
    TileValue *key = m.value;
    access->agree[d] = tile_lanes_agree(&m, 0);
    m = tile_convert(c, m, TILE_I64, span);
    TileBounds bounds = tile_bounds_of(c, &m);
    const TileSum *element = tile_element_sum(c, &m);
    bool inside = tile_elements_inside(c, &m, dim), chosen = !inside && tile_chosen_inside(c, &m, dim);
    if (!inside) m = tile_access_sound_index(c, m);
    if (access->gather_axis < 0) {
        access->gather_axis = (int)access->rank;
        access->extent[access->rank++] = m.extent[0];
    } else if (access->extent[access->gather_axis] != m.extent[0]) {
        TileMeaning first = m;
        first.extent[0] = access->extent[access->gather_axis];
        tile_about_shapes(c, &first, &m);
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_SHAPE_MISMATCH, span,
                                          tile_meaning_words(c, &first), tile_meaning_words(c, &m));
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                             "index tiles of one access share an axis; `gather(%s, ..)` takes any that broadcast",
                             access->tensor->name);
        tile_report(c, d);
        return false;
    }
    access->kinds[d] = TILE_ACCESS_GATHER;
    access->gathers[d] = m.value;
    access->axis_of[d] = access->gather_axis;
    const int8_t map[] = {(int8_t)access->gather_axis};
    if (inside || chosen) /* only where the index itself is invalid there is no element */
        access->valid = tile_valid_union(c, access->valid, tile_valid_map(c, m.valid, map));
    if (inside) return true;
    TileAtom *atom = tile_atom_mask(c, tile_access_index_mask(c, &m, dim), key, dim, m.valid, span, NULL);
    if (chosen) {
        access->chosen = tile_valid_add(c, access->chosen, atom, map, access->span);
        return true;
    }
    size_t known = tile_claim_assume_chosen(c);
    tile_keep_known(c, atom, element ? element : bounds.lowest, element ? element : bounds.highest);
    tile_facts_restore(c, known);
    access->implied = tile_valid_union(c, access->implied, tile_valid_map(c, m.valid, map));
    access->valid = tile_valid_add(c, access->valid, atom, map, access->span);
    return true;
}

/* `x[a..a + B]` is a slice elsewhere; here a span of so many indices. */
static bool fail_bounds(TileChecker *c, const TileExpr *entry, const TileMeaning *m) {
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_INTEGER, entry->span, "an index", tile_meaning_words(c, m));
    tile_diagnostic_note(
        c->diagnostics, d, (TileSpan){0},
        "`span(a, B)` are the B indices from a on, and of `span(a..b, B)` those below b; B is a constant");
    const TileExpr *low = entry->a, *high = entry->b;
    bool sum = high && high->kind == TILE_EXPR_BINARY && high->op == TILE_TOKEN_PLUS;
    bool sized = sum && (high->b->kind == TILE_EXPR_NAME || high->b->kind == TILE_EXPR_INTEGER) &&
                 strcmp(tile_span_text(c, low->span), tile_span_text(c, high->a->span)) == 0;
    if (sized)
        tile_diagnostic_edit(c->diagnostics, d, entry->span, "span(%s, %s)", tile_span_text(c, low->span),
                             tile_span_text(c, high->b->span));
    tile_report(c, d);
    return false;
}

/* `:` is a range, whose size is an extent of a tile: no type has one of 0, as a static dimension of a launch may be. */
static bool add_whole(TileChecker *c, TileAccessed *access, unsigned d, TileSpan span) {
    const TileTensor *tensor = access->tensor;
    const TileSum *dim = tensor->dims[d];
    int64_t extent;
    if (!tile_sum_known(&c->sums, dim, &extent)) {
        tile_about_unknown(c, dim);
        TileDiagnostic *diagnostic = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_STATIC, span, tile_sum_words(c, dim));
        tile_diagnostic_note(c->diagnostics, diagnostic, tensor->span,
                             "add the clause `static %s` to the kernel, or index with a range of tiles",
                             tile_sum_words(c, dim));
        tile_propose_static(c, diagnostic, tile_sum_words(c, dim));
        tile_report(c, diagnostic);
        return false;
    }
    if (extent < 1 || extent > TILE_MAX_TILE_EXTENT) {
        tile_about_sum(c, dim);
        TileDiagnostic *diagnostic = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BAD_EXTENT, span, (long long)extent,
                                                   (int)TILE_MAX_TILE_EXTENT);
        tile_diagnostic_note(c->diagnostics, diagnostic, tensor->span, "`:` takes all of dimension %u of %s", d - tensor->own,
                             tensor->name);
        tile_report(c, diagnostic);
        return false;
    }
    TileMeaning whole = tile_whole_range(c, dim, span);
    add_range(c, access, d, whole.range, span);
    return true;
}

/* Of a tile of several axes as an index: what is meant, whole where the tensor has one dimension. */
static bool fail_index_rank(TileChecker *c, const TileTensor *tensor, const TileExpr *entry, const TileMeaning *m) {
    const char *index = tile_span_text(c, entry->span);
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BAD_RANK, entry->span, index,
                                      "1 as an index (`gather` takes any)", tile_meaning_words(c, m));
    bool one = tensor->rank - tensor->own == 1;
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                         "`gather(%s, %s)` loads one element for each index of a tile of any rank, `scatter(%s, v, %s)` stores so",
                         tensor->name, one ? index : "..", tensor->name, one ? index : "..");
    tile_report(c, d);
    return false;
}

static bool add_entry(TileChecker *c, TileAccessed *access, unsigned d, const TileExpr *entry) {
    bool full = access->rank == TILE_MAX_TILE_RANK;
    if (entry->kind == TILE_EXPR_COLON) {
        if (full) return tile_fail(c, RANK_LIMIT, entry->span, (int)TILE_MAX_TILE_RANK), false;
        return add_whole(c, access, d, entry->span);
    }
    if (entry->kind == TILE_EXPR_NEWAXIS) return tile_fail(c, NEWAXIS_TENSOR, entry->span), false;
    TileMeaning m = access->given ? access->given[d - access->tensor->own] : tile_check_expr(c, entry);
    if (tile_is_error(&m)) return false;
    if (m.kind == TILE_MEANING_RANGE) {
        if (full) return tile_fail(c, RANK_LIMIT, entry->span, (int)TILE_MAX_TILE_RANK), false;
        add_range(c, access, d, m.range, entry->span);
        return true;
    }
    bool tile = m.kind == TILE_MEANING_VALUE && m.rank > 0 && tile_scalar_is_int((TileScalar)m.scalar);
    if (tile && m.rank == 1 && full && access->gather_axis < 0)
        return tile_fail(c, RANK_LIMIT, entry->span, (int)TILE_MAX_TILE_RANK), false;
    if (tile && m.rank == 1) return add_gather(c, access, d, m, entry->span);
    if (tile) return fail_index_rank(c, access->tensor, entry, &m);
    if (m.kind == TILE_MEANING_DOTS) return fail_bounds(c, entry, &m);
    TileMeaning index = m;
    index.valid = NULL;
    const TileSum *sum = tile_integer_of(c, index, entry->span, "an index", false);
    if (!sum || !check_inside(c, access, d, sum, entry)) return false;
    index = tile_sum_meaning(sum);
    index.valid = m.valid;
    add_integer(c, access, d, &index, entry->span);
    return true;
}

bool tile_access_check_entries(TileChecker *c, const TileExpr *expr, TileAccessed *access) {
    const TileTensor *tensor = access->tensor;
    if (expr->items.count != tensor->rank - tensor->own) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_ENTRY_COUNT, expr->span, tensor->name,
                                          tile_count_words(c, tensor->rank - tensor->own, "dimension", "dimensions"),
                                          tile_count_words(c, expr->items.count, "entry", "entries"));
        size_t given = expr->items.count, wanted = tensor->rank - tensor->own;
        bool whole = given > 0 && given < wanted;
        TileText rest = {.arena = c->arena};
        for (size_t d2 = given; whole && d2 < wanted; d2++) {
            int64_t extent;
            whole = tile_sum_known(&c->sums, tensor->dims[tensor->own + d2], &extent);
            tile_text_add(&rest, ", :");
        }
        if (whole) {
            TileSpan bracket = {expr->span.file, expr->span.end - 1, expr->span.end};
            tile_diagnostic_edit(c->diagnostics, d, bracket, "%s]", tile_text_get(&rest));
        }
        if (given > 0 && given < wanted && !whole)
            tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                                 "each dimension has an entry; `:` takes all of one that is known at compile time, as the clause `static` makes it");
        if (tensor->rank == tensor->own) tile_diagnostic_edit(c->diagnostics, d, expr->span, "%s[]", tensor->name);
        tile_report(c, d);
        return false;
    }
    bool ok = true;
    access->gather_axis = -1;
    for (unsigned d = 0; d < tensor->own; d++) {
        access->kinds[d] = TILE_ACCESS_INDEX;
        access->indices[d] = c->programs[d];
    }
    for (unsigned d = tensor->own; d < tensor->rank; d++)
        ok = add_entry(c, access, d, expr->items.items[d - tensor->own]) && ok;
    if (ok && tensor->format) ok = tile_packed_check_entries(c, access, expr->items.items[expr->items.count - 1]);
    return ok;
}

/* ---- operands ---- */

void tile_access_push(TileAccessOperands *operands, TileValue *value) { operands->items[operands->count++] = value; }

/* All lanes of a range with step 0 store to one element, and the last one wins: so only that one stores. */
static TileValue *last_of_one_place(TileChecker *c, const TileRange *range, TileValue *low, TileValue *high) {
    int64_t step;
    if (tile_sum_known(&c->sums, range->step, &step) && step != 0) return low;
    const TileSum *zero = tile_sum_integer(&c->sums, 0), *one = tile_sum_integer(&c->sums, 1);
    TileValue *flat = tile_emit_binary(c, TILE_OP_EQ, tile_emit_sum(c, range->step), tile_emit_sum(c, zero));
    TileValue *last = tile_emit_binary(c, TILE_OP_SUB, high, tile_emit_sum(c, one));
    return tile_emit_select(c, flat, tile_emit_binary(c, TILE_OP_MAX, low, last), low);
}

/* Conditions make the range of axis 0 empty, as in a fill; without a range they are joined to the mask. `valid` may
 * have more atoms than the access: of a store with `else skip`. */
void tile_access_add_operands(TileChecker *c, const TileAccessed *access, const TileValidity *valid,
                              TileAccessOperands *operands) {
    const TileSum *zero = tile_sum_integer(&c->sums, 0);
    TileValue *conditions = tile_emit_conditions(c, valid);
    TileValue *pending = conditions;
    for (unsigned d = 0; d < access->tensor->rank; d++) {
        if (access->kinds[d] == TILE_ACCESS_INDEX) {
            TileValue *index = tile_emit_sum(c, access->indices[d]);
            if (access->poisoned[d] && conditions)
                index = tile_emit_select(c, conditions, index, tile_emit_sum(c, zero));
            tile_access_push(operands, index);
        } else if (access->kinds[d] == TILE_ACCESS_GATHER) {
            tile_access_push(operands, access->gathers[d]);
        } else {
            const TileRange *range = access->ranges[d];
            const TileSum *lo, *hi;
            tile_valid_bounds(c, valid, access->axis_of[d], &lo, &hi);
            if (access->halved && d + 1 == access->tensor->rank) {
                if (lo) lo = tile_sum_half(&c->sums, lo);
                if (hi) hi = tile_sum_half(&c->sums, tile_sum_add(&c->sums, hi, tile_sum_integer(&c->sums, 1)));
            }
            tile_access_push(operands, tile_emit_sum(c, range->first));
            tile_access_push(operands, tile_emit_sum(c, range->step));
            TileValue *low = tile_emit_sum(c, lo ? lo : zero), *high = tile_emit_sum(c, hi ? hi : range->size);
            tile_access_push(operands, access->stores ? last_of_one_place(c, range, low, high) : low);
            if (pending && access->axis_of[d] == 0) {
                high = tile_emit_select(c, pending, high, tile_emit_sum(c, zero));
                pending = NULL;
            }
            tile_access_push(operands, high);
        }
    }
    TileMeaning shape = {.kind = TILE_MEANING_VALUE, .scalar = TILE_BOOL, .rank = (uint8_t)access->rank};
    memcpy(shape.extent, access->extent, sizeof access->extent);
    /* A gathered axis has no range for intervals, so they are joined to the mask. */
    unsigned gathered = access->gather_axis >= 0 ? 1u << access->gather_axis : 0;
    const TileValidity *masked =
        tile_valid_union(c, tile_valid_masks(c, valid), tile_valid_select(c, valid, gathered, false));
    TileValue *mask = tile_emit_valid(c, masked, &shape);
    if (pending) {
        TileValue *all =
            access->rank ? tile_build_splat(tile_emitter(c), pending, tile_meaning_type(c, &shape)) : pending;
        mask = mask ? tile_emit_binary(c, TILE_OP_AND, all, mask) : all;
    }
    if (!mask) return;
    tile_access_push(operands, mask);
    operands->parts[operands->part_count++] = TILE_PARTS_MASK;
}

unsigned tile_access_attributes(const TileAccessed *access, const TileAccessOperands *operands,
                                TileAttribute *attributes) {
    attributes[0] =
        (TileAttribute){.key = TILE_ATTRIBUTE_ACCESS, .count = access->tensor->rank, .integers = access->kinds};
    attributes[1] =
        (TileAttribute){.key = TILE_ATTRIBUTE_PARTS, .count = operands->part_count, .integers = operands->parts};
    return operands->part_count ? 2 : 1;
}

/* `y[n, m] = x[m, n]`: all that lacks is that the axes are exchanged. */
static bool propose_transpose(TileChecker *c, TileDiagnostic *d, const TileAccessed *access, const TileMeaning *value,
                              const TileExpr *expr) {
    const int8_t exchanged[] = {1, 0};
    if (value->rank != 2 || !tile_extents_agree(value->extent[0], access->extent[1]) ||
        !tile_extents_agree(value->extent[1], access->extent[0]))
        return false;
    const TileValidity *within = tile_valid_union(c, access->valid, access->implied);
    if (tile_valid_missing(tile_valid_map(c, value->valid, exchanged), within)) return false;
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "the axes of the value are those of the destination, exchanged");
    tile_diagnostic_edit(c->diagnostics, d, expr->span, "%s.T", tile_operand_text(c, expr));
    return true;
}

/* Is the value valid wherever the destination is? Else, if `skip` is given, `valid` becomes the conjunction of both. */
bool tile_access_check_covers(TileChecker *c, const TileAccessed *access, const TileMeaning *value,
                              const TileExpr *expr, bool skip, const TileValidity **valid) {
    const TileValidity *within = tile_valid_union(c, access->valid, access->implied);
    const TileValidEntry *missing = tile_valid_missing(value->valid, within);
    if (missing) missing = tile_valid_missing(tile_valid_settled(c, value->valid), within);
    if (missing && !skip) {
        tile_about_atom(c, missing->atom);
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_INVALID_STORE, expr->span,
                                          access->tensor->name, tile_atom_words(c, missing->atom));
        tile_diagnostic_note(c->diagnostics, d, missing->atom->span,
                             "what may be invalid begins here; `else skip` leaves those elements as they were");
        tile_note_lacks(c, d, missing->atom);
        if (propose_transpose(c, d, access, value, expr)) return tile_report(c, d), false;
        TileSpan place = missing->where.file ? tile_filled_place(expr, missing->where) : expr->span;
        tile_diagnostic_edit(c->diagnostics, d, place, "(%s else 0)", tile_span_text(c, place));
        tile_report(c, d);
        return false;
    }
    if (missing) *valid = tile_valid_union(c, *valid, value->valid);
    return true;
}
