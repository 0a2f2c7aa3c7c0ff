/* Claims: what conditions tell of integers. A claim belongs to a bool, and goes with it through `let`, `&&`, functions
 * and flags; where the bool is tested, the claim becomes facts for the proofs of the side that is executed. */
#include "parser/check/bounds.h"
#include "parser/check/claim.h"
#include "parser/check/scope.h"
#include "parser/check/validity.h"

static const TileClaim *new_claim(TileChecker *c, TileClaim claim) {
    return tile_arena_copy(c->arena, &claim, sizeof claim);
}

static bool is_valid_where(const TileMeaning *a, const TileMeaning *b) {
    if (a->valid == b->valid) return true;
    if (!a->valid || !b->valid || a->valid->count != b->valid->count) return false;
    for (unsigned i = 0; i < a->valid->count; i++)
        if (!tile_valid_has(b->valid, &a->valid->entries[i])) return false;
    return true;
}

const TileClaim *tile_claim_of_fewer(TileChecker *c, const TileClaim *x) {
    return x && x->kind != TILE_CLAIM_FEWER ? new_claim(c, (TileClaim){.kind = TILE_CLAIM_FEWER, .x = x}) : x;
}

const TileClaim *tile_claim_within(TileChecker *c, const TileMeaning *m, const TileMeaning *result) {
    return result->rank == 0 || is_valid_where(m, result) ? m->claim : tile_claim_of_fewer(c, m->claim);
}

static bool has_fewer(const TileClaim *claim) {
    return claim && (claim->kind == TILE_CLAIM_FEWER || has_fewer(claim->x) || has_fewer(claim->y));
}

const TileClaim *tile_claim_filled(const TileClaim *claim) { return has_fewer(claim) ? NULL : claim; }

/* Nothing is told of a number that is the same in all lanes. */
static bool is_told_of_all(const TileMeaning *m, const TileMeaning *result) {
    return m->rank == 0 || (m->lowest && m->lowest == m->highest) || is_valid_where(m, result);
}

const TileClaim *tile_claim_compare(TileChecker *c, TileTokenKind op, const TileMeaning *a, const TileMeaning *b,
                                    const TileMeaning *result) {
    if (op < TILE_TOKEN_EQUAL || op > TILE_TOKEN_GREATER_EQUAL) return NULL;
    const TileSum *x = tile_element_sum(c, a), *y = tile_element_sum(c, b);
    if (!x || !y) return NULL;
    bool is_unsigned = a->scalar == TILE_U64;
    const TileClaim *claim = new_claim(
        c, (TileClaim){.kind = TILE_CLAIM_COMPARE, .op = (uint8_t)op, .is_unsigned = is_unsigned, .a = x, .b = y});
    return is_told_of_all(a, result) && is_told_of_all(b, result) ? claim : tile_claim_of_fewer(c, claim);
}

const TileClaim *tile_claim_of_elements(TileChecker *c, const TileClaim *x, bool all) {
    return x ? new_claim(c, (TileClaim){.kind = all ? TILE_CLAIM_ALL : TILE_CLAIM_ANY, .x = x}) : NULL;
}

const TileClaim *tile_claim_not(TileChecker *c, const TileClaim *x) {
    if (!x) return NULL;
    return x->kind == TILE_CLAIM_NOT ? x->x : new_claim(c, (TileClaim){.kind = TILE_CLAIM_NOT, .x = x});
}

const TileClaim *tile_claim_both(TileChecker *c, const TileClaim *x, const TileClaim *y) {
    return x || y ? new_claim(c, (TileClaim){.kind = TILE_CLAIM_AND, .x = x, .y = y}) : NULL;
}

const TileClaim *tile_claim_either(TileChecker *c, const TileClaim *x, const TileClaim *y) {
    return x || y ? new_claim(c, (TileClaim){.kind = TILE_CLAIM_OR, .x = x, .y = y}) : NULL;
}

const TileClaim *tile_claim_choice(TileChecker *c, const TileClaim *condition, const TileMeaning *a,
                                   const TileMeaning *b) {
    const TileClaim *no = tile_claim_not(c, condition);
    bool both = a->constant && b->constant;
    if (both) return a->bits == b->bits ? NULL : a->bits ? condition : no;
    if (a->constant) return a->bits ? tile_claim_either(c, condition, b->claim) : tile_claim_both(c, no, b->claim);
    if (b->constant) return b->bits ? tile_claim_either(c, no, a->claim) : tile_claim_both(c, condition, a->claim);
    return NULL;
}

/* ---- facts ---- */

static TileTokenKind opposite(TileTokenKind op) {
    switch (op) {
    case TILE_TOKEN_EQUAL: return TILE_TOKEN_NOT_EQUAL;
    case TILE_TOKEN_NOT_EQUAL: return TILE_TOKEN_EQUAL;
    case TILE_TOKEN_LESS: return TILE_TOKEN_GREATER_EQUAL;
    case TILE_TOKEN_LESS_EQUAL: return TILE_TOKEN_GREATER;
    case TILE_TOKEN_GREATER: return TILE_TOKEN_LESS_EQUAL;
    default: return TILE_TOKEN_LESS;
    }
}

/* a <= b or a < b; `checked`: a launch checks it. */
static void assume_at_most(TileChecker *c, const TileClaim *claim, bool swapped, bool less, bool checked) {
    TileSumTable *t = &c->sums;
    const TileSum *a = swapped ? claim->b : claim->a, *b = swapped ? claim->a : claim->b, *needs = NULL;
    const TileSum *zero = tile_sum_integer(t, 0);
    if (claim->is_unsigned) { /* below a number of 63 bits, unsigned and signed numbers are the same */
        if (!tile_sum_at_most(t, zero, b)) return;
        tile_sum_assume_code(t, zero, a, false, NULL);
    }
    if (checked) {
        needs = tile_sum_subtract(t, tile_sum_subtract(t, b, a), tile_sum_integer(t, less));
        if (claim->is_unsigned || !tile_sum_is_host(needs) || tile_sum_falls(t, needs)) return;
        if (tile_sum_at_most(t, zero, needs)) return;
    }
    tile_sum_assume_code(t, a, b, less, needs);
}

/* Why a claim holds. */
typedef enum Reason {
    REASON_CHOSEN,  /* by a condition that was tested, of a tile for the elements that are chosen by it */
    REASON_ALL,     /* for all valid elements of a tile */
    REASON_CHECKED, /* a launch checks it */
} Reason;

static void assume_comparison(TileChecker *c, const TileClaim *claim, bool truth, bool checked) {
    TileTokenKind op = truth ? (TileTokenKind)claim->op : opposite((TileTokenKind)claim->op);
    switch (op) {
    case TILE_TOKEN_LESS:
    case TILE_TOKEN_LESS_EQUAL: assume_at_most(c, claim, false, op == TILE_TOKEN_LESS, checked); break;
    case TILE_TOKEN_GREATER:
    case TILE_TOKEN_GREATER_EQUAL: assume_at_most(c, claim, true, op == TILE_TOKEN_GREATER, checked); break;
    case TILE_TOKEN_EQUAL:
        assume_at_most(c, claim, false, false, checked);
        assume_at_most(c, claim, true, false, checked);
        break;
    default: /* they differ, and one is known not to be greater */
        if (checked || claim->is_unsigned) return;
        if (tile_sum_at_most(&c->sums, claim->a, claim->b)) assume_at_most(c, claim, false, true, false);
        if (tile_sum_at_most(&c->sums, claim->b, claim->a)) assume_at_most(c, claim, true, true, false);
    }
}

static void assume(TileChecker *c, const TileClaim *claim, bool truth, Reason reason) {
    if (!claim) return;
    switch (claim->kind) {
    case TILE_CLAIM_COMPARE: assume_comparison(c, claim, truth, reason == REASON_CHECKED); return;
    case TILE_CLAIM_NOT: assume(c, claim->x, !truth, reason); return;
    case TILE_CLAIM_AND:
    case TILE_CLAIM_OR:
        if (truth != (claim->kind == TILE_CLAIM_AND)) return;
        assume(c, claim->x, truth, reason);
        assume(c, claim->y, truth, reason);
        return;
    case TILE_CLAIM_ALL:
    case TILE_CLAIM_ANY:
        if (truth == (claim->kind == TILE_CLAIM_ALL)) assume(c, claim->x, truth, reason == REASON_CHECKED ? reason : REASON_ALL);
        return;
    case TILE_CLAIM_FEWER: /* where something beside it is not valid, nothing that is chosen by it is */
        if (reason == REASON_CHOSEN) assume(c, claim->x, truth, reason);
        return;
    }
}

void tile_claim_assume(TileChecker *c, const TileClaim *claim, bool truth) { assume(c, claim, truth, REASON_CHOSEN); }

void tile_claim_assume_checked(TileChecker *c, const TileClaim *claim) { assume(c, claim, true, REASON_CHECKED); }

/* ---- elements that a condition chooses ---- */

TileBounds tile_claim_bounds(TileChecker *c, const TileMeaning *m, const TileClaim *claim, bool truth) {
    size_t known = c->sums.facts.count;
    if (claim && m->rank) tile_element_sum(c, m); /* a claim may be about it */
    tile_claim_assume_chosen(c);                  /* no other element is seen outside of the sides around */
    assume(c, claim, truth, REASON_CHOSEN);
    TileBounds bounds = tile_bounds_of(c, m);
    c->sums.facts.count = known;
    return bounds;
}

size_t tile_claim_assume_chosen(TileChecker *c) {
    size_t known = c->sums.facts.count;
    for (size_t i = 0; i < c->sides.count; i++) assume(c, c->sides.items[i].claim, c->sides.items[i].truth, REASON_CHOSEN);
    return known;
}

/* Does what is known already say that the comparison is false? */
static bool is_refuted(TileChecker *c, const TileClaim *claim, bool truth) {
    TileSumTable *t = &c->sums;
    const TileSum *a = claim->a, *b = claim->b, *one = tile_sum_integer(t, 1);
    if (claim->is_unsigned) return false;
    switch (truth ? (TileTokenKind)claim->op : opposite((TileTokenKind)claim->op)) {
    case TILE_TOKEN_LESS: return tile_sum_at_most(t, b, a);
    case TILE_TOKEN_GREATER: return tile_sum_at_most(t, a, b);
    case TILE_TOKEN_LESS_EQUAL: return tile_sum_at_most(t, tile_sum_add(t, b, one), a);
    case TILE_TOKEN_GREATER_EQUAL: return tile_sum_at_most(t, tile_sum_add(t, a, one), b);
    case TILE_TOKEN_EQUAL: return tile_sum_at_most(t, tile_sum_add(t, a, one), b) || tile_sum_at_most(t, tile_sum_add(t, b, one), a);
    default: return false;
    }
}

static bool holds_never(TileChecker *c, const TileClaim *claim, bool truth) {
    if (!claim) return false;
    switch (claim->kind) {
    case TILE_CLAIM_COMPARE: return is_refuted(c, claim, truth);
    case TILE_CLAIM_NOT: return holds_never(c, claim->x, !truth);
    case TILE_CLAIM_AND:
    case TILE_CLAIM_OR: {
        bool first = holds_never(c, claim->x, truth);
        bool both = truth == (claim->kind == TILE_CLAIM_AND);
        return both ? first || holds_never(c, claim->y, truth) : first && holds_never(c, claim->y, truth);
    }
    case TILE_CLAIM_FEWER: return holds_never(c, claim->x, truth);
    default: return false;
    }
}

bool tile_chosen_never(TileChecker *c) {
    for (size_t i = 0; i < c->sides.count; i++)
        if (holds_never(c, c->sides.items[i].claim, c->sides.items[i].truth)) return true;
    return false;
}

bool tile_chosen_inside(TileChecker *c, const TileMeaning *index, const TileSum *dim) {
    size_t known = tile_claim_assume_chosen(c);
    bool inside = c->sides.count && tile_elements_inside(c, index, dim);
    tile_facts_restore(c, known);
    return inside || tile_chosen_never(c);
}
