/* Loops: `for`, `while` and `static for`. Variables that the body assigns are loop-carried. Their validity is a
 * fixpoint: the body is emitted again until the atoms of its variables no longer grow. */
#include "parser/check/bounds.h"
#include "parser/check/branch.h"
#include "parser/check/claim.h"
#include "parser/check/element.h"
#include "parser/check/covered.h"
#include "parser/check/emit.h"
#include "parser/check/leave.h"
#include "parser/check/loop.h"
#include "parser/check/meaning.h"
#include "parser/check/operand.h"
#include "parser/check/places.h"
#include "parser/check/range.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/sequence.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"
#include "parser/check/validity.h"

#include <string.h>

/* ---- loop-carried values ---- */

typedef struct Carried {
    TILE_LIST(TileVar *) vars;
    TILE_LIST(TileValue *) values;
    TileBounds *kept; /* bounds of each variable that hold before every iteration: what it was before the loop */
    bool broken;      /* one of these does not hold after the body */
    uint32_t stamp;   /* marks the variables that are in the list */
} Carried;

static void add_carried(TileChecker *c, Carried *carried, TileVar *var) {
    if (!var || var->now.kind != TILE_MEANING_VALUE) return;
    if (!carried->stamp) carried->stamp = ++c->carried_stamp;
    if (var->carried == carried->stamp) return;
    var->carried = carried->stamp;
    tile_list_push(c->arena, &carried->vars, var);
}

/* A flag for each element has the elements' shape from the start. */
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

static void collect_target(TileChecker *c, const TileExpr *target, Carried *carried) {
    for (size_t i = 0; target->kind == TILE_EXPR_TUPLE && i < target->items.count; i++)
        collect_target(c, target->items.items[i], carried);
    TileBound *bound = target->kind == TILE_EXPR_NAME ? tile_scope_find(c, target->name) : NULL;
    if (bound) add_carried(c, carried, bound->var);
}

static void collect_assigned(TileChecker *c, const TileSequence *sequence, Carried *carried) {
    for (size_t i = 0; i < sequence->statements.count; i++) {
        const TileStatement *statement = sequence->statements.items[i];
        if (statement->kind == TILE_STATEMENT_ASSIGN) collect_target(c, statement->target, carried);
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

/* Sets the variables to `values` (arguments of a region, results of the loop). */
static void set_carried(TileChecker *c, const Carried *carried, TileValue *const *values) {
    for (size_t i = 0; i < carried->vars.count; i++) {
        TileVar *var = carried->vars.items[i];
        if (var->name && !values[i]->name) values[i]->name = tile_intern_string(c->context->strings, var->name);
        var->now = tile_value_meaning(c, values[i], var->now.extent, var->now.valid);
        if (var->name) tile_name_symbol(&var->now, var->name);
        if (var->now.rank == 0) var->now = tile_bounded(c, var->now, carried->kept[i]);
    }
}

/* The same where the variables have these values already, in another region: what is known of them stays known. */
static void move_carried(TileChecker *c, const Carried *carried, TileValue *const *values) {
    for (size_t i = 0; i < carried->vars.count; i++) {
        TileMeaning *now = &carried->vars.items[i]->now;
        const TileSum *sum = now->sum ? now->sum : now->rank ? NULL : now->lowest;
        if (now->rank) tile_element_move(c, now->value, values[i]);
        now->value = values[i];
        if (sum) sum->products[0].symbols[0]->value = values[i];
    }
}

/* ---- bounds that last ---- */

/* An integer may stay above or below what it was before the loop. Both are tried; what does not hold is noted, so that
 * the body is not checked again for it whenever a loop around is. */
static void keep_bounds(TileChecker *c, const TileStatement *statement, Carried *carried) {
    carried->kept = TILE_NEW_ARRAY(c->arena, TileBounds, carried->vars.count);
    for (size_t i = 0; i < carried->vars.count; i++) {
        const TileVar *var = carried->vars.items[i];
        const TileSum *was = var->name && var->now.scalar != TILE_U64 ? tile_scalar_sum(c, &var->now) : NULL;
        if (!was || var->now.valid) continue;
        was = tile_sum_code(&c->sums, was);
        carried->kept[i] = (TileBounds){was, was};
        for (const TileLost *lost = tile_map_get(&c->lost, statement); lost; lost = lost->next) {
            if (lost->name != var->name || lost->call != c->frame->call.begin) continue;
            if (lost->above) carried->kept[i].lowest = NULL;
            if (lost->below) carried->kept[i].highest = NULL;
        }
    }
}

/* At the end of the body: do the bounds hold for the next iteration? */
static void check_bounds_kept(TileChecker *c, const TileStatement *statement, Carried *carried) {
    carried->broken = false;
    for (size_t i = 0; i < carried->vars.count; i++) {
        const TileVar *var = carried->vars.items[i];
        TileBounds *kept = &carried->kept[i];
        if (!kept->lowest && !kept->highest) continue;
        const TileSum *now = tile_scalar_sum(c, &var->now);
        bool above = kept->lowest && !(now && tile_sum_at_most(&c->sums, kept->lowest, now));
        bool below = kept->highest && !(now && tile_sum_at_most(&c->sums, now, kept->highest));
        if (above) kept->lowest = NULL;
        if (below) kept->highest = NULL;
        if (!above && !below) continue;
        TileLost *lost = TILE_NEW(c->arena, TileLost);
        *lost = (TileLost){tile_map_get(&c->lost, statement), var->name, c->frame->call.begin, above, below};
        tile_map_set(&c->lost, statement, lost);
        carried->broken = true;
    }
}

/* ---- loops ---- */

typedef struct Loop {
    const TileStatement *statement;
    TileTiles tiles; /* of a loop over ranges */
    const TileSum *lo, *hi, *step;
    bool over_tiles, counted;
    TileSpan span;
    Carried carried;
    const TileClaim *claim; /* of the condition, where it is a scalar of the text */
    TileVar *broke, *counter;
} Loop;

static void bind_counter(TileChecker *c, const Loop *loop, TileValue *value) {
    TileNameRef name = loop->statement->names.items[0];
    TileSymbol *symbol = tile_value_symbol(c, name.name, value);
    const TileSum *last = tile_sum_subtract(&c->sums, loop->hi, tile_sum_integer(&c->sums, 1));
    const TileSum *lower = tile_sum_exceeds(&c->sums, loop->lo) ? NULL : loop->lo;
    const TileSum *upper = tile_sum_falls(&c->sums, loop->hi) ? NULL : last;
    symbol->even = tile_sum_is_even(loop->lo) && tile_sum_is_even(loop->step);
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
    Attempt attempt = {.before = tile_vars_snapshot(c), .diagnostics = tile_diagnostics_mark(c->diagnostics)};
    attempt.valid = TILE_NEW_ARRAY(c->arena, const TileValidity *, carried->vars.count);
    for (size_t i = 0; i < carried->vars.count; i++) attempt.valid[i] = carried->vars.items[i]->now.valid;
    return attempt;
}

/* The body is correct only if it was checked with the final atoms of its variables. */
static bool has_grown(TileChecker *c, const Carried *carried, const Attempt *attempt) {
    /* With more atoms, or less that is known, there are more errors. */
    if (c->diagnostics->error_count > attempt->diagnostics.error_count) return false;
    if (carried->broken) return true;
    for (size_t i = 0; i < carried->vars.count; i++)
        if (tile_valid_missing(carried->vars.items[i]->now.valid, attempt->valid[i])) return true;
    return false;
}

static void add_cover(TileChecker *c, const Loop *loop, const TileOp *op) {
    bool all = loop->over_tiles ? tile_sum_is_literal(loop->tiles.lo, 0)
                                : tile_sum_is_literal(loop->lo, 0) && tile_sum_is_literal(loop->step, 1);
    const TileSum *end = loop->over_tiles ? loop->tiles.hi : loop->hi;
    tile_cover_add(c, op, loop->statement->names.items[0].name, all ? end : NULL);
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
        if (c->in_grid) add_cover(c, loop, op);
        run_loop_body(c, loop);
        check_bounds_kept(c, loop->statement, &loop->carried);
        collect_values(c, &loop->carried);
        tile_emit_at(c, loop->span);
        tile_build_end(tile_emitter(c), TILE_OP_YIELD, loop->carried.values.items,
                       (unsigned)loop->carried.values.count);
        tile_scope_close(c, mark);
        c->builder.block = outer;
        if (!has_grown(c, &loop->carried, &attempt)) break;
        tile_discard_block(body);
        tile_diagnostics_rewind(c->diagnostics, attempt.diagnostics);
        tile_vars_restore(c, attempt.before, count);
    }
    TileValue **results = TILE_NEW_ARRAY(c->arena, TileValue *, op->result_count);
    for (unsigned i = 0; i < op->result_count; i++) results[i] = tile_op_result(op, i);
    set_carried(c, &loop->carried, results);
}

/* The condition of the loop: the counter's limit or the text's condition, and no flag that leaves the loop. In a lifted
 * function a tile: the elements that continue. */
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
    TileMeaning told[] = {both[0], both[1]};
    if (!tile_unify_shapes(c, both, 2, loop->span)) return tile_bool_meaning(false);
    TileValue *x = tile_emit_value(c, &both[0]), *y = tile_emit_value(c, &both[1]);
    const TileValidity *valid = tile_valid_union(c, both[0].valid, both[1].valid);
    TileMeaning on = tile_value_meaning(c, tile_emit_binary(c, TILE_OP_AND, x, y), both[0].extent, valid);
    on.claim = tile_claim_both(c, tile_claim_within(c, &told[0], &on), tile_claim_within(c, &told[1], &on));
    return on;
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
    loop->claim = on.rank || c->frame->lifted ? NULL : on.claim;
    tile_list_push(c->arena, &values, tile_emit_one_bool(c, &on, TILE_KIND_ANY));
    for (unsigned i = 0; i < region->argument_count; i++) tile_list_push(c->arena, &values, region->arguments[i]);
    tile_build_end(tile_emitter(c), TILE_OP_CONDITION, values.items, (unsigned)values.count);
    tile_scope_close(c, mark);
}

static TileMeaning run_iteration(TileChecker *c, const void *state) {
    run_loop_body(c, state);
    return tile_nothing();
}

/* The counter's next value, i + step; or, if that wraps, some value that is not below the limit. */
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
    move_carried(c, &loop->carried, region->arguments);
    tile_claim_assume(c, loop->claim, true);
    TileMeaning at = {0}, on = {0};
    if (loop->counted) at = loop->counter->now;
    if (c->frame->lifted) on = emit_loop_condition(c, loop);
    if (loop->counted) bind_counter(c, loop, region->arguments[0]);
    if (on.rank) /* elements whose loop has ended keep their values */
        tile_join_branches(c, on, (TileBranch){.run = run_iteration, .state = loop},
                           (TileBranch){.run = tile_run_nothing}, false, loop->span);
    else
        run_loop_body(c, loop);
    check_bounds_kept(c, loop->statement, &loop->carried);
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
        tile_vars_restore(c, attempt.before, count);
    }
    TileValue **results = TILE_NEW_ARRAY(c->arena, TileValue *, op->result_count);
    for (unsigned i = 0; i < op->result_count; i++) results[i] = tile_op_result(op, i);
    set_carried(c, &loop->carried, results);
}

/* A loop with `break` or `return` has its counter and flags as loop-carried values, and is a `while`. */
static void run_loop(TileChecker *c, Loop *loop) {
    if (!tile_enter_region(c, loop->span)) return;
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
    keep_bounds(c, loop->statement, &loop->carried);
    if (as_while)
        run_while(c, loop);
    else
        run_for(c, loop);
    c->vars.count = vars;
    c->regions--;
}

/* A combiner has no control flow: whoever emits it does so in another way. The loop itself is not looked at. */
static bool is_in_combiner(TileChecker *c) {
    if (c->in_combiner) c->combiner_loops = true;
    return c->in_combiner;
}

void tile_check_while(TileChecker *c, const TileStatement *statement) {
    if (is_in_combiner(c)) return;
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
                             "a loop counts up; to go down, use `hi - 1 - i` as the index");
    else
        tile_diagnostic_edit(c->diagnostics, d, span, "max(%s, 1)", tile_span_text(c, span));
    tile_report(c, d);
    return false;
}

/* One iteration of an unrolled loop. */
typedef struct StaticIteration {
    const Loop *loop;
    int64_t at;
    unsigned open; /* TileOpen of the trip count */
} StaticIteration;

static TileMeaning run_static_iteration(TileChecker *c, const void *state) {
    const StaticIteration *iteration = state;
    TileNameRef name = iteration->loop->statement->names.items[0];
    bool tiles = iteration->loop->over_tiles, literal = !tiles && iteration->loop->statement->is_static;
    TileMeaning at =
        literal ? tile_integer_meaning(iteration->at) : tile_sum_meaning(tile_sum_integer(&c->sums, iteration->at));
    tile_open_meaning(c, &at, iteration->open);
    TileScopeMark mark = tile_scope_open(c);
    if (tiles) at = tile_range_of(c, &iteration->loop->tiles, at.sum, name);
    tile_scope_bind(c, name, at, false);
    run_loop_body(c, iteration->loop);
    tile_scope_close_names(c, mark);
    return tile_nothing();
}

/* Iterations after one that may have left the loop are executed under its flags. */
static void run_static(TileChecker *c, Loop *loop, int64_t lo, uint64_t trip_count, int64_t step) {
    size_t vars = c->vars.count;
    unsigned open = tile_sum_open(loop->lo) | tile_sum_open(loop->hi) | tile_sum_open(loop->step);
    if (open) c->open_loops++, c->unrolled = true;
    if (tile_sequence_breaks(loop->statement->body)) loop->broke = tile_scope_flag(c, NULL, tile_bool_meaning(false));
    TileVar *ends[] = {loop->broke, c->frame->returned};
    for (uint64_t i = 0; i < trip_count && !tile_is_spent(c); i++) {
        StaticIteration iteration = {loop, (int64_t)((uint64_t)lo + i * (uint64_t)step), open};
        tile_spend(c, 1); /* an iteration without ops takes time, too */
        TileMeaning on = tile_none_set(c, ends, 2, loop->span);
        bool decided = on.constant && !tile_any_undecided(ends, 2);
        if (tile_is_error(&on) || (decided && !on.bits)) break;
        if (decided)
            run_static_iteration(c, &iteration);
        else
            tile_join_branches(c, on, (TileBranch){.run = run_static_iteration, .state = &iteration},
                               (TileBranch){.run = tile_run_nothing}, false, loop->span);
    }
    c->vars.count = vars;
    if (open) c->open_loops--;
}

static void fail_iterations(TileChecker *c, TileSpan span, uint64_t most) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_UNROLL_LIMIT, span, (unsigned long long)most);
    tile_diagnostic_note_limit(c->diagnostics, d, TILE_LIMIT_ITERATIONS);
    tile_report(c, d);
}

/* Products of an unrolled window have shared memory, panels and code each for itself; those of a loop have it in turn. So a body that
 * knows its number by places alone is a loop, if it can be one: else whatever its check emitted and said is taken back. */
static bool run_as_loop(TileChecker *c, const Loop *loop) {
    if (loop->over_tiles || !c->in_grid || c->in_combiner || c->frame->lifted || tile_sum_open(loop->lo) | tile_sum_open(loop->hi) ||
        !tile_only_places(c, loop->statement))
        return false;
    Loop rolled = *loop;
    TileDiagnosticsMark said = tile_diagnostics_mark(c->diagnostics);
    TileScopeMark scope = tile_scope_open(c);
    TileMeaning *before = tile_vars_snapshot(c);
    size_t covers = c->covers.count, vars = c->vars.count;
    const TileOp *last = c->builder.block->last;
    run_loop(c, &rolled);
    if (c->diagnostics->list.count == said.count && c->diagnostics->error_count == said.error_count) {
        c->scope_start = scope.scope_start;
        return true;
    }
    tile_diagnostics_rewind(c->diagnostics, said);
    tile_vars_restore(c, before, vars);
    tile_scope_close(c, scope);
    c->covers.count = covers;
    while (c->builder.block->last != last) tile_op_erase(c->builder.block->last);
    return false;
}

static void check_static_for(TileChecker *c, Loop *loop) {
    uint64_t most = c->diagnostics->limits->most[TILE_LIMIT_ITERATIONS];
    int64_t lo, hi, step;
    TileSpan span = loop->statement->value->span;
    bool known = tile_sum_known(&c->sums, loop->lo, &lo) && tile_sum_known(&c->sums, loop->hi, &hi) &&
                 tile_sum_known(&c->sums, loop->step, &step);
    bool large = known && hi > lo && ((uint64_t)hi - (uint64_t)lo - 1) / (uint64_t)step >= most;
    const TileSum *const parts[] = {loop->lo, loop->hi, loop->step};
    for (unsigned i = 0; i < 3 && !known; i++) tile_about_unknown(c, parts[i]);
    for (unsigned i = 0; i < 3 && large; i++) tile_about_sum(c, parts[i]);
    if (!known) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_CONSTANT, span, "a bound of `static for`");
        tile_propose_constant(c, d, loop->statement->value);
        tile_report(c, d);
    } else if (large)
        fail_iterations(c, span, most);
    else if (hi > lo && !((uint64_t)hi - (uint64_t)lo > (uint64_t)step && run_as_loop(c, loop)))
        run_static(c, loop, lo, ((uint64_t)hi - (uint64_t)lo - 1) / (uint64_t)step + 1, step);
}

static bool has_constant_bounds(TileChecker *c, const Loop *loop) {
    int64_t number;
    return tile_sum_known(&c->sums, loop->lo, &number) && tile_sum_known(&c->sums, loop->hi, &number) &&
           tile_sum_known(&c->sums, loop->step, &number);
}

/* `range(n)`, `range(a, b)` and `range(a, b, step)`, as in Python. */
static void propose_range(TileChecker *c, TileDiagnostic *d, const TileExpr *expr) {
    size_t count = expr->kind == TILE_EXPR_CALL ? expr->arguments.count : 0;
    if (count < 1 || count > 3 || !(tile_is_call_of(expr, "range") || tile_is_call_of(expr, "arange"))) return;
    const char *text[3] = {NULL};
    for (size_t i = 0; i < count; i++) text[i] = tile_span_text(c, expr->arguments.items[i].value->span);
    tile_diagnostic_edit(c->diagnostics, d, expr->span, "%s..%s%s%s", count > 1 ? text[0] : "0", text[count > 1],
                         count > 2 ? " step " : "", count > 2 ? text[2] : "");
}

/* An integer of numbers and names, all of whose operators are tighter than `..`. */
static bool is_count(TileChecker *c, const TileExpr *expr) {
    if (expr->kind == TILE_EXPR_INTEGER) return true;
    if (expr->kind == TILE_EXPR_NAME) {
        const TileBound *bound = tile_scope_find(c, expr->name);
        return bound && bound->meaning.sum;
    }
    if (expr->kind != TILE_EXPR_BINARY) return false;
    bool computes = expr->op == TILE_TOKEN_PLUS || expr->op == TILE_TOKEN_MINUS || expr->op == TILE_TOKEN_STAR ||
                    expr->op == TILE_TOKEN_SLASH || expr->op == TILE_TOKEN_PERCENT;
    return computes && is_count(c, expr->a) && is_count(c, expr->b);
}

/* a..b */
static bool check_bounds(TileChecker *c, const TileStatement *statement, Loop *loop) {
    const TileExpr *expr = statement->value;
    if (expr->kind != TILE_EXPR_BINARY || expr->op != TILE_TOKEN_DOTS) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_ITERABLE, expr->span);
        if (is_count(c, expr))
            tile_diagnostic_edit(c->diagnostics, d, expr->span, "0..%s", tile_span_text(c, expr->span));
        else
            propose_range(c, d, expr);
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
    /* The combiner of a fold has no control flow: its loops are unrolled. */
    if (statement->is_static || (c->in_combiner && has_constant_bounds(c, &loop)))
        check_static_for(c, &loop);
    else if (!is_in_combiner(c))
        run_loop(c, &loop);
}
