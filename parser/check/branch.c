/* Branches: both sides are emitted; variables that differ between them become results of the branch. */
#include "parser/check/bounds.h"
#include "parser/check/branch.h"
#include "parser/check/claim.h"
#include "parser/check/emit.h"
#include "parser/check/lacks.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"
#include "parser/check/untaken.h"
#include "parser/check/validity.h"

/* One side of a branch: its ops, its value, and its values of the variables. */
typedef struct Side {
    TileBlock *block;
    TileMeaning value;
    const TileExpr *expr; /* of the value, if an edit can change it; or NULL */
    TileMeaning *vars;
    uint8_t *moves; /* of each variable: Moves, those that are proven at the end of the side */
    TileBounds told, *vars_told; /* of the value and the variables, by what holds in the side */
} Side;

/* How an integer variable has changed: so that what bounded it before may still do. */
typedef enum Moves { MOVES_UP = 1, MOVES_DOWN = 2 } Moves;

TileMeaning *tile_vars_snapshot(TileChecker *c) {
    tile_spend(c, c->vars.count / 8); /* the work grows with variables times branches */
    TileMeaning *now = tile_arena_take(c->arena, c->vars.count * sizeof *now);
    for (size_t i = 0; i < c->vars.count; i++) now[i] = c->vars.items[i]->now;
    return now;
}

/* Restores the values of variables; the sources of invalidity that they may have are kept. */
void tile_vars_restore(TileChecker *c, const TileMeaning *before, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const TileValidity *valid = c->vars.items[i]->now.valid;
        c->vars.items[i]->now = before[i];
        if (before[i].kind == TILE_MEANING_VALUE) c->vars.items[i]->now.valid = valid;
    }
}

/* Enters a branch or loop of the IR, to limit nesting. */
bool tile_enter_region(TileChecker *c, TileSpan span) {
    if (c->regions >= TILE_MAX_REGIONS) {
        tile_fail(c, TOO_DEEP, span, (unsigned)TILE_MAX_REGIONS);
        return false;
    }
    c->regions++;
    return true;
}

static bool same_value(const TileMeaning *a, const TileMeaning *b) {
    return a->kind == b->kind && a->value == b->value && a->sum == b->sum && a->constant == b->constant &&
           a->bits == b->bits && a->rank == b->rank;
}

/* Is it not less (greater) than it was? */
static uint8_t *find_moves(TileChecker *c, const TileMeaning *before, size_t count) {
    uint8_t *moves = TILE_NEW_ARRAY(c->arena, uint8_t, count);
    for (size_t i = 0; i < count; i++) {
        if (same_value(&before[i], &c->vars.items[i]->now)) { /* as most are */
            moves[i] = MOVES_UP | MOVES_DOWN;
            continue;
        }
        const TileSum *was = tile_scalar_sum(c, &before[i]), *now = tile_scalar_sum(c, &c->vars.items[i]->now);
        bool may_move = was && now && was != now && !before[i].valid && before[i].scalar != TILE_U64;
        moves[i] = was == now ? MOVES_UP | MOVES_DOWN : 0;
        if (may_move && tile_sum_at_most(&c->sums, was, now)) moves[i] |= MOVES_UP;
        if (may_move && tile_sum_at_most(&c->sums, now, was)) moves[i] |= MOVES_DOWN;
    }
    return moves;
}

/* `other`: the side that was run before, or NULL. What has changed in neither of them keeps its bounds. */
static void find_told(TileChecker *c, Side *side, const Side *other, const TileMeaning *before, size_t count) {
    side->told = tile_bounds_told(c, &side->value);
    side->vars_told = TILE_NEW_ARRAY(c->arena, TileBounds, count);
    for (size_t i = 0; i < count; i++) {
        const TileMeaning *now = &side->vars[i];
        bool changed = !same_value(&before[i], now) || (other && !same_value(&before[i], &other->vars[i]));
        if (changed) side->vars_told[i] = tile_bounds_told(c, now);
    }
}

/* `claim`: what holds of the condition, which has the value `truth`; NULL if both sides are executed. `other`: the side that was run
 * before, or NULL. */
static Side run_side(TileChecker *c, TileBranch branch, bool own_block, const TileClaim *claim, bool truth, const Side *other,
                     const TileMeaning *before, size_t count) {
    Side side = {.expr = branch.value};
    TileBlock *outer = c->builder.block;
    if (own_block) {
        side.block = TILE_NEW(c->module->arena, TileBlock);
        side.block->func = c->func;
        c->builder.block = side.block;
    }
    TileScopeMark mark = tile_scope_open(c);
    tile_claim_assume(c, claim, truth);
    side.value = branch.run(c, branch.state);
    side.vars = tile_vars_snapshot(c);
    side.moves = find_moves(c, before, count);
    if (own_block) find_told(c, &side, other, before, count);
    tile_scope_close(c, mark);
    c->builder.block = outer;
    return side;
}

/* Of a branch that chooses for each element. */
static Side run_chosen_side(TileChecker *c, TileBranch branch, const TileClaim *claim, bool truth,
                            const TileMeaning *before, size_t count) {
    TileChosen chosen = {claim, truth};
    size_t sides = c->sides.count;
    if (claim) tile_list_push(c->arena, &c->sides, chosen);
    Side side = run_side(c, branch, false, NULL, truth, NULL, before, count);
    c->sides.count = sides;
    return side;
}

/* Converts both sides to values of one type; if a side has none, it is zero there. `sides`: the values are the branch's
 * own. */
static bool unify_sides(TileChecker *c, TileMeaning *a, TileMeaning *b, const Side *const *sides, TileSpan span) {
    if (a->kind == TILE_MEANING_NOTHING && b->kind == TILE_MEANING_VALUE)
        *a = tile_bits_meaning((TileScalar)b->scalar, 0);
    if (b->kind == TILE_MEANING_NOTHING && a->kind == TILE_MEANING_VALUE)
        *b = tile_bits_meaning((TileScalar)a->scalar, 0);
    TileMeaning both[] = {*a, *b};
    const TileExpr *exprs[] = {sides ? sides[0]->expr : NULL, sides ? sides[1]->expr : NULL};
    if (!tile_unify_scalars(c, both, exprs[0] && exprs[1] ? exprs : NULL, 2, span)) return false;
    *a = both[0];
    *b = both[1];
    return true;
}

/* The common shape; each side is then broadcast in its own block. */
static bool join_shape(TileChecker *c, const TileMeaning *a, const TileMeaning *b, TileMeaning *shape, TileSpan span) {
    *shape = a->rank ? *a : *b;
    bool fits = !a->rank || !b->rank || a->rank == b->rank;
    for (unsigned i = 0; fits && a->rank && i < b->rank; i++) {
        fits = tile_extents_agree(a->extent[i], b->extent[i]);
        if (tile_sum_is_literal(a->extent[i], 1)) shape->extent[i] = b->extent[i];
    }
    if (!fits) tile_about_shapes(c, a, b);
    if (!fits) tile_fail(c, SHAPE_MISMATCH, span, tile_meaning_words(c, a), tile_meaning_words(c, b));
    return fits;
}

typedef struct Join {
    const Side *sides[2];
    TileSpan span;
    const TileClaim *claim; /* of the condition */
    uint32_t start;         /* `clock` when the branch began */
    TILE_LIST(TileValue *) values[2];
    TILE_LIST(const TileType *) types;
    TileBounds told[2]; /* of the values that are joined next */
    TILE_LIST(TileBounds) bounds; /* of each result */
    TILE_LIST(TileMeaning *) targets; /* meanings that become results; their shape and validity are computed before */
} Join;

/* Moves the insertion point to the end of a side. */
typedef struct Excursion {
    TileBlock *outer;
    TileScopeMark mark;
} Excursion;

static Excursion enter_side(TileChecker *c, const Side *side) {
    Excursion excursion = {c->builder.block, tile_scope_open(c)};
    c->builder.block = side->block;
    return excursion;
}

static void leave_side(TileChecker *c, Excursion excursion) {
    c->builder.block = excursion.outer;
    tile_scope_close(c, excursion.mark);
}

static TileValue *value_in(TileChecker *c, const Side *side, const TileMeaning *m, const TileMeaning *shape) {
    Excursion excursion = enter_side(c, side);
    TileMeaning wide = tile_stretch(c, *m, shape->rank, shape->extent);
    TileValue *value = tile_emit_value(c, &wide);
    leave_side(c, excursion);
    return value;
}

/* A literal choice of one side gets the other side's type, where its condition is in scope. */
static void settle_choice(TileChecker *c, const Join *join, TileMeaning *both) {
    for (int i = 0; i < 2; i++) {
        if (both[i].kind != TILE_MEANING_CHOICE || both[!i].kind != TILE_MEANING_VALUE) continue;
        Excursion excursion = enter_side(c, join->sides[i]);
        both[i] = tile_literal_as(c, &both[i], (TileScalar)both[!i].scalar, join->span);
        leave_side(c, excursion);
    }
}

static bool valid_born_after(const TileValidity *valid, uint32_t start) {
    bool born = false;
    for (unsigned i = 0; valid && i < valid->count; i++) born = born || valid->entries[i].atom->birth > start;
    return born;
}

/* An atom that was created inside a branch cannot be used outside: its ops are in the branch. */
static bool outlives(TileChecker *c, const Join *join, TileMeaning *m) {
    if (valid_born_after(m->valid, join->start)) m->valid = tile_valid_settled(c, m->valid);
    for (unsigned i = 0; m->valid && i < m->valid->count; i++) {
        const TileValidEntry *entry = &m->valid->entries[i];
        if (entry->atom->birth <= join->start) continue;
        tile_about_atom(c, entry->atom);
        TileDiagnostic *d =
            tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_INVALID_BRANCH, join->span, tile_atom_words(c, entry->atom));
        tile_diagnostic_note(c->diagnostics, d, entry->atom->span, "what may be invalid begins here");
        tile_note_lacks(c, d, entry->atom);
        if (entry->where.file)
            tile_diagnostic_edit(c->diagnostics, d, entry->where, "(%s else 0)", tile_span_text(c, entry->where));
        tile_report(c, d);
        return false;
    }
    return true;
}

/* Either value, as what holds in its side bounds it. */
static TileBounds joined_bounds(TileChecker *c, const TileMeaning *a, const TileMeaning *b, const TileBounds *told) {
    TileBounds x = tile_bounds_of(c, a), y = tile_bounds_of(c, b);
    if (told[0].lowest) x.lowest = told[0].lowest;
    if (told[0].highest) x.highest = told[0].highest;
    if (told[1].lowest) y.lowest = told[1].lowest;
    if (told[1].highest) y.highest = told[1].highest;
    return tile_bounds_of_either(c, x, y);
}

/* A variable that no side makes less (greater) is bounded by what it was, too. */
static void bound_by(TileChecker *c, const TileMeaning *joined, const TileMeaning *before, uint8_t moves) {
    const TileSum *was = moves && !joined->rank ? tile_scalar_sum(c, before) : NULL;
    if (!was) return;
    was = tile_sum_code(&c->sums, was);
    tile_bound_also(c, joined, (TileBounds){moves & MOVES_UP ? was : NULL, moves & MOVES_DOWN ? was : NULL});
}

/* Makes `both`, the values at the end of the sides, a result of the branch; false if an error was reported. */
static bool add_joined(TileChecker *c, Join *join, TileMeaning a, TileMeaning b, const Side *const *sides,
                       TileMeaning *joined) {
    TileMeaning shape, both[] = {a, b};
    settle_choice(c, join, both);
    if (!unify_sides(c, &both[0], &both[1], sides, join->span) ||
        !join_shape(c, &both[0], &both[1], &shape, join->span))
        return false;
    for (int i = 0; i < 2; i++)
        if (!outlives(c, join, &both[i])) return false;
    for (int i = 0; i < 2; i++) {
        TileValue *value = value_in(c, join->sides[i], &both[i], &shape);
        tile_list_push(c->arena, &join->values[i], value);
        if (i == 0) tile_list_push(c->arena, &join->types, value->type);
    }
    *joined = shape;
    joined->claim = NULL;
    if (shape.rank == 0 && shape.scalar == TILE_BOOL)
        joined->claim = tile_claim_choice(c, join->claim, &both[0], &both[1]);
    joined->valid = tile_valid_union(c, both[0].valid, both[1].valid);
    tile_list_push(c->arena, &join->targets, joined);
    tile_list_push(c->arena, &join->bounds, joined_bounds(c, &both[0], &both[1], join->told));
    return true;
}

/* Makes the conditions of a side's literal choice results of the branch, so that the choice can be made outside. */
static bool export_choice(TileChecker *c, Join *join, int side, TileMeaning *m) {
    if (m->kind != TILE_MEANING_CHOICE) return true;
    TileMeaning no = tile_bool_meaning(false), condition = m->items[0];
    *m = tile_choice_meaning(c, condition, m->items[1], m->items[2]);
    bool ok = add_joined(c, join, side ? no : condition, side ? condition : no, NULL, &m->items[0]);
    return ok && export_choice(c, join, side, &m->items[1]) && export_choice(c, join, side, &m->items[2]);
}

/* The value of the branch: literals stay literals; their use determines the type. */
static bool join_value(TileChecker *c, Join *join, TileValue *condition, TileMeaning *value) {
    TileMeaning a = join->sides[0]->value, b = join->sides[1]->value;
    for (int i = 0; i < 2; i++) join->told[i] = join->sides[i]->told;
    if (tile_is_error(&a) || tile_is_error(&b)) return false;
    if (!tile_is_literal(&a) || !tile_is_literal(&b)) return add_joined(c, join, a, b, join->sides, value);
    for (int i = 0; i < 2; i++) join->told[i] = (TileBounds){NULL, NULL}; /* what is joined are the choice's conditions */
    *value = tile_choice_meaning(c, tile_value_meaning(c, condition, NULL, NULL), a, b);
    return export_choice(c, join, 0, &value->items[1]) && export_choice(c, join, 1, &value->items[2]);
}

static void finish_side(TileChecker *c, TileBlock *block, TileValue *const *values, size_t count) {
    TileBlock *outer = c->builder.block;
    c->builder.block = block;
    tile_build_end(tile_emitter(c), TILE_OP_YIELD, values, (unsigned)count);
    c->builder.block = outer;
}

static void discard_sides(const Side *then, const Side *otherwise) {
    tile_discard_block(then->block);
    tile_discard_block(otherwise->block);
}

/* Creates the op, once its results are known. */
static void build_if(TileChecker *c, Join *join, TileValue *condition) {
    tile_emit_at(c, join->span);
    for (int i = 0; i < 2; i++) finish_side(c, join->sides[i]->block, join->values[i].items, join->values[i].count);
    TileOp *op = tile_build_if(tile_emitter(c), condition, join->types.items, (unsigned)join->types.count);
    for (int i = 0; i < 2; i++) tile_block_splice(&op->regions[i], join->sides[i]->block);
    for (size_t i = 0; i < join->targets.count; i++) {
        TileMeaning *target = join->targets.items[i];
        const TileClaim *claim = target->claim;
        *target = tile_value_meaning(c, tile_op_result(op, (unsigned)i), target->extent, target->valid);
        *target = tile_bounded(c, *target, join->bounds.items[i]);
        target->claim = claim;
    }
}

static TileMeaning join_with_if(TileChecker *c, const TileMeaning *condition, TileBranch then_branch,
                                TileBranch else_branch, bool want_value, TileSpan span) {
    TileValue *test = tile_emit_value(c, condition);
    TileMeaning *before = tile_vars_snapshot(c);
    size_t count = c->vars.count;
    Join join = {.start = c->clock, .span = span, .claim = condition->claim};
    Side then = run_side(c, then_branch, true, condition->claim, true, NULL, before, count);
    tile_vars_restore(c, before, count);
    Side otherwise = run_side(c, else_branch, true, condition->claim, false, &then, before, count);
    tile_vars_restore(c, before, count);
    join.sides[0] = &then;
    join.sides[1] = &otherwise;

    TileMeaning value = tile_nothing(), *joined = tile_arena_take(c->arena, count * sizeof *joined); /* of those that differ */
    bool failed = want_value && !join_value(c, &join, test, &value);
    for (size_t i = 0; i < count && !failed; i++) {
        if (same_value(&then.vars[i], &otherwise.vars[i])) continue;
        bool broken = tile_is_error(&then.vars[i]) || tile_is_error(&otherwise.vars[i]);
        for (int k = 0; k < 2; k++) join.told[k] = join.sides[k]->vars_told[i];
        failed = broken || !add_joined(c, &join, then.vars[i], otherwise.vars[i], NULL, &joined[i]);
    }
    if (failed) {
        discard_sides(&then, &otherwise);
        return tile_error_meaning();
    }
    build_if(c, &join, test);
    for (size_t i = 0; i < count; i++) {
        TileVar *var = c->vars.items[i];
        bool same = same_value(&then.vars[i], &otherwise.vars[i]);
        if (!same) bound_by(c, &joined[i], &before[i], then.moves[i] & otherwise.moves[i]);
        var->now = same ? then.vars[i] : joined[i];
        var->now.valid = tile_valid_union(c, then.vars[i].valid, otherwise.vars[i].valid);
    }
    return value;
}

static TileMeaning select_one(TileChecker *c, const TileMeaning *condition, TileMeaning a, TileMeaning b,
                              const Side *const *sides, TileSpan span) {
    TileMeaning v[3] = {*condition, a, b};
    if (!unify_sides(c, &v[1], &v[2], sides, span)) return tile_error_meaning();
    TileMeaning told[] = {*condition, v[1], v[2]}, chosen = tile_select_meaning(c, v, span);
    if (tile_is_error(&chosen) || !condition->rank || chosen.scalar != TILE_BOOL) return chosen;
    for (unsigned i = 0; i < 3; i++) told[i].claim = tile_claim_within(c, &told[i], &chosen);
    chosen.claim = tile_claim_choice(c, told[0].claim, &told[1], &told[2]);
    return chosen;
}

/* The condition is a tile in a function lifted over tiles, and will be in one that is folded: both sides are executed,
 * and each element is selected. */
static TileMeaning join_with_select(TileChecker *c, const TileMeaning *condition, TileBranch then_branch,
                                    TileBranch else_branch, bool want_value, TileSpan span) {
    TileMeaning *before = tile_vars_snapshot(c);
    size_t count = c->vars.count;
    c->masked++;
    const TileClaim *claim = condition->claim;
    Side then = run_chosen_side(c, then_branch, claim, true, before, count);
    tile_vars_restore(c, before, count);
    Side otherwise = run_chosen_side(c, else_branch, claim, false, before, count);
    tile_vars_restore(c, before, count);
    c->masked--;
    tile_emit_at(c, span);
    for (size_t i = 0; i < count; i++) {
        TileMeaning a = then.vars[i], b = otherwise.vars[i], *now = &c->vars.items[i]->now;
        bool chosen = !same_value(&a, &b) || (condition->valid && !same_value(&a, &before[i]));
        *now = chosen ? select_one(c, condition, a, b, NULL, span) : a;
        if (!chosen && a.kind == TILE_MEANING_VALUE) now->valid = tile_valid_union(c, a.valid, b.valid);
    }
    if (!want_value) return tile_nothing();
    if (tile_is_error(&then.value) || tile_is_error(&otherwise.value)) return tile_error_meaning();
    if (tile_is_literal(&then.value) && tile_is_literal(&otherwise.value))
        return tile_choice_meaning(c, *condition, then.value, otherwise.value);
    return select_one(c, condition, then.value, otherwise.value, (const Side *[]){&then, &otherwise}, span);
}

TileMeaning tile_run_chosen(TileChecker *c, TileMeaning condition, TileBranch then, TileBranch otherwise) {
    if (tile_is_error(&condition)) return condition;
    TileBranch chosen = condition.bits ? then : otherwise;
    TileScopeMark mark = tile_scope_open(c);
    uint8_t doubt = c->doubt;
    c->doubt |= condition.open;
    TileMeaning value = chosen.run(c, chosen.state);
    c->doubt = doubt;
    tile_scope_close_names(c, mark);
    return value;
}

TileMeaning tile_join_branches(TileChecker *c, TileMeaning condition, TileBranch then, TileBranch otherwise,
                               bool want_value, TileSpan span) {
    if (tile_is_error(&condition)) return condition;
    if (condition.constant && condition.rank == 0) {
        if (!c->frame->lifted) return tile_run_chosen(c, condition, then, otherwise);
        TileBranch chosen = condition.bits ? then : otherwise;
        TileChosen other = {condition.claim, !condition.bits};
        return tile_join_untaken(c, chosen, condition.bits ? otherwise : then, &other, span);
    }
    if (condition.rank || c->in_combiner) return join_with_select(c, &condition, then, otherwise, want_value, span);
    if (!tile_enter_region(c, span)) return tile_error_meaning();
    TileMeaning joined = join_with_if(c, &condition, then, otherwise, want_value, span);
    c->regions--;
    return joined;
}

TileMeaning tile_run_nothing(TileChecker *c, const void *state) { return tile_nothing(); }
