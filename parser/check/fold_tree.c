/* Folds and scans whose function has a loop that is not unrolled. The combiner of an op has no control flow; so the function
 * is applied to whole tiles here, lifted, where the loop goes on while it holds for any element that exists.
 *
 *  reduce  each even element is combined with its right neighbour, then these with each other, until one is left;
 *  scan    each element i takes element i - 1 to its left, then i - 2, i - 4, ..
 *
 * along any axis, over the whole line: an application costs a loop, so there are as few as the order of the elements allows.
 * What `init` has stands on the left of all. An element that does not exist is no operand: where one side has none, the other
 * is the result. The function is applied to both as tiles that are not valid there, so that its loop does not wait for them. */
#include "parser/check/fold_tree.h"

#include <string.h>

#include "parser/check/emit.h"
#include "parser/check/validity.h"

typedef struct Lanes { /* tiles of one shape */
    unsigned rank;
    int64_t extent[TILE_MAX_TILE_RANK];
    TileValue *values[TILE_MAX_FOLD], *mask; /* which exist; NULL: all */
} Lanes;

static TileValue *no_mask(TileChecker *c, const Lanes *lanes, bool value) {
    TileBuilder *b = tile_emitter(c);
    return tile_build_integer(b, tile_type_tile(c->context, TILE_BOOL, lanes->rank, lanes->extent), value);
}

static Lanes lanes_of(TileChecker *c, const TileFoldTree *tree, const TileMeaning *shape, TileValue **values,
                      TileValue *mask) {
    Lanes lanes = {.rank = shape->rank, .mask = mask};
    for (unsigned i = 0; i < shape->rank; i++) lanes.extent[i] = tile_extent_value(c, shape->extent[i]);
    for (unsigned i = 0; i < tree->count; i++) lanes.values[i] = values[i];
    return lanes;
}

static TileMeaning meaning_of(TileChecker *c, const Lanes *lanes, TileValue *value, const TileValidity *valid) {
    const TileSum *extent[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < lanes->rank; i++) extent[i] = tile_sum_integer(&c->sums, lanes->extent[i]);
    return tile_value_meaning(c, value, extent, valid);
}

/* f(left, right) where both exist, else the one that does. */
static bool combine(TileChecker *c, const TileFoldTree *tree, const Lanes *left, const Lanes *right, Lanes *result) {
    TileMeaning arguments[2 * TILE_MAX_FOLD];
    TileValue *both = left->mask && right->mask ? tile_emit_binary(c, TILE_OP_AND, left->mask, right->mask)
                      : left->mask              ? left->mask
                                                : right->mask;
    const TileValidity *valid = tree->rest;
    if (both) {
        int8_t axes[TILE_MAX_TILE_RANK];
        for (unsigned i = 0; i < TILE_MAX_TILE_RANK; i++) axes[i] = (int8_t)i;
        TileAtom *atom = tile_atom_mask(c, both, both, NULL, NULL, tree->span, "what a fold skips");
        valid = tile_valid_add(c, valid, atom, axes, tree->span);
    }
    for (unsigned i = 0; i < tree->count; i++) {
        arguments[i] = meaning_of(c, left, left->values[i], valid);
        arguments[tree->count + i] = meaning_of(c, right, right->values[i], valid);
    }
    Lanes made = *left;
    made.mask = left->mask && right->mask ? tile_emit_binary(c, TILE_OP_OR, left->mask, right->mask) : NULL;
    if (!tree->apply(c, tree->host, arguments, made.values)) return false;
    tile_emit_at(c, tree->span);
    for (unsigned i = 0; both && i < tree->count; i++) {
        TileValue *one = left->values[i];
        if (left->mask) one = tile_emit_select(c, left->mask, one, right->values[i]);
        made.values[i] = tile_emit_select(c, both, made.values[i], one);
    }
    *result = made;
    return true;
}

/* ---- parts of lines ---- */

typedef TileValue *Part(TileChecker *c, const Lanes *lanes, TileValue *x, unsigned axis, int64_t at, int64_t extent);

/* Elements at .. at + extent. */
static TileValue *take_slice(TileChecker *c, const Lanes *lanes, TileValue *x, unsigned axis, int64_t at, int64_t extent) {
    return extent == lanes->extent[axis] ? x : tile_build_slice(tile_emitter(c), x, axis, at, extent);
}

/* Every other element from the one at `at` on, `extent` of them. */
static TileValue *take_alternate(TileChecker *c, const Lanes *lanes, TileValue *x, unsigned axis, int64_t at,
                                 int64_t extent) {
    int64_t pairs[4] = {1, extent, 2, 1}, result[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < lanes->rank; i++) {
        if (i < axis) pairs[0] *= lanes->extent[i];
        if (i > axis) pairs[3] *= lanes->extent[i];
        result[i] = i == axis ? extent : lanes->extent[i];
    }
    TileBuilder *b = tile_emitter(c);
    x = take_slice(c, lanes, x, axis, 0, 2 * extent);
    x = tile_build_slice(b, tile_build_reshape(b, x, 4, pairs), 2, at, 1);
    return tile_build_reshape(b, x, lanes->rank, result);
}

static Lanes part_of(TileChecker *c, const TileFoldTree *tree, const Lanes *lanes, Part *take, int64_t at, int64_t extent) {
    Lanes part = *lanes;
    part.extent[tree->axis] = extent;
    for (unsigned i = 0; i < tree->count; i++)
        part.values[i] = take(c, lanes, lanes->values[i], tree->axis, at, extent);
    if (lanes->mask) part.mask = take(c, lanes, lanes->mask, tree->axis, at, extent);
    return part;
}

static Lanes join(TileChecker *c, const TileFoldTree *tree, const Lanes *first, const Lanes *second) {
    Lanes joined = *first;
    joined.extent[tree->axis] += second->extent[tree->axis];
    for (unsigned i = 0; i < tree->count; i++)
        joined.values[i] = tile_build_cat(tile_emitter(c), first->values[i], second->values[i], tree->axis);
    if (!first->mask && !second->mask) return joined;
    TileValue *left = first->mask ? first->mask : no_mask(c, first, true);
    TileValue *right = second->mask ? second->mask : no_mask(c, second, true);
    joined.mask = tile_build_cat(tile_emitter(c), left, right, tree->axis);
    return joined;
}

/* `init` as one element of each line, or as `extent` of them. */
static Lanes initial(TileChecker *c, const TileFoldTree *tree, const Lanes *like, int64_t extent) {
    Lanes first = *like;
    TileBuilder *b = tile_emitter(c);
    first.mask = NULL;
    first.extent[tree->axis] = 1;
    for (unsigned i = 0; i < tree->count; i++)
        first.values[i] = tile_build_reshape(b, tree->init[i], first.rank, first.extent);
    first.extent[tree->axis] = extent;
    for (unsigned i = 0; extent > 1 && i < tree->count; i++)
        first.values[i] = tile_build_broadcast(b, first.values[i], first.extent);
    return first;
}

/* ---- reduce and scan ---- */

bool tile_fold_by_tree(TileChecker *c, const TileFoldTree *tree, const TileMeaning *shape, TileValue **values,
                       TileValue *mask) {
    Lanes lanes = lanes_of(c, tree, shape, values, mask);
    for (int64_t extent; (extent = lanes.extent[tree->axis]) > 1;) {
        Lanes even = part_of(c, tree, &lanes, take_alternate, 0, extent / 2);
        Lanes odd = part_of(c, tree, &lanes, take_alternate, 1, extent / 2), pairs;
        if (!combine(c, tree, &even, &odd, &pairs)) return false;
        Lanes last = extent % 2 ? part_of(c, tree, &lanes, take_slice, extent - 1, 1) : pairs;
        lanes = extent % 2 ? join(c, tree, &pairs, &last) : pairs;
    }
    if (tree->init) {
        Lanes first = initial(c, tree, &lanes, 1);
        if (!combine(c, tree, &first, &lanes, &lanes)) return false;
    }
    int64_t extent[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i + 1 < lanes.rank; i++) extent[i] = lanes.extent[i + (i >= tree->axis)];
    for (unsigned i = 0; i < tree->count; i++)
        values[i] = tile_build_reshape(tile_emitter(c), lanes.values[i], lanes.rank - 1, extent);
    return true;
}

/* The lanes `by` further along the lines, or back where `reverse`; the first ones are those of `before`. */
static Lanes moved(TileChecker *c, const TileFoldTree *tree, const Lanes *lanes, const Lanes *before) {
    int64_t by = before->extent[tree->axis], rest = lanes->extent[tree->axis] - by;
    Lanes kept = part_of(c, tree, lanes, take_slice, tree->reverse ? by : 0, rest);
    return tree->reverse ? join(c, tree, &kept, before) : join(c, tree, before, &kept);
}

bool tile_scan_by_tree(TileChecker *c, const TileFoldTree *tree, const TileMeaning *shape, TileValue **values,
                       TileValue *mask) {
    Lanes lanes = lanes_of(c, tree, shape, values, mask);
    int64_t extent = lanes.extent[tree->axis];
    for (int64_t by = 1; by < extent; by *= 2) {
        Lanes none = part_of(c, tree, &lanes, take_slice, 0, by); /* any elements: they do not exist */
        none.mask = no_mask(c, &none, false);
        Lanes before = moved(c, tree, &lanes, &none);
        if (!combine(c, tree, &before, &lanes, &lanes)) return false;
    }
    if (tree->init) {
        Lanes first = initial(c, tree, &lanes, extent), one = initial(c, tree, &lanes, 1);
        if (!combine(c, tree, &first, &lanes, &lanes)) return false;
        if (tree->exclusive) lanes = extent > 1 ? moved(c, tree, &lanes, &one) : one;
    }
    memcpy(values, lanes.values, tree->count * sizeof *values);
    return true;
}
