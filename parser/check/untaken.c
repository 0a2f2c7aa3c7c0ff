/* Code that is not executed because a condition is constant: it is checked nevertheless, for its effect on validity.
 *
 * Whether a value may be invalid must not depend on the value of a constant condition. So the untaken side of an `if`,
 * in a lifted function, and the right side of `&&` and `||` are checked as if the condition were known at run time
 * only. Their ops are emitted without uses; side effects (stores, assertions, the iterations of a loop) are omitted. */
#include "parser/check/branch.h"
#include "parser/check/meaning.h"
#include "parser/check/operand.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/shape.h"
#include "parser/check/type.h"
#include "parser/check/untaken.h"
#include "parser/check/validity.h"

typedef struct Untaken {
    TileSumNeeds needs;
    TileScopeMark mark;
} Untaken;

static Untaken enter(TileChecker *c) {
    Untaken untaken = {c->needs, tile_scope_open(c)};
    c->untaken++;
    return untaken;
}

/* Conditions that only this code requires need no check by a launch. */
static void leave(TileChecker *c, Untaken untaken) {
    tile_scope_close(c, untaken.mark);
    c->needs = untaken.needs;
    c->untaken--;
}

TileMeaning tile_check_untaken(TileChecker *c, const TileExpr *expr) {
    Untaken untaken = enter(c);
    TileMeaning m = tile_check_value(c, expr);
    leave(c, untaken);
    return m;
}

/* The value of the taken side, valid where both sides are. */
static TileMeaning narrowed(TileChecker *c, TileMeaning taken, TileMeaning other, TileSpan span) {
    if (taken.kind == TILE_MEANING_TUPLE && other.kind == TILE_MEANING_TUPLE && taken.count == other.count) {
        TileMeaning tuple = taken;
        tuple.items = TILE_NEW_ARRAY(c->arena, TileMeaning, taken.count);
        for (uint32_t i = 0; i < taken.count; i++) tuple.items[i] = narrowed(c, taken.items[i], other.items[i], span);
        return tuple;
    }
    if (other.kind != TILE_MEANING_VALUE || !tile_valid_missing(other.valid, taken.valid)) return taken;
    if (taken.kind == TILE_MEANING_NOTHING) taken = tile_bits_meaning((TileScalar)other.scalar, 0);
    TileMeaning both[] = {taken, other};
    if (!tile_unify_scalars(c, both, NULL, 2, span) || !tile_unify_shapes(c, both, 2, span))
        return tile_error_meaning();
    both[0].valid = tile_valid_union(c, both[0].valid, both[1].valid);
    return both[0];
}

static bool differs(const TileMeaning *a, const TileMeaning *b) {
    return a->value != b->value || a->sum != b->sum || a->constant != b->constant || a->bits != b->bits ||
           a->kind != b->kind;
}

TileMeaning tile_join_untaken(TileChecker *c, TileBranch taken, TileBranch other, const TileChosen *by, TileSpan span) {
    size_t count = c->vars.count;
    TileMeaning *before = TILE_NEW_ARRAY(c->arena, TileMeaning, count), *after;
    after = TILE_NEW_ARRAY(c->arena, TileMeaning, count);
    for (size_t i = 0; i < count; i++) before[i] = c->vars.items[i]->now;
    TileScopeMark mark = tile_scope_open(c);
    TileMeaning value = taken.run(c, taken.state);
    tile_scope_close_names(c, mark);
    for (size_t i = 0; i < count; i++) {
        after[i] = c->vars.items[i]->now;
        c->vars.items[i]->now = before[i];
    }
    Untaken untaken = enter(c);
    size_t sides = c->sides.count;
    if (by->claim) tile_list_push(c->arena, &c->sides, *by);
    TileMeaning unused = other.run(c, other.state);
    c->sides.count = sides;
    leave(c, untaken);
    for (size_t i = 0; i < count; i++) {
        TileVar *var = c->vars.items[i];
        TileMeaning now = var->now;
        var->undecided = var->undecided || differs(&now, &after[i]);
        var->now = tile_is_error(&after[i]) || tile_is_error(&now) ? after[i] : narrowed(c, after[i], now, span);
    }
    if (tile_is_error(&value) || tile_is_error(&unused)) return value;
    return narrowed(c, value, unused, span);
}
