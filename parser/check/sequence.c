/* Sequences of statements, and `if`, whose sides are sequences. After a statement that may leave the sequence early,
 * flags guard the rest: it is executed if none is set. */
#include <string.h>

#include "parser/check/branch.h"
#include "parser/check/constant.h"
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/leave.h"
#include "parser/check/observed.h"
#include "parser/check/operand.h"
#include "parser/check/plan.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/sequence.h"
#include "parser/check/stand_in.h"
#include "parser/check/statement.h"
#include "parser/check/warn.h"

typedef struct Rest {
    const TileSequence *sequence;
    size_t from;
} Rest;

static void run_from(TileChecker *c, const TileSequence *sequence, size_t from);

static TileMeaning run_rest(TileChecker *c, const void *state) {
    const Rest *rest = state;
    run_from(c, rest->sequence, rest->from);
    return tile_nothing();
}

/* Are all flags that leave the sequence clear? `decided` if that is a constant, and the same on untaken sides. */
static TileMeaning still_here(TileChecker *c, TileSpan span, bool *decided) {
    TileVar *flags[] = {c->frame->returned, c->frame->loop ? c->frame->loop->skip : NULL};
    TileMeaning here = tile_none_set(c, flags, 2, span);
    *decided = here.constant && !tile_any_undecided(flags, 2);
    return here;
}

static void run_from(TileChecker *c, const TileSequence *sequence, size_t from) {
    for (size_t i = from; i < sequence->statements.count; i++) {
        const TileStatement *statement = sequence->statements.items[i];
        if (tile_is_spent(c) || tile_test_is_done(c)) return;
        tile_check_statement(c, statement);
        bool last = i + 1 == sequence->statements.count && !sequence->value;
        if (last || !tile_statement_leaves(statement)) continue;
        bool decided;
        TileMeaning here = still_here(c, statement->span, &decided);
        if (tile_is_error(&here) || (decided && !here.bits)) return;
        if (decided) continue;
        Rest rest = {sequence, i + 1};
        if (c->rests >= TILE_MAX_DEPTH) {
            tile_fail(c, TOO_DEEP, statement->span, (unsigned)TILE_MAX_DEPTH);
            return;
        }
        c->rests++;
        tile_join_branches(c, here, (TileBranch){.run = run_rest, .state = &rest},
                           (TileBranch){.run = tile_run_nothing}, false, statement->span);
        c->rests--;
        return;
    }
    if (!sequence->value) return;
    tile_observe_statement(c, sequence->value->span);
    tile_check_expr_statement(c, sequence->value);
}

void tile_check_sequence(TileChecker *c, const TileSequence *sequence) { run_from(c, sequence, 0); }

TileMeaning tile_check_sequence_value(TileChecker *c, const TileSequence *sequence) {
    for (size_t i = 0; i < sequence->statements.count; i++) tile_check_statement(c, sequence->statements.items[i]);
    if (!sequence->value) return tile_fail(c, NO_VALUE, sequence->span);
    tile_observe_statement(c, sequence->value->span);
    return tile_check_part(c, sequence->value);
}

/* ---- if ---- */

static TileMeaning run_value(TileChecker *c, const void *state) { return tile_check_sequence_value(c, state); }

static TileMeaning run_statements(TileChecker *c, const void *state) {
    if (state) tile_check_sequence(c, state);
    return tile_nothing();
}

/* A value that an edit can change: not an `if` after `else`. */
static const TileExpr *edited_value(const TileSequence *sequence) {
    return sequence && sequence->value && sequence->value->kind != TILE_EXPR_IF ? sequence->value : NULL;
}

/* The condition of `static if`: only the chosen side exists, even where both of an `if` are looked at. */
static TileMeaning check_static_condition(TileChecker *c, const TileExpr *expr) {
    TileMeaning m = tile_check_condition(c, expr->a);
    if (tile_is_error(&m) || (tile_make_constant(c, &m) && m.constant)) return m;
    tile_about_constant(c, &m);
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_CONSTANT, expr->a->span, "the condition of a `static if`");
    tile_propose_constant(c, d, expr->a);
    tile_report(c, d);
    return tile_error_meaning();
}

/* What the block gives or assigns, if that is all of it. */
static const TileExpr *only_value(const TileSequence *block, const TileExpr **target) {
    *target = NULL;
    if (block->value && !block->statements.count) return block->value->kind == TILE_EXPR_IF ? NULL : block->value;
    const TileStatement *only = !block->value && block->statements.count == 1 ? block->statements.items[0] : NULL;
    if (!only || only->kind != TILE_STATEMENT_ASSIGN || only->op != TILE_TOKEN_ASSIGN) return NULL;
    *target = only->target;
    return only->value;
}

/* A branch on a tile is meant of each element. */
static void propose_choice(TileChecker *c, const TileExpr *expr) {
    TileDiagnostic *d = tile_reported_last(c, TILE_DIAGNOSTIC_TILE_CONDITION, expr->a->span);
    const TileExpr *to, *other_to = NULL, *value = only_value(expr->then, &to);
    const TileExpr *other = expr->otherwise ? only_value(expr->otherwise, &other_to) : NULL;
    if (!expr->otherwise && to && to->kind == TILE_EXPR_NAME) other = other_to = to; /* it stays as it is */
    if (!d || !value || !other || !to != !other_to) return;
    const char *target = to ? tile_span_text(c, to->span) : "";
    if (to && strcmp(target, tile_span_text(c, other_to->span)) != 0) return;
    tile_diagnostic_edit(c->diagnostics, d, expr->span, "%s%swhere(%s, %s, %s)", target, to ? " = " : "", tile_bare_text(c, expr->a->span),
                         tile_bare_text(c, value->span), tile_bare_text(c, other->span));
}

TileMeaning tile_check_if(TileChecker *c, const TileExpr *expr, bool want_value) {
    TileMeaning condition = expr->is_static ? check_static_condition(c, expr) : tile_check_condition(c, expr->a);
    if (tile_is_error(&condition) && !expr->is_static) propose_choice(c, expr);
    if (want_value && !expr->otherwise) return tile_fail(c, NO_ELSE, expr->span);
    tile_emit_at(c, expr->span);
    TileMeaning (*run)(TileChecker *, const void *) = want_value ? run_value : run_statements;
    TileBranch then = {run, expr->then, edited_value(expr->then)};
    TileBranch otherwise = {run, expr->otherwise, edited_value(expr->otherwise)};
    tile_test_enter_branch(c);
    TileMeaning value = expr->is_static ? tile_run_chosen(c, condition, then, otherwise)
                                        : tile_join_branches(c, condition, then, otherwise, want_value, expr->span);
    tile_test_leave_branch(c);
    if (condition.constant && tile_expr_leaves(expr)) c->frame->left |= condition.open;
    return value;
}

/* ---- expressions as statements ---- */

void tile_check_expr_statement(TileChecker *c, const TileExpr *expr) {
    TileMeaning m = expr->kind == TILE_EXPR_IF ? tile_check_if(c, expr, false) : tile_check_expr(c, expr);
    if (expr->kind == TILE_EXPR_RUN) return; /* for errors in it */
    bool acts = m.kind == TILE_MEANING_VALUE && m.value && tile_op_is(m.value->op, TILE_OP_ATOMIC_TILE);
    bool used = acts || tile_is_error(&m) || m.kind == TILE_MEANING_NOTHING || expr->kind == TILE_EXPR_IF;
    if (!used && tile_warns(c, TILE_WARN_UNUSED_RESULT))
        tile_report(
            c, tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_UNUSED_RESULT, expr->span, tile_meaning_words(c, &m)));
}
