/* Atoms of validity: where a value must not be used, and ops that compute that. */
#include "parser/check/bounds.h"
#include "parser/check/emit.h"
#include "parser/check/lacks.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/stand_in.h"
#include "parser/check/validity.h"

#include <string.h>

/* ---- atoms ---- */

/* Equal affine expressions of one range have the same atom, as long as the first of them is in scope. */
TileAtom *tile_atom_same(const TileChecker *c, const TileAtom *atom) {
    for (size_t i = c->atoms.count; i-- > 0;) {
        TileAtom *other = c->atoms.items[i];
        if (other->kind == TILE_ATOM_INTERVAL && other->root == atom->root && other->first == atom->first &&
            other->step == atom->step && other->dim == atom->dim)
            return other;
    }
    return NULL;
}

TileAtom *tile_atom_interval(TileChecker *c, TileAtom atom) {
    TileAtom *same = tile_atom_same(c, &atom);
    if (same) return same;
    TileAtom *made = tile_arena_copy(c->arena, &atom, sizeof atom);
    made->kind = TILE_ATOM_INTERVAL;
    if (!made->birth) made->birth = tile_now(c);
    tile_list_push(c->arena, &c->atoms, made);
    return made;
}

TileAtom *tile_atom_condition(TileChecker *c, const TileSum *index, const TileSum *dim, const TileValidity *guard,
                              TileSpan span) {
    for (size_t i = c->atoms.count; i-- > 0;) {
        TileAtom *other = c->atoms.items[i];
        if (other->kind == TILE_ATOM_CONDITION && other->index == index && other->dim == dim && !other->of)
            return other;
    }
    TileAtom *atom = TILE_NEW(c->arena, TileAtom);
    *atom = (TileAtom){
        .kind = TILE_ATOM_CONDITION, .birth = tile_now(c), .index = index, .dim = dim, .guard = guard, .span = span};
    tile_list_push(c->arena, &c->atoms, atom);
    return atom;
}

/* ---- sets ---- */

static unsigned axis_count(const TileAtom *atom) {
    switch (atom->kind) {
    case TILE_ATOM_INTERVAL: return 1;
    case TILE_ATOM_CONDITION: return 0;
    case TILE_ATOM_MASK: return atom->mask->type->rank;
    }
    return 0;
}

/* Atoms are forgotten at the end of their scope; one that is created again, as when a loop's body is checked again, is
 * the same. */
static bool same_atom(const TileAtom *a, const TileAtom *b) {
    if (a == b) return true;
    if (a->kind != b->kind || a->kind == TILE_ATOM_MASK || a->dim != b->dim) return false;
    if (a->of || b->of) return a->of && b->of && same_atom(a->of, b->of);
    if (a->kind == TILE_ATOM_CONDITION) return a->index == b->index;
    return a->root == b->root && a->first == b->first && a->step == b->step;
}

static bool same_entry(const TileValidEntry *a, const TileValidEntry *b) {
    return same_atom(a->atom, b->atom) && memcmp(a->axes, b->axes, axis_count(a->atom)) == 0;
}

bool tile_valid_has(const TileValidity *valid, const TileValidEntry *entry) {
    for (unsigned i = 0; valid && i < valid->count; i++)
        if (same_entry(&valid->entries[i], entry)) return true;
    return false;
}

static TileValidity *copy_set(TileChecker *c, const TileValidity *valid, unsigned more) {
    unsigned count = valid ? valid->count : 0;
    tile_spend(c, (count + more) / 8); /* a chain of values that each add an atom takes time, too */
    TileValidity *copy = tile_arena_alloc(c->arena, sizeof *copy + (count + more) * sizeof(TileValidEntry));
    copy->count = count;
    if (count) memcpy(copy->entries, valid->entries, count * sizeof(TileValidEntry));
    return copy;
}

const TileValidity *tile_valid_add(TileChecker *c, const TileValidity *valid, TileAtom *atom, const int8_t *axes,
                                   TileSpan where) {
    TileValidEntry entry = {.atom = atom, .where = where};
    if (axes) memcpy(entry.axes, axes, axis_count(atom));
    if (tile_valid_has(valid, &entry)) return valid;
    TileValidity *copy = copy_set(c, valid, 1);
    copy->entries[copy->count++] = entry;
    return copy;
}

const TileValidity *tile_valid_union(TileChecker *c, const TileValidity *a, const TileValidity *b) {
    if (!b || a == b) return a;
    if (!a) return b;
    TileValidity *joined = copy_set(c, a, b->count);
    tile_spend(c, (size_t)a->count * b->count / 64);
    for (unsigned i = 0; i < b->count; i++)
        if (!tile_valid_has(a, &b->entries[i])) joined->entries[joined->count++] = b->entries[i];
    return joined->count == a->count ? a : joined;
}

const TileValidity *tile_valid_map(TileChecker *c, const TileValidity *valid, const int8_t *map) {
    if (!valid) return NULL;
    TileValidity *mapped = copy_set(c, valid, 0);
    mapped->count = 0;
    for (unsigned i = 0; i < valid->count; i++) {
        TileValidEntry entry = valid->entries[i];
        bool dropped = false;
        for (unsigned k = 0; k < axis_count(entry.atom); k++) {
            if (entry.axes[k] < 0) continue;
            entry.axes[k] = map[entry.axes[k]];
            dropped = dropped || entry.axes[k] < 0;
        }
        if (!dropped) mapped->entries[mapped->count++] = entry;
    }
    return mapped->count ? mapped : NULL;
}

static TileAtom *stretched_atom(TileChecker *c, TileAtom *of) {
    tile_spend(c, c->atoms.count / 64);
    for (size_t i = c->atoms.count; i-- > 0;)
        if (c->atoms.items[i]->of == of) return c->atoms.items[i];
    TileAtom *atom = tile_arena_copy(c->arena, of, sizeof *of);
    atom->kind = TILE_ATOM_CONDITION;
    atom->of = of;
    atom->cache = 0;
    tile_list_push(c->arena, &c->atoms, atom);
    return atom;
}

static bool has_axis(const TileValidEntry *entry) {
    for (unsigned k = 0; k < axis_count(entry->atom); k++)
        if (entry->axes[k] >= 0) return true;
    return false;
}

/* An interval over an axis of extent 1 that is broadcast becomes a condition; a mask loses the axis, and becomes a
 * condition when that was its last one. */
const TileValidity *tile_valid_stretch(TileChecker *c, const TileValidity *valid, unsigned axes) {
    if (!valid) return NULL;
    TileValidity *result = copy_set(c, valid, 0);
    for (unsigned i = 0; i < result->count; i++) {
        TileValidEntry *entry = &result->entries[i];
        if (entry->atom->kind == TILE_ATOM_MASK) {
            for (unsigned k = 0; k < axis_count(entry->atom); k++)
                if (entry->axes[k] >= 0 && (axes >> entry->axes[k] & 1)) entry->axes[k] = -1;
            if (!has_axis(entry)) entry->atom = stretched_atom(c, entry->atom);
        } else if (entry->atom->kind == TILE_ATOM_INTERVAL && (axes >> entry->axes[0] & 1)) {
            entry->atom = stretched_atom(c, entry->atom);
        }
    }
    return result;
}

static bool touches(const TileValidEntry *entry, unsigned axes) {
    for (unsigned k = 0; k < axis_count(entry->atom); k++)
        if (entry->axes[k] >= 0 && (axes >> entry->axes[k] & 1)) return true;
    return false;
}

bool tile_valid_touches(const TileValidity *valid, unsigned axes) {
    for (unsigned i = 0; valid && i < valid->count; i++)
        if (touches(&valid->entries[i], axes)) return true;
    return false;
}

const TileValidity *tile_valid_select(TileChecker *c, const TileValidity *valid, unsigned axes, bool conditions) {
    if (!valid) return NULL;
    TileValidity *result = copy_set(c, valid, 0);
    result->count = 0;
    for (unsigned i = 0; i < valid->count; i++) {
        bool condition = valid->entries[i].atom->kind == TILE_ATOM_CONDITION;
        if (condition ? conditions : touches(&valid->entries[i], axes))
            result->entries[result->count++] = valid->entries[i];
    }
    return result->count ? result : NULL;
}

const TileValidity *tile_valid_masks(TileChecker *c, const TileValidity *valid) {
    if (!valid) return NULL;
    TileValidity *result = copy_set(c, valid, 0);
    result->count = 0;
    for (unsigned i = 0; i < valid->count; i++)
        if (valid->entries[i].atom->kind == TILE_ATOM_MASK) result->entries[result->count++] = valid->entries[i];
    return result->count ? result : NULL;
}

/* Of a scalar, or of a tile, none of whose axes was stretched. */
static bool is_index(const TileValidEntry *entry) {
    const TileAtom *atom = entry->atom;
    bool gathers = atom->kind == TILE_ATOM_MASK;
    for (unsigned k = 0; gathers && k < axis_count(atom); k++) gathers = entry->axes[k] >= 0;
    return !atom->of && atom->dim && (atom->kind == TILE_ATOM_CONDITION || gathers);
}

/* Is the index, or each of the index tile, inside here? Ranges may be loaded elsewhere: what is known here does not
 * count. */
static bool holds_here(TileChecker *c, const TileValidEntry *entry) {
    const TileAtom *atom = entry->atom;
    return is_index(entry) && tile_required_inside(c, atom->lowest, atom->highest, atom->dim);
}

/* Where such an index itself is valid. */
static const TileValidity *guard_of(TileChecker *c, const TileValidEntry *entry) {
    const TileValidity *guard = entry->atom->guard;
    return entry->atom->kind == TILE_ATOM_MASK ? tile_valid_map(c, guard, entry->axes) : guard;
}

const TileValidity *tile_valid_settled(TileChecker *c, const TileValidity *valid) {
    const TileValidity *left = NULL;
    bool any = false;
    for (unsigned i = 0; valid && i < valid->count; i++) {
        const TileValidEntry *entry = &valid->entries[i];
        bool holds = holds_here(c, entry);
        any = any || holds;
        left = holds ? tile_valid_union(c, left, tile_valid_settled(c, guard_of(c, entry)))
                     : tile_valid_add(c, left, entry->atom, entry->axes, entry->where);
    }
    return any ? left : valid;
}

const TileValidity *tile_valid_implied(TileChecker *c, const TileValidity *valid) {
    const TileValidity *all = valid;
    for (unsigned i = 0; valid && i < valid->count; i++) {
        const TileValidEntry *entry = &valid->entries[i];
        if (is_index(entry)) all = tile_valid_union(c, all, guard_of(c, entry));
    }
    return all;
}

const TileValidEntry *tile_valid_missing(const TileValidity *valid, const TileValidity *within) {
    const TileValidEntry *open = NULL;
    for (unsigned i = 0; valid && i < valid->count; i++) {
        if (tile_valid_has(within, &valid->entries[i])) continue;
        if (!tile_is_open_atom(valid->entries[i].atom)) return &valid->entries[i];
        if (!open) open = &valid->entries[i];
    }
    return open;
}

static bool same_set(const TileValidity *a, const TileValidity *b) {
    return !tile_valid_missing(a, b) && !tile_valid_missing(b, a);
}

TileAtom *tile_atom_mask(TileChecker *c, TileValue *mask, TileValue *key, const TileSum *dim, const TileValidity *guard,
                         TileSpan span, const char *words) {
    tile_spend(c, c->atoms.count / 64);
    for (size_t i = c->atoms.count; i-- > 0;) {
        TileAtom *other = c->atoms.items[i];
        if (other->kind == TILE_ATOM_MASK && other->key == key && other->dim == dim && same_set(other->guard, guard))
            return other;
    }
    TileAtom *atom = TILE_NEW(c->arena, TileAtom);
    *atom = (TileAtom){.kind = TILE_ATOM_MASK,
                       .birth = tile_now(c),
                       .mask = mask,
                       .key = key,
                       .dim = dim,
                       .guard = guard,
                       .span = span,
                       .words = words};
    tile_list_push(c->arena, &c->atoms, atom);
    return atom;
}

const char *tile_atom_words(TileChecker *c, const TileAtom *atom) {
    static const char *const forms[] = {[TILE_ATOM_INTERVAL] = "the lanes of `%s` outside 0..%s",
                                        [TILE_ATOM_CONDITION] = "the index `%s` outside 0..%s",
                                        [TILE_ATOM_MASK] = "the indices `%s` outside 0..%s"};
    if (atom->of) atom = atom->of;
    if (atom->dim)
        return tile_arena_format(c->arena, forms[atom->kind], tile_span_text(c, atom->span),
                                 tile_sum_words(c, atom->dim));
    if (atom->kind == TILE_ATOM_MASK) return atom->words;
    const char *name = atom->root->name ? tile_arena_format(c->arena, " of `%s`", atom->root->name) : "";
    return tile_arena_format(c->arena, "the lanes%s past %s", name, tile_sum_words(c, atom->limit));
}

/* ---- emission of ops ---- */

void tile_valid_bounds(TileChecker *c, const TileValidity *valid, int axis, const TileSum **lo, const TileSum **hi) {
    *lo = *hi = NULL;
    for (unsigned i = 0; valid && i < valid->count; i++) {
        const TileValidEntry *entry = &valid->entries[i];
        if (entry->atom->kind != TILE_ATOM_INTERVAL || entry->axes[0] != axis) continue;
        const TileSum *low = entry->atom->lo, *high = entry->atom->hi;
        if (low) *lo = *lo ? tile_sum_max(&c->sums, *lo, low) : low;
        if (high) *hi = *hi ? tile_sum_min(&c->sums, *hi, high) : high;
    }
}

static TileValue *emit_both(TileChecker *c, TileValue *a, TileValue *b) {
    if (!a || !b) return a ? a : b;
    return tile_emit_binary(c, TILE_OP_AND, a, b);
}

static TileValue *emit_condition(TileChecker *c, TileAtom *atom) {
    TileValue *cached = tile_cache_get(c, atom, atom->cache);
    if (cached) return cached;
    const TileSum *zero = tile_sum_integer(&c->sums, 0);
    TileValue *ok = NULL;
    if (atom->of && atom->of->kind == TILE_ATOM_MASK) {
        ok = atom->mask;
        for (unsigned axis = atom->mask->type->rank; axis-- > 0;)
            ok = tile_build_reduce(tile_emitter(c), ok, TILE_KIND_ANY, axis);
    } else if (atom->of) {
        const TileSum *low = atom->lo ? atom->lo : zero, *high = atom->hi ? atom->hi : tile_sum_integer(&c->sums, 1);
        ok = tile_emit_binary(c, TILE_OP_LT, tile_emit_sum(c, low), tile_emit_sum(c, high));
    } else {
        TileValue *index = tile_emit_sum(c, atom->index);
        TileValue *sound = tile_emit_conditions(c, atom->guard);
        if (sound) index = tile_emit_select(c, sound, index, tile_emit_sum(c, tile_sum_integer(&c->sums, -1)));
        if (sound || !tile_sum_at_most(&c->sums, zero, atom->index))
            ok = tile_emit_binary(c, TILE_OP_GE, index, tile_emit_sum(c, zero));
        const TileSum *last = tile_sum_subtract(&c->sums, atom->dim, tile_sum_integer(&c->sums, 1));
        if (!ok || !tile_sum_at_most(&c->sums, atom->index, last))
            ok = emit_both(c, ok, tile_emit_binary(c, TILE_OP_LT, index, tile_emit_sum(c, atom->dim)));
    }
    tile_cache_set(c, atom, &atom->cache, ok);
    return ok;
}

TileValue *tile_emit_conditions(TileChecker *c, const TileValidity *valid) {
    TileValue *all = NULL;
    for (unsigned i = 0; valid && i < valid->count; i++)
        if (valid->entries[i].atom->kind == TILE_ATOM_CONDITION)
            all = emit_both(c, all, emit_condition(c, valid->entries[i].atom));
    return all;
}

/* A mask over some axes, permuted and broadcast to a shape. */
static TileValue *shape_mask(TileChecker *c, const TileValidEntry *entry, const TileMeaning *shape) {
    TileValue *mask = entry->atom->mask;
    int64_t order[TILE_MAX_TILE_RANK], extent[TILE_MAX_TILE_RANK], target[TILE_MAX_TILE_RANK];
    unsigned rank = mask->type->rank, next = 0;
    for (unsigned k = 0; k < rank; k++)
        if (entry->axes[k] < 0) order[next++] = k; /* of extent 1: their order does not matter */
    for (int axis = 0; axis < shape->rank; axis++) {
        target[axis] = tile_extent_value(c, shape->extent[axis]);
        extent[axis] = 1;
        for (unsigned k = 0; k < rank; k++) {
            if (entry->axes[k] != axis) continue;
            order[next++] = k;
            extent[axis] = mask->type->extent[k];
        }
    }
    bool moved = false;
    for (unsigned k = 0; k < rank; k++) moved = moved || order[k] != k;
    if (moved) mask = tile_build_permute(tile_emitter(c), mask, order);
    const TileType *small = tile_type_tile(c->context, TILE_BOOL, shape->rank, extent);
    if (mask->type != small) mask = tile_build_reshape(tile_emitter(c), mask, shape->rank, extent);
    const TileType *full = tile_type_tile(c->context, TILE_BOOL, shape->rank, target);
    return mask->type == full ? mask : tile_build_broadcast(tile_emitter(c), mask, target);
}

TileValue *tile_emit_masks(TileChecker *c, const TileValidity *valid, const TileMeaning *shape) {
    TileValue *all = NULL;
    for (unsigned i = 0; valid && i < valid->count; i++)
        if (valid->entries[i].atom->kind == TILE_ATOM_MASK)
            all = emit_both(c, all, shape_mask(c, &valid->entries[i], shape));
    return all;
}

/* Lanes lo .. hi of an axis, as a bool tile of the shape. */
static TileValue *emit_interval_mask(TileChecker *c, const TileMeaning *shape, unsigned axis, const TileSum *lo,
                                     const TileSum *hi) {
    TileMeaning lanes = *shape;
    lanes.scalar = TILE_I64;
    const TileType *type = tile_meaning_type(c, &lanes);
    TileValue *lane = tile_build_iota(tile_emitter(c), type, axis), *ok = NULL;
    if (lo) {
        TileValue *low = tile_emit_sum(c, lo);
        ok = tile_emit_binary(c, TILE_OP_GE, lane, tile_build_splat(tile_emitter(c), low, type));
    }
    if (hi) {
        TileValue *high = tile_emit_sum(c, hi);
        ok = emit_both(c, ok, tile_emit_binary(c, TILE_OP_LT, lane, tile_build_splat(tile_emitter(c), high, type)));
    }
    return ok;
}

TileValue *tile_emit_valid(TileChecker *c, const TileValidity *valid, const TileMeaning *shape) {
    if (!valid) return NULL;
    TileValue *all = tile_emit_conditions(c, valid);
    if (shape->rank == 0) return all;
    TileMeaning bools = *shape;
    bools.scalar = TILE_BOOL;
    if (all) all = tile_build_splat(tile_emitter(c), all, tile_meaning_type(c, &bools));
    all = emit_both(c, all, tile_emit_masks(c, valid, shape));
    for (unsigned axis = 0; axis < shape->rank; axis++) {
        const TileSum *lo, *hi;
        tile_valid_bounds(c, valid, (int)axis, &lo, &hi);
        all = emit_both(c, all, emit_interval_mask(c, shape, axis, lo, hi));
    }
    return all;
}

/* Intervals and conditions in one fill. For a condition, axis 0 is empty, as in a load; for values computed from loads
 * all axes are, since elements may have moved between axes: a fill leaves invalid lanes along axes that it does not
 * have. */
static TileValue *emit_interval_fill(TileChecker *c, const TileMeaning *m, TileValue *x, const TileValidity *valid,
                                     TileValue *fill) {
    int64_t axes[TILE_MAX_TILE_RANK];
    TileValue *bounds[2 * TILE_MAX_TILE_RANK];
    unsigned count = 0;
    TileValue *conditions = tile_emit_conditions(c, valid);
    bool loaded = tile_value_def(x, TILE_OP_LOAD_TILE) != NULL;
    for (unsigned axis = 0; axis < m->rank; axis++) {
        const TileSum *lo, *hi;
        tile_valid_bounds(c, valid, (int)axis, &lo, &hi);
        bool empties = conditions && (axis == 0 || !loaded);
        if (!lo && !hi && !empties) continue;
        axes[count] = axis;
        bounds[2 * count] = tile_emit_sum(c, lo ? lo : tile_sum_integer(&c->sums, 0));
        TileValue *high = tile_emit_sum(c, hi ? hi : m->extent[axis]);
        if (empties) high = tile_emit_select(c, conditions, high, tile_emit_sum(c, tile_sum_integer(&c->sums, 0)));
        bounds[2 * count + 1] = high;
        count++;
    }
    return count ? tile_build_fill(tile_emitter(c), x, fill, axes, bounds, count) : x;
}

/* Without what the masks of indices include: where the indices themselves are valid. */
static const TileValidity *without_guards(TileChecker *c, const TileValidity *valid) {
    const TileValidity *included = NULL, *left = NULL;
    for (unsigned i = 0; valid && i < valid->count; i++) {
        const TileValidEntry *entry = &valid->entries[i];
        if (entry->atom->kind == TILE_ATOM_MASK && is_index(entry)) included = tile_valid_union(c, included, guard_of(c, entry));
    }
    for (unsigned i = 0; included && i < valid->count; i++) {
        const TileValidEntry *entry = &valid->entries[i];
        if (!tile_valid_has(included, entry)) left = tile_valid_add(c, left, entry->atom, entry->axes, entry->where);
    }
    return included ? left : valid;
}

TileValue *tile_emit_filled(TileChecker *c, const TileMeaning *m, const TileValidity *valid, TileValue *fill) {
    TileValue *x = tile_emit_value(c, m);
    if (!valid) return x;
    if (m->rank == 0) return tile_emit_select(c, tile_emit_conditions(c, valid), x, fill);
    valid = without_guards(c, valid);
    x = emit_interval_fill(c, m, x, valid, fill);
    TileValue *mask = tile_emit_masks(c, valid, m);
    return mask ? tile_emit_select(c, mask, x, tile_build_splat(tile_emitter(c), fill, x->type)) : x;
}

/* ---- messages ---- */

/* The identity element of a reduction, for proposals: max(best, v) proposes -inf. */
const char *tile_fill_word(const TileExpr *expr) {
    if (!expr || expr->kind != TILE_EXPR_CALL || expr->a->kind != TILE_EXPR_NAME) return "0";
    if (strcmp(expr->a->name, "max") == 0) return "-inf";
    if (strcmp(expr->a->name, "min") == 0) return "inf";
    return strcmp(expr->a->name, "prod") == 0 ? "1" : "0";
}

TileMeaning tile_fail_invalid(TileChecker *c, const TileMeaning *m, const TileExpr *expr, const char *why) {
    const TileValidEntry *entry = tile_settled_entry(m->valid);
    if (entry) tile_about_atom(c, entry->atom);
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_INVALID_VALUE, expr->span, why,
                                      entry ? tile_atom_words(c, entry->atom) : "some lanes");
    if (entry) tile_diagnostic_note(c->diagnostics, d, entry->atom->span, "what may be invalid begins here");
    if (entry) tile_note_lacks(c, d, entry->atom);
    tile_diagnostic_edit(c->diagnostics, d, expr->span, "(%s else %s)", tile_span_text(c, expr->span), c->fill_word);
    tile_report(c, d);
    return tile_error_meaning();
}
