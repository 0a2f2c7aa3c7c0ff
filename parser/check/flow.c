/* Branches and loops: variables that differ become results, carried values and arguments of regions. */
#include "parser/check/check.h"

#include <string.h>

/* ---- branches ---- */

/* One side of a branch: its ops, its value, and what it left in the variables. */
typedef struct Side {
    TileBlock *block;
    TileMeaning value;
    const TileExpr *expr; /* of the value, where the text has one that can be edited */
    TileMeaning *vars;
} Side;

static TileMeaning *snapshot(TileChecker *c) {
    tile_spend(c, c->vars.count / 8); /* many variables times many branches are work */
    TileMeaning *now = TILE_NEW_ARRAY(c->arena, TileMeaning, c->vars.count);
    for (size_t i = 0; i < c->vars.count; i++) now[i] = c->vars.items[i]->now;
    return now;
}

/* Values go back to what they were; what a variable may lack stays known. */
static void restore(TileChecker *c, const TileMeaning *before, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const TileValidity *valid = c->vars.items[i]->now.valid;
        c->vars.items[i]->now = before[i];
        if (before[i].kind == TILE_MEANING_VALUE) c->vars.items[i]->now.valid = valid;
    }
}

/* A branch or loop of the IR within others. */
static bool enter_region(TileChecker *c, TileSpan span) {
    if (c->regions >= TILE_MAX_REGIONS) {
        tile_fail(c, TOO_DEEP, span, (unsigned)TILE_MAX_REGIONS);
        return false;
    }
    c->regions++;
    return true;
}

static Side run_side(TileChecker *c, TileBranch branch, bool own_block) {
    Side side = {.expr = branch.value};
    TileBlock *outer = c->builder.block;
    if (own_block) {
        side.block = TILE_NEW(c->module->arena, TileBlock);
        side.block->func = c->func;
        c->builder.block = side.block;
    }
    TileScopeMark mark = tile_scope_open(c);
    side.value = branch.run(c, branch.state);
    tile_scope_close(c, mark);
    side.vars = snapshot(c);
    c->builder.block = outer;
    return side;
}

static bool same_value(const TileMeaning *a, const TileMeaning *b) {
    return a->kind == b->kind && a->value == b->value && a->sum == b->sum && a->constant == b->constant &&
           a->bits == b->bits && a->rank == b->rank;
}

/* Both sides as values of one type; a result that one side lacks is zero there. `sides` where these are the values of
 * the sides themselves. */
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

/* The shape of both; each side is then stretched in its own block. */
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
    uint32_t start; /* when the branches began */
    TILE_LIST(TileValue *) values[2];
    TILE_LIST(const TileType *) types;
    TILE_LIST(TileMeaning *) targets; /* what becomes a result; shape and validity are known before */
} Join;

/* Work that belongs to a side is emitted there. */
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

/* A choice of one side takes the type of the other where its condition stands. */
static void settle_choice(TileChecker *c, const Join *join, TileMeaning *both) {
    for (int i = 0; i < 2; i++) {
        if (both[i].kind != TILE_MEANING_CHOICE || both[!i].kind != TILE_MEANING_VALUE) continue;
        Excursion excursion = enter_side(c, join->sides[i]);
        both[i] = tile_literal_as(c, &both[i], (TileScalar)both[!i].scalar, join->span);
        leave_side(c, excursion);
    }
}

/* A source of invalidity that was born inside of a branch does not leave it: its ops stand there. */
static bool outlives(TileChecker *c, const Join *join, const TileMeaning *m) {
    for (unsigned i = 0; m->valid && i < m->valid->count; i++) {
        const TileValidEntry *entry = &m->valid->entries[i];
        if (entry->atom->birth <= join->start) continue;
        tile_about_atom(c, entry->atom);
        TileDiagnostic *d =
            tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_INVALID_BRANCH, join->span, tile_atom_words(c, entry->atom));
        tile_diagnostic_note(c->diagnostics, d, entry->atom->span, "what may be invalid begins here");
        if (entry->where.file)
            tile_diagnostic_edit(c->diagnostics, d, entry->where, "(%s else 0)", tile_span_text(c, entry->where));
        tile_report(c, d);
        return false;
    }
    return true;
}

/* What the sides leave, `both`, becomes a result of the branch; false when reported. */
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
    joined->valid = tile_valid_union(c, both[0].valid, both[1].valid);
    tile_list_push(c->arena, &join->targets, joined);
    return true;
}

/* The conditions of a side's choice leave it, so that the literals can be chosen outside. */
static bool export_choice(TileChecker *c, Join *join, int side, TileMeaning *m) {
    if (m->kind != TILE_MEANING_CHOICE) return true;
    TileMeaning no = tile_bool_meaning(false), condition = m->items[0];
    *m = tile_choice_meaning(c, condition, m->items[1], m->items[2]);
    bool ok = add_joined(c, join, side ? no : condition, side ? condition : no, NULL, &m->items[0]);
    return ok && export_choice(c, join, side, &m->items[1]) && export_choice(c, join, side, &m->items[2]);
}

/* The value of the branch: literals stay literals, and what a type needs is decided where it is used. */
static bool join_value(TileChecker *c, Join *join, TileValue *condition, TileMeaning *value) {
    TileMeaning a = join->sides[0]->value, b = join->sides[1]->value;
    if (tile_is_error(&a) || tile_is_error(&b)) return false;
    if (!tile_is_literal(&a) || !tile_is_literal(&b)) return add_joined(c, join, a, b, join->sides, value);
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

/* The branch as an op, once it is known what leaves its sides. */
static void build_if(TileChecker *c, Join *join, TileValue *condition) {
    tile_emit_at(c, join->span);
    for (int i = 0; i < 2; i++) finish_side(c, join->sides[i]->block, join->values[i].items, join->values[i].count);
    TileOp *op = tile_build_if(tile_emitter(c), condition, join->types.items, (unsigned)join->types.count);
    for (int i = 0; i < 2; i++) tile_block_splice(&op->regions[i], join->sides[i]->block);
    for (size_t i = 0; i < join->targets.count; i++) {
        TileMeaning *target = join->targets.items[i];
        *target = tile_value_meaning(c, tile_op_result(op, (unsigned)i), target->extent, target->valid);
    }
}

static TileMeaning join_with_if(TileChecker *c, TileValue *condition, TileBranch then_branch, TileBranch else_branch,
                                bool want_value, TileSpan span) {
    TileMeaning *before = snapshot(c);
    size_t count = c->vars.count;
    Join join = {.start = c->clock, .span = span};
    Side then = run_side(c, then_branch, true);
    restore(c, before, count);
    Side otherwise = run_side(c, else_branch, true);
    restore(c, before, count);
    join.sides[0] = &then;
    join.sides[1] = &otherwise;

    TileMeaning value = tile_nothing(), *joined = TILE_NEW_ARRAY(c->arena, TileMeaning, count);
    bool failed = want_value && !join_value(c, &join, condition, &value);
    for (size_t i = 0; i < count && !failed; i++) {
        if (same_value(&then.vars[i], &otherwise.vars[i])) continue;
        bool broken = tile_is_error(&then.vars[i]) || tile_is_error(&otherwise.vars[i]);
        failed = broken || !add_joined(c, &join, then.vars[i], otherwise.vars[i], NULL, &joined[i]);
    }
    if (failed) {
        discard_sides(&then, &otherwise);
        return tile_error_meaning();
    }
    build_if(c, &join, condition);
    for (size_t i = 0; i < count; i++) {
        TileVar *var = c->vars.items[i];
        var->now = same_value(&then.vars[i], &otherwise.vars[i]) ? then.vars[i] : joined[i];
        var->now.valid = tile_valid_union(c, then.vars[i].valid, otherwise.vars[i].valid);
    }
    return value;
}

TileMeaning tile_select_meaning(TileChecker *c, TileMeaning *v, TileSpan span) {
    if (!tile_unify_shapes(c, v, 3, span)) return tile_error_meaning();
    TileValue *mask = tile_emit_value(c, &v[0]), *x = tile_emit_value(c, &v[1]), *y = tile_emit_value(c, &v[2]);
    const TileValidity *valid = tile_valid_union(c, tile_valid_union(c, v[0].valid, v[1].valid), v[2].valid);
    return tile_value_meaning(c, tile_emit_select(c, mask, x, y), v[1].extent, valid);
}

static TileMeaning select_one(TileChecker *c, const TileMeaning *condition, TileMeaning a, TileMeaning b,
                              const Side *const *sides, TileSpan span) {
    TileMeaning v[3] = {*condition, a, b};
    return unify_sides(c, &v[1], &v[2], sides, span) ? tile_select_meaning(c, v, span) : tile_error_meaning();
}

/* In a function lifted over tiles a condition is a tile, in one that is folded with it will be: both sides run, and
 * each element chooses. */
static TileMeaning join_with_select(TileChecker *c, const TileMeaning *condition, TileBranch then_branch,
                                    TileBranch else_branch, bool want_value, TileSpan span) {
    TileMeaning *before = snapshot(c);
    size_t count = c->vars.count;
    c->masked++;
    Side then = run_side(c, then_branch, false);
    restore(c, before, count);
    Side otherwise = run_side(c, else_branch, false);
    restore(c, before, count);
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

TileMeaning tile_join_branches(TileChecker *c, TileMeaning condition, TileBranch then, TileBranch otherwise,
                               bool want_value, TileSpan span) {
    if (tile_is_error(&condition)) return condition;
    if (condition.constant && condition.rank == 0) {
        TileBranch chosen = condition.bits ? then : otherwise;
        if (c->frame->lifted) return tile_join_untaken(c, chosen, condition.bits ? otherwise : then, span);
        TileScopeMark mark = tile_scope_open(c);
        uint8_t doubt = c->doubt;
        c->doubt |= condition.open;
        TileMeaning value = chosen.run(c, chosen.state);
        c->doubt = doubt;
        tile_scope_close_names(c, mark);
        return value;
    }
    if (condition.rank || c->in_combiner) return join_with_select(c, &condition, then, otherwise, want_value, span);
    if (!enter_region(c, span)) return tile_error_meaning();
    TileValue *value = tile_emit_value(c, &condition);
    TileMeaning joined = join_with_if(c, value, then, otherwise, want_value, span);
    c->regions--;
    return joined;
}

/* ---- if ---- */

static TileMeaning run_value(TileChecker *c, const void *state) { return tile_check_sequence_value(c, state); }

TileMeaning tile_run_nothing(TileChecker *c, const void *state) { return tile_nothing(); }

static TileMeaning run_statements(TileChecker *c, const void *state) {
    if (state) tile_check_sequence(c, state);
    return tile_nothing();
}

/* A value that an edit can change: not an `if` behind `else`. */
static const TileExpr *edited_value(const TileSequence *sequence) {
    return sequence && sequence->value && sequence->value->kind != TILE_EXPR_IF ? sequence->value : NULL;
}

TileMeaning tile_check_if(TileChecker *c, const TileExpr *expr, bool want_value) {
    TileMeaning condition = tile_check_condition(c, expr->a);
    if (want_value && !expr->otherwise) return tile_fail(c, NO_ELSE, expr->span);
    tile_emit_at(c, expr->span);
    TileMeaning (*run)(TileChecker *, const void *) = want_value ? run_value : run_statements;
    TileBranch then = {run, expr->then, edited_value(expr->then)};
    TileBranch otherwise = {run, expr->otherwise, edited_value(expr->otherwise)};
    tile_test_enter_branch(c);
    TileMeaning value = tile_join_branches(c, condition, then, otherwise, want_value, expr->span);
    tile_test_leave_branch(c);
    if (condition.constant && tile_expr_leaves(expr)) c->frame->left |= condition.open;
    return value;
}

/* ---- what a loop carries ---- */

typedef struct Carried {
    TILE_LIST(TileVar *) vars;
    TILE_LIST(TileValue *) values;
    uint32_t stamp; /* of the variables that are there */
} Carried;

static void add_carried(TileChecker *c, Carried *carried, TileVar *var) {
    if (!var || var->now.kind != TILE_MEANING_VALUE) return;
    if (!carried->stamp) carried->stamp = ++c->carried_stamp;
    if (var->carried == carried->stamp) return;
    var->carried = carried->stamp;
    tile_list_push(c->arena, &carried->vars, var);
}

/* A flag that is set for each element has the elements' shape from the beginning. */
static void add_flag(TileChecker *c, Carried *carried, TileVar *flag) {
    if (flag && c->frame->lifted && !flag->now.rank) flag->now = tile_lift(c, flag->now);
    add_carried(c, carried, flag);
}

static void collect_assigned(TileChecker *c, const TileSequence *sequence, Carried *carried);

static void collect_in_expr(TileChecker *c, const TileExpr *expr, Carried *carried) {
    if (!expr || expr->kind != TILE_EXPR_IF) return;
    if (expr->then) collect_assigned(c, expr->then, carried);
    if (expr->otherwise) collect_assigned(c, expr->otherwise, carried);
}

static void collect_assigned(TileChecker *c, const TileSequence *sequence, Carried *carried) {
    for (size_t i = 0; i < sequence->statements.count; i++) {
        const TileStatement *statement = sequence->statements.items[i];
        if (statement->kind == TILE_STATEMENT_ASSIGN && statement->target->kind == TILE_EXPR_NAME) {
            TileBound *bound = tile_scope_find(c, statement->target->name);
            if (bound) add_carried(c, carried, bound->var);
        }
        collect_in_expr(c, statement->value, carried);
        if (statement->body) collect_assigned(c, statement->body, carried);
    }
    collect_in_expr(c, sequence->value, carried);
}

static void collect_values(TileChecker *c, Carried *carried) {
    carried->values.count = 0;
    for (size_t i = 0; i < carried->vars.count; i++) {
        TileValue *value = tile_emit_value(c, &carried->vars.items[i]->now);
        tile_list_push(c->arena, &carried->values, value);
    }
}

/* The variables stand for `values` (arguments of a region, results of the loop). */
static void set_carried(TileChecker *c, const Carried *carried, TileValue *const *values) {
    for (size_t i = 0; i < carried->vars.count; i++) {
        TileVar *var = carried->vars.items[i];
        if (var->name && !values[i]->name) values[i]->name = tile_intern_string(c->context->strings, var->name);
        var->now = tile_value_meaning(c, values[i], var->now.extent, var->now.valid);
    }
}

/* ---- loops ---- */

typedef struct Loop {
    const TileStatement *statement;
    TileTiles tiles; /* over ranges */
    const TileSum *lo, *hi, *step;
    bool over_tiles, counted;
    TileSpan span;
    Carried carried;
    TileVar *broke, *counter;
} Loop;

static void bind_counter(TileChecker *c, const Loop *loop, TileValue *value) {
    TileNameRef name = loop->statement->names.items[0];
    TileSymbol *symbol = tile_value_symbol(c, name.name, value);
    const TileSum *last = tile_sum_subtract(&c->sums, loop->hi, tile_sum_integer(&c->sums, 1));
    const TileSum *lower = tile_sum_exceeds(&c->sums, loop->lo) ? NULL : loop->lo;
    const TileSum *upper = tile_sum_falls(&c->sums, loop->hi) ? NULL : last;
    tile_symbol_bound(&c->sums, symbol, lower, upper);
    if (lower && upper) tile_sum_assume(&c->sums, lower, upper);
    const TileSum *first = tile_sum_symbol(&c->sums, symbol);
    if (!value->name) value->name = tile_intern_string(c->context->strings, name.name);
    tile_scope_bind(c, name, loop->over_tiles ? tile_range_of(c, &loop->tiles, first, name) : tile_sum_meaning(first),
                    false);
}

static void run_loop_body(TileChecker *c, const Loop *loop) {
    TileLoopFrame frame = {
        .parent = c->frame->loop, .broke = loop->broke, .statement = loop->statement, .birth = c->clock};
    if (tile_sequence_leaves(loop->statement->body)) frame.skip = tile_scope_flag(c, NULL, tile_bool_meaning(false));
    c->frame->loop = &frame;
    tile_check_sequence(c, loop->statement->body);
    c->frame->loop = frame.parent;
}

typedef struct Attempt {
    TileMeaning *before;
    const TileValidity **valid;
    TileDiagnosticsMark diagnostics;
} Attempt;

static Attempt begin_attempt(TileChecker *c, const Carried *carried) {
    Attempt attempt = {.before = snapshot(c), .diagnostics = tile_diagnostics_mark(c->diagnostics)};
    attempt.valid = TILE_NEW_ARRAY(c->arena, const TileValidity *, carried->vars.count);
    for (size_t i = 0; i < carried->vars.count; i++) attempt.valid[i] = carried->vars.items[i]->now.valid;
    return attempt;
}

/* A body is right once it was checked under all that its variables may lack in the end. */
static bool has_grown(TileChecker *c, const Carried *carried, const Attempt *attempt) {
    if (c->diagnostics->error_count > attempt->diagnostics.error_count) return false; /* more lacking, more errors */
    for (size_t i = 0; i < carried->vars.count; i++)
        if (tile_valid_missing(carried->vars.items[i]->now.valid, attempt->valid[i])) return true;
    return false;
}

static void run_for(TileChecker *c, Loop *loop) {
    size_t count = c->vars.count;
    collect_values(c, &loop->carried);
    TileValue *lo = tile_emit_sum(c, loop->lo), *step = tile_emit_sum(c, loop->step);
    TileValue *hi = c->untaken ? lo : tile_emit_sum(c, loop->hi);
    tile_emit_at(c, loop->span);
    TileOp *op =
        tile_build_for(tile_emitter(c), lo, hi, step, loop->carried.values.items, (unsigned)loop->carried.values.count);
    TileBlock *outer = c->builder.block, *body = &op->regions[0];
    if (loop->statement->is_ordered) tile_op_set_integer(c->module, op, TILE_ATTRIBUTE_ORDERED, 1);
    for (;;) {
        Attempt attempt = begin_attempt(c, &loop->carried);
        TileScopeMark mark = tile_scope_open(c);
        c->builder.block = body;
        set_carried(c, &loop->carried, body->arguments + 1);
        bind_counter(c, loop, body->arguments[0]);
        run_loop_body(c, loop);
        collect_values(c, &loop->carried);
        tile_emit_at(c, loop->span);
        tile_build_end(tile_emitter(c), TILE_OP_YIELD, loop->carried.values.items,
                       (unsigned)loop->carried.values.count);
        tile_scope_close(c, mark);
        c->builder.block = outer;
        if (!has_grown(c, &loop->carried, &attempt)) break;
        tile_discard_block(body);
        tile_diagnostics_rewind(c->diagnostics, attempt.diagnostics);
        restore(c, attempt.before, count);
    }
    TileValue **results = TILE_NEW_ARRAY(c->arena, TileValue *, op->result_count);
    for (unsigned i = 0; i < op->result_count; i++) results[i] = tile_op_result(op, i);
    set_carried(c, &loop->carried, results);
}

/* Does the loop go on? The counter's limit or the text's condition, and no flag that ends it. A tile in a function
 * that is lifted: which elements go on. */
static TileMeaning emit_loop_condition(TileChecker *c, const Loop *loop) {
    TileMeaning both[2];
    if (loop->counted) {
        TileValue *at = tile_emit_value(c, &loop->counter->now), *hi = tile_emit_sum(c, loop->hi);
        both[0] = tile_value_meaning(c, tile_emit_binary(c, TILE_OP_LT, at, hi), NULL, NULL);
    } else {
        both[0] = tile_check_condition(c, loop->statement->value);
    }
    TileVar *ends[] = {loop->broke, c->frame->returned};
    both[1] = tile_none_set(c, ends, 2, loop->span);
    if (tile_is_error(&both[0]) || tile_is_error(&both[1])) return tile_bool_meaning(false);
    if (both[1].constant) return both[1].bits ? both[0] : both[1];
    if (both[0].constant) return both[0].bits ? both[1] : both[0];
    if (!tile_unify_shapes(c, both, 2, loop->span)) return tile_bool_meaning(false);
    TileValue *x = tile_emit_value(c, &both[0]), *y = tile_emit_value(c, &both[1]);
    const TileValidity *valid = tile_valid_union(c, both[0].valid, both[1].valid);
    return tile_value_meaning(c, tile_emit_binary(c, TILE_OP_AND, x, y), both[0].extent, valid);
}

TileValue *tile_emit_one_bool(TileChecker *c, const TileMeaning *m, TileName kind) {
    TileValue *x = tile_emit_value(c, m);
    if (m->rank && m->valid)
        x = tile_emit_filled(c, m, m->valid, tile_build_bool(tile_emitter(c), kind == TILE_KIND_ALL));
    for (int axis = m->rank; axis-- > 0;) x = tile_build_reduce(tile_emitter(c), x, kind, axis);
    return x;
}

static void emit_condition_region(TileChecker *c, Loop *loop, TileBlock *region) {
    TileScopeMark mark = tile_scope_open(c);
    c->builder.block = region;
    set_carried(c, &loop->carried, region->arguments);
    TILE_LIST(TileValue *) values = {0};
    TileMeaning on = emit_loop_condition(c, loop);
    if (c->untaken) on = tile_bool_meaning(false);
    tile_list_push(c->arena, &values, tile_emit_one_bool(c, &on, TILE_KIND_ANY));
    for (unsigned i = 0; i < region->argument_count; i++) tile_list_push(c->arena, &values, region->arguments[i]);
    tile_build_end(tile_emitter(c), TILE_OP_CONDITION, values.items, (unsigned)values.count);
    tile_scope_close(c, mark);
}

static TileMeaning run_turn(TileChecker *c, const void *state) {
    run_loop_body(c, state);
    return tile_nothing();
}

/* The counter's next number or, where that is not below the limit, any that is not: i + step, if it does not wrap. */
static TileMeaning next_number(TileChecker *c, const Loop *loop, const TileSum *at) {
    const TileSum *next = tile_sum_add(&c->sums, at, loop->step), *past;
    bool exceeds = tile_sum_add_exceeds(&c->sums, loop->hi, loop->step, &past);
    if (tile_sum_is_literal(loop->step, 1) || !exceeds) return tile_sum_meaning(next);
    tile_emit_at(c, loop->span);
    TileValue *hi = tile_emit_sum(c, loop->hi), *step = tile_emit_sum(c, loop->step);
    TileValue *left = tile_emit_binary(c, TILE_OP_SUB, hi, tile_emit_sum(c, at));
    left = tile_build_bitcast(tile_emitter(c), left, TILE_U64);
    step = tile_build_bitcast(tile_emitter(c), step, TILE_U64);
    TileValue *more = tile_emit_binary(c, TILE_OP_GT, left, step);
    return tile_scalar_meaning(c, tile_emit_select(c, more, tile_emit_sum(c, next), hi), NULL);
}

static void emit_body_region(TileChecker *c, Loop *loop, TileBlock *region) {
    TileScopeMark mark = tile_scope_open(c);
    c->builder.block = region;
    set_carried(c, &loop->carried, region->arguments);
    TileMeaning at = {0}, on = {0};
    if (loop->counted) at = loop->counter->now;
    if (c->frame->lifted) on = emit_loop_condition(c, loop);
    if (loop->counted) bind_counter(c, loop, region->arguments[0]);
    if (on.rank) /* each element has its own end: those past it keep what they have */
        tile_join_branches(c, on, (TileBranch){.run = run_turn, .state = loop}, (TileBranch){.run = tile_run_nothing},
                           false, loop->span);
    else
        run_loop_body(c, loop);
    if (loop->counted) loop->counter->now = next_number(c, loop, at.sum);
    collect_values(c, &loop->carried);
    tile_emit_at(c, loop->span);
    tile_build_end(tile_emitter(c), TILE_OP_YIELD, loop->carried.values.items, (unsigned)loop->carried.values.count);
    tile_scope_close(c, mark);
}

static void run_while(TileChecker *c, Loop *loop) {
    size_t count = c->vars.count;
    collect_values(c, &loop->carried);
    tile_emit_at(c, loop->span);
    TileOp *op = tile_build_while(tile_emitter(c), loop->carried.values.items, (unsigned)loop->carried.values.count);
    TileBlock *outer = c->builder.block;
    for (;;) {
        Attempt attempt = begin_attempt(c, &loop->carried);
        emit_condition_region(c, loop, &op->regions[0]);
        emit_body_region(c, loop, &op->regions[1]);
        c->builder.block = outer;
        if (!has_grown(c, &loop->carried, &attempt)) break;
        tile_discard_block(&op->regions[0]);
        tile_discard_block(&op->regions[1]);
        tile_diagnostics_rewind(c->diagnostics, attempt.diagnostics);
        restore(c, attempt.before, count);
    }
    TileValue **results = TILE_NEW_ARRAY(c->arena, TileValue *, op->result_count);
    for (unsigned i = 0; i < op->result_count; i++) results[i] = tile_op_result(op, i);
    set_carried(c, &loop->carried, results);
}

/* A loop that may be left carries its counter and flags, and is a `while`. */
static void run_loop(TileChecker *c, Loop *loop) {
    if (!enter_region(c, loop->span)) return;
    const TileSequence *body = loop->statement->body;
    bool breaks = tile_sequence_breaks(body), returns = tile_sequence_returns(body);
    bool as_while = !loop->counted || breaks || returns;
    size_t vars = c->vars.count;
    if (loop->counted && as_while) {
        loop->counter = tile_scope_flag(c, NULL, tile_sum_meaning(loop->lo));
        add_carried(c, &loop->carried, loop->counter);
    }
    if (breaks) loop->broke = tile_scope_flag(c, NULL, tile_bool_meaning(false));
    add_flag(c, &loop->carried, loop->broke);
    if (returns) add_flag(c, &loop->carried, c->frame->returned);
    for (unsigned i = 0; returns && i < c->frame->result_count; i++)
        add_carried(c, &loop->carried, c->frame->results[i]);
    collect_assigned(c, body, &loop->carried);
    if (!loop->counted) collect_in_expr(c, loop->statement->value, &loop->carried);
    if (as_while)
        run_while(c, loop);
    else
        run_for(c, loop);
    c->vars.count = vars;
    c->regions--;
}

/* What folds is done for many elements at once. */
static bool is_in_combiner(TileChecker *c, const TileStatement *statement) {
    if (c->in_combiner) tile_fail(c, UNSUPPORTED, statement->span, "a loop in a function that folds");
    return c->in_combiner;
}

void tile_check_while(TileChecker *c, const TileStatement *statement) {
    if (is_in_combiner(c, statement)) return;
    Loop loop = {.statement = statement, .span = statement->span};
    run_loop(c, &loop);
}

/* ---- for ---- */

static bool check_step(TileChecker *c, const TileStatement *statement, const TileSum **step) {
    *step = tile_sum_integer(&c->sums, 1);
    if (!statement->step) return true;
    *step = tile_check_integer(c, statement->step, "the step");
    if (!*step) return false;
    if (tile_sum_at_most(&c->sums, tile_sum_integer(&c->sums, 1), *step)) return true;
    TileSpan span = statement->step->span;
    tile_about_sum(c, *step);
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BAD_STEP, span);
    int64_t known;
    if (tile_sum_known(&c->sums, *step, &known))
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                             "a loop counts up; what is to go down takes `hi - 1 - i` for an index");
    else
        tile_diagnostic_edit(c->diagnostics, d, span, "max(%s, 1)", tile_span_text(c, span));
    tile_report(c, d);
    return false;
}

/* One turn of a loop that is unrolled. */
typedef struct StaticTurn {
    const Loop *loop;
    int64_t at;
    unsigned open; /* how many turns there are */
} StaticTurn;

static TileMeaning run_static_turn(TileChecker *c, const void *state) {
    const StaticTurn *turn = state;
    TileNameRef name = turn->loop->statement->names.items[0];
    TileMeaning at = tile_sum_meaning(tile_sum_integer(&c->sums, turn->at));
    tile_open_meaning(c, &at, turn->open);
    TileScopeMark mark = tile_scope_open(c);
    if (turn->loop->over_tiles) at = tile_range_of(c, &turn->loop->tiles, at.sum, name);
    tile_scope_bind(c, name, at, false);
    run_loop_body(c, turn->loop);
    tile_scope_close_names(c, mark);
    return tile_nothing();
}

/* Turns behind one that may have left the loop run where it did not. */
static void run_static(TileChecker *c, Loop *loop, int64_t lo, uint64_t turns, int64_t step) {
    size_t vars = c->vars.count;
    unsigned open = tile_sum_open(loop->lo) | tile_sum_open(loop->hi) | tile_sum_open(loop->step);
    if (open) c->open_turns++, c->unrolled = true;
    if (tile_sequence_breaks(loop->statement->body)) loop->broke = tile_scope_flag(c, NULL, tile_bool_meaning(false));
    TileVar *ends[] = {loop->broke, c->frame->returned};
    for (uint64_t i = 0; i < turns && !tile_is_spent(c); i++) {
        StaticTurn turn = {loop, (int64_t)((uint64_t)lo + i * (uint64_t)step), open};
        tile_spend(c, 1); /* also a turn that does nothing takes time */
        TileMeaning on = tile_none_set(c, ends, 2, loop->span);
        bool decided = on.constant && !tile_any_undecided(ends, 2);
        if (tile_is_error(&on) || (decided && !on.bits)) break;
        if (decided)
            run_static_turn(c, &turn);
        else
            tile_join_branches(c, on, (TileBranch){.run = run_static_turn, .state = &turn},
                               (TileBranch){.run = tile_run_nothing}, false, loop->span);
    }
    c->vars.count = vars;
    if (open) c->open_turns--;
}

static void fail_turns(TileChecker *c, TileSpan span, uint64_t most) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_UNROLL_LIMIT, span, (unsigned long long)most);
    tile_diagnostic_note_limit(c->diagnostics, d, TILE_LIMIT_TURNS);
    tile_report(c, d);
}

static void check_static_for(TileChecker *c, Loop *loop) {
    uint64_t most = c->diagnostics->limits->most[TILE_LIMIT_TURNS];
    int64_t lo, hi, step;
    TileSpan span = loop->statement->value->span;
    bool known = tile_sum_known(&c->sums, loop->lo, &lo) && tile_sum_known(&c->sums, loop->hi, &hi) &&
                 tile_sum_known(&c->sums, loop->step, &step);
    bool large = known && hi > lo && ((uint64_t)hi - (uint64_t)lo - 1) / (uint64_t)step >= most;
    const TileSum *const parts[] = {loop->lo, loop->hi, loop->step};
    for (unsigned i = 0; i < 3 && !known; i++) tile_about_unknown(c, parts[i]);
    for (unsigned i = 0; i < 3 && large; i++) tile_about_sum(c, parts[i]);
    if (!known)
        tile_fail(c, NOT_CONSTANT, span, "a bound of `static for`");
    else if (large)
        fail_turns(c, span, most);
    else if (hi > lo)
        run_static(c, loop, lo, ((uint64_t)hi - (uint64_t)lo - 1) / (uint64_t)step + 1, step);
}

/* a..b */
static bool check_bounds(TileChecker *c, const TileStatement *statement, Loop *loop) {
    const TileExpr *expr = statement->value;
    if (expr->kind != TILE_EXPR_BINARY || expr->op != TILE_TOKEN_DOTS) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_ITERABLE, expr->span);
        const TileBound *bound = expr->kind == TILE_EXPR_NAME ? tile_scope_find(c, expr->name) : NULL;
        if (expr->kind == TILE_EXPR_INTEGER || (bound && bound->meaning.sum))
            tile_diagnostic_edit(c->diagnostics, d, expr->span, "0..%s", tile_span_text(c, expr->span));
        tile_report(c, d);
        return false;
    }
    loop->lo = tile_check_integer(c, expr->a, "a bound");
    loop->hi = tile_check_integer(c, expr->b, "a bound");
    return loop->lo && loop->hi && check_step(c, statement, &loop->step);
}

void tile_check_for(TileChecker *c, const TileStatement *statement) {
    Loop loop = {.statement = statement, .counted = true, .span = statement->span};
    if (statement->tuple) {
        TileSpan names = statement->names.items[0].span;
        names.end = statement->names.items[statement->names.count - 1].span.end;
        tile_fail(c, FOR_NAMES, names);
        return;
    }
    loop.over_tiles = tile_is_call_of(statement->value, "tiles");
    if (loop.over_tiles) {
        if (statement->step) tile_fail(c, BAD_STEP, statement->step->span);
        if (!tile_check_tiles(c, statement->value, &loop.tiles)) return;
        loop.lo = loop.tiles.lo;
        loop.hi = loop.tiles.hi;
        loop.step = loop.tiles.size;
    } else if (!check_bounds(c, statement, &loop)) {
        return;
    }
    if (statement->is_static)
        check_static_for(c, &loop);
    else if (!is_in_combiner(c, statement))
        run_loop(c, &loop);
}
