/* Assertions. One that a program checks comes with the values that its message shows: both sides of a comparison that
 * is false (of tiles, of the first element for which it is false), and the listed values. In a test these become
 * tensors of its plan. */
#include "base/print_line.h"
#include "parser/check/assert.h"
#include "parser/check/branch.h"
#include "parser/check/claim.h"
#include "parser/check/constant.h"
#include "parser/check/emit.h"
#include "parser/check/literal.h"
#include "parser/check/loop.h"
#include "parser/check/meaning.h"
#include "parser/check/operand.h"
#include "parser/check/operator.h"
#include "parser/check/plan.h"
#include "parser/check/print.h"
#include "parser/check/propose.h"
#include "parser/check/range.h"
#include "parser/check/report.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"
#include "parser/check/values.h"

/* The comparison that a condition is, or that it is `all` of; else NULL. */
static const TileExpr *compared(const TileExpr *expr) {
    bool all = tile_is_call_of(expr, "all") && expr->arguments.count == 1 && !expr->arguments.items[0].name;
    if (all) expr = expr->arguments.items[0].value;
    bool comparison =
        expr->kind == TILE_EXPR_BINARY && expr->op >= TILE_TOKEN_EQUAL && expr->op <= TILE_TOKEN_GREATER_EQUAL;
    return comparison ? expr : NULL;
}

/* ---- the values of a failed assertion ---- */

typedef struct Failure {
    const TileStatement *statement;
    TilePrinted printed;
    unsigned shown;
} Failure;

static bool is_written_out(const TileExpr *expr) {
    if (expr->kind == TILE_EXPR_UNARY) return is_written_out(expr->a);
    return expr->kind == TILE_EXPR_INTEGER || expr->kind == TILE_EXPR_FLOAT || expr->kind == TILE_EXPR_BOOL ||
           expr->kind == TILE_EXPR_STRING;
}

/* ", n = " */
static void name_value(TileChecker *c, Failure *failure, const TileExpr *expr) {
    bool loose = expr->kind == TILE_EXPR_BINARY && expr->op == TILE_TOKEN_ELSE;
    if (failure->shown++) tile_print_words(&failure->printed, ", ");
    tile_print_words(&failure->printed, loose ? tile_span_text(c, expr->span) : tile_bare_text(c, expr->span));
    tile_print_words(&failure->printed, " = ");
}

static bool is_full(const Failure *failure) { return failure->shown + 1 >= TILE_MAX_PRINTED; }

/* The first element of one side of `comparison` for which the comparison is false. */
static void show_first(TileChecker *c, Failure *failure, const TileExpr *expr, const TileMeaning *side,
                       const TileMeaning *comparison) {
    TileValue *yes = tile_build_bool(tile_emitter(c), true);
    TileValue *holds = tile_emit_filled(c, comparison, comparison->valid, yes);
    TileMeaning value = *side;
    value.valid = NULL;
    if (side->valid) {
        TileMeaning zero = tile_bits_meaning((TileScalar)side->scalar, 0);
        value.value = tile_emit_filled(c, side, side->valid, tile_emit_value(c, &zero));
        value.sum = NULL;
        value.constant = false;
    }
    name_value(c, failure, expr);
    tile_print_first(c, &failure->printed, &value, tile_emit_unary(c, TILE_OP_NOT, holds));
}

/* `all` of a comparison, or a comparison of scalars. */
static void show_comparison(TileChecker *c, Failure *failure, const TileExpr *expr) {
    const TileExpr *sides[] = {expr->a, expr->b};
    TileMeaning v[3] = {tile_check_value(c, expr->a), tile_check_value(c, expr->b)};
    if (!tile_unify_scalars(c, v, sides, 2, expr->span)) return;
    const TileMeaning alone[] = {v[0], v[1]};
    v[2] = tile_apply_binary(c, (TileTokenKind)expr->op, v[0], v[1], expr);
    if (tile_is_error(&v[2]) || !tile_unify_shapes(c, v, 3, expr->span)) return;
    for (int i = 0; i < 2; i++) {
        if (is_written_out(sides[i]) || is_full(failure)) continue;
        if (alone[i].rank) {
            show_first(c, failure, sides[i], &v[i], &v[2]);
            continue;
        }
        name_value(c, failure, sides[i]);
        tile_print_value(c, &failure->printed, &alone[i]);
    }
}

/* The comparisons of a condition that may be false: of `a && b`, those of its parts. */
static void show_condition(TileChecker *c, Failure *failure, const TileExpr *expr) {
    const TileExpr *comparison = compared(expr);
    if (comparison) {
        show_comparison(c, failure, comparison);
    } else if (expr->kind == TILE_EXPR_BINARY && expr->op == TILE_TOKEN_AND) {
        show_condition(c, failure, expr->a);
        show_condition(c, failure, expr->b);
    }
}

static bool has_text(const TileStatement *statement) {
    return statement->arguments.count > 1 && statement->arguments.items[1].value->kind == TILE_EXPR_STRING;
}

static TileMeaning show_values(TileChecker *c, const void *state) {
    Failure failure = {.statement = state, .printed = {.text = {.arena = c->arena}}};
    const TileStatement *statement = state;
    uint32_t line, column;
    tile_emit_at(c, statement->span);
    tile_source_position(c->diagnostics, statement->span.file, statement->span.begin, &line, &column);
    tile_print_assertion(&failure.printed.text, line, column);
    show_condition(c, &failure, statement->arguments.items[0].value);
    for (size_t i = has_text(statement) ? 2 : 1; i < statement->arguments.count && !is_full(&failure); i++) {
        const TileExpr *expr = statement->arguments.items[i].value;
        TileMeaning m = tile_as_value(c, tile_check_value(c, expr), expr->span);
        if (tile_is_error(&m)) return m;
        name_value(c, &failure, expr);
        tile_print_value(c, &failure.printed, &m);
    }
    tile_emit_at(c, statement->span);
    if (failure.shown) tile_print_emit(c, &failure.printed);
    return tile_nothing();
}

static void emit_values(TileChecker *c, const TileStatement *statement, TileValue *condition) {
    TileMeaning holds = tile_value_meaning(c, condition, NULL, NULL);
    TileBranch nothing = {.run = tile_run_nothing}, values = {.run = show_values, .state = statement};
    tile_join_branches(c, holds, nothing, values, false, statement->span);
}

/* ---- in tests ---- */

/* Invalid elements are not compared. */
static uint32_t store_detail(TileChecker *c, TileMeaning m, uint64_t fill, const TileExpr *expr) {
    if (m.valid) {
        TileMeaning bits = tile_bits_meaning((TileScalar)m.scalar, fill);
        m.value = tile_emit_filled(c, &m, m.valid, tile_emit_value(c, &bits));
        m.valid = NULL;
    }
    return tile_test_store(c, m, TILE_TEST_DETAIL, expr);
}

/* An assertion about a tile is meant of all of its elements. */
static void propose_all(TileChecker *c, const TileExpr *expr) {
    TileDiagnostic *d = tile_reported_last(c, TILE_DIAGNOSTIC_TILE_CONDITION, expr->span);
    if (!d || tile_check_value(c, expr).scalar != TILE_BOOL) return;
    tile_diagnostic_edit(c->diagnostics, d, expr->span, "all(%s)", tile_bare_text(c, expr->span));
}

/* A comparison keeps both sides, so that a failure can show which elements differ. */
static bool assert_comparison(TileChecker *c, const TileExpr *expr, bool all, TileTestAssertion *assertion) {
    TileMeaning v[3] = {tile_check_value(c, expr->a), tile_check_value(c, expr->b)};
    const TileExpr *const sides[] = {expr->a, expr->b};
    if (!tile_unify_scalars(c, v, sides, 2, expr->span)) return false;
    v[2] = tile_apply_binary(c, (TileTokenKind)expr->op, v[0], v[1], expr);
    if (tile_is_error(&v[2])) return false;
    if (!all && v[2].rank) {
        tile_fail_tile_condition(c, &v[2], expr->span);
        return propose_all(c, expr), false;
    }
    if (v[2].constant && v[2].bits) return false;
    if (v[2].constant) return tile_fail(c, ASSERTION_FAILED, expr->span, assertion->text), false;
    if (!tile_unify_shapes(c, v, 3, expr->span)) return false;
    assertion->comparison = tile_token_text((TileTokenKind)expr->op);
    assertion->holds = store_detail(c, v[2], 1, expr);
    assertion->left = store_detail(c, v[0], 0, expr);
    assertion->right = store_detail(c, v[1], 0, expr);
    return true;
}

static bool assert_condition(TileChecker *c, const TileExpr *expr, TileTestAssertion *assertion) {
    TileMeaning m = tile_check_condition(c, expr);
    if (tile_is_error(&m)) propose_all(c, expr);
    if (tile_is_error(&m) || (m.constant && m.bits)) return false;
    if (m.constant) return tile_fail(c, ASSERTION_FAILED, expr->span, assertion->text), false;
    assertion->holds = tile_test_store(c, m, TILE_TEST_DETAIL, expr);
    return true;
}

static void add_values(TileChecker *c, const TileStatement *statement, size_t first, TileTestAssertion *assertion) {
    for (size_t i = first; i < statement->arguments.count; i++) {
        const TileExpr *expr = statement->arguments.items[i].value;
        TileMeaning m = tile_as_value(c, tile_check_value(c, expr), expr->span);
        if (tile_is_error(&m)) return;
        TileTestValue value = {tile_arena_format(c->test->arena, "%s", tile_span_text(c, expr->span)), 0};
        value.tensor = store_detail(c, m, 0, expr);
        tile_list_push(c->test->arena, &assertion->values, value);
    }
}

static void assert_in_test(TileChecker *c, const TileStatement *statement, const char *text) {
    const TileExpr *expr = statement->arguments.items[0].value, *comparison = compared(expr);
    TileTestAssertion assertion = {.span = expr->span,
                                   .text = tile_arena_format(c->test->arena, "%s", text),
                                   .left = TILE_TEST_NONE,
                                   .right = TILE_TEST_NONE};
    if (!tile_at_top_of_test(c, statement->span, "`assert`")) return;
    bool named = statement->arguments.count > 1 && statement->arguments.items[1].value->kind == TILE_EXPR_STRING;
    bool kept = comparison ? assert_comparison(c, comparison, comparison != expr, &assertion)
                           : assert_condition(c, expr, &assertion);
    if (!kept) return;
    add_values(c, statement, named ? 2 : 1, &assertion);
    tile_list_push(c->test->arena, &c->test->plan->assertions, assertion);
}

/* ---- checking an assertion ---- */

static const char *assertion_text(TileChecker *c, const TileStatement *statement) {
    if (has_text(statement)) return statement->arguments.items[1].value->name;
    return tile_span_text(c, statement->arguments.items[0].value->span);
}

static void emit_assertion(TileChecker *c, const TileStatement *statement, const TileMeaning *m) {
    tile_emit_at(c, statement->span);
    TileValue *condition = tile_emit_one_bool(c, m, TILE_KIND_ALL);
    emit_values(c, statement, condition);
    TileAttribute text = {.key = TILE_ATTRIBUTE_TEXT,
                          .text = tile_intern_string(c->context->strings, assertion_text(c, statement))};
    tile_emit_at(c, statement->span);
    tile_build_op(tile_emitter(c), TILE_OP_ASSERT, &condition, 1, &text, 1, NULL, 0);
}

/* `assert(n = 4)` is no comparison. */
static void fail_named(TileChecker *c, const TileStatement *statement, const char *word) {
    const TileArgumentExpr *argument = &statement->arguments.items[0];
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_ARGUMENT_NAME, argument->name_span, word, argument->name);
    TileSpan whole = argument->name_span;
    whole.end = argument->value->span.end;
    tile_diagnostic_edit(c->diagnostics, d, whole, "%s == %s", argument->name, tile_span_text(c, argument->value->span));
    tile_report(c, d);
}

void tile_check_assert(TileChecker *c, const TileStatement *statement) {
    bool is_static = statement->kind == TILE_STATEMENT_STATIC_ASSERT;
    if (!statement->arguments.count) {
        tile_report_count(c, statement->span, is_static ? "static_assert" : "assert", 1, 8, 0);
        return;
    }
    const TileExpr *expr = statement->arguments.items[0].value;
    if (statement->arguments.items[0].name) return fail_named(c, statement, is_static ? "static_assert" : "assert");
    if (is_static && statement->arguments.count > (has_text(statement) ? 2 : 1)) {
        TileDiagnostic *d =
            tile_report_count(c, statement->span, "static_assert", 1, 2, (unsigned)statement->arguments.count);
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "it is written `static_assert(condition, \"text\")`");
        return;
    }
    if (c->test && !c->frame->parent && !is_static) {
        assert_in_test(c, statement, assertion_text(c, statement));
        return;
    }
    TileMeaning m = tile_check_condition(c, expr);
    if (tile_is_error(&m)) propose_all(c, expr);
    if (is_static) tile_make_constant(c, &m);
    if (tile_is_error(&m) || (m.constant && m.bits)) return;
    if (is_static && !m.constant) {
        tile_about_constant(c, &m);
        TileDiagnostic *d =
            tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_CONSTANT, expr->span, "a static assertion");
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "the clause `require` is checked at each launch");
        tile_propose_constant(c, d, expr);
        tile_report(c, d);
    } else if (c->untaken) {
        return;
    } else if (m.constant && (is_static || !c->in_grid)) {
        if (!tile_is_chosen(c, expr)) return;
        TileDiagnostic *d =
            tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_ASSERTION_FAILED, expr->span, assertion_text(c, statement));
        tile_note_values(c, d, expr);
        tile_report(c, d);
    } else if (!c->in_grid) {
        tile_fail(c, HOST_STATEMENT, statement->span, "`assert`");
    } else if (c->in_combiner) {
        tile_fail(c, UNSUPPORTED, statement->span, "an assertion in a function that folds");
    } else if (tile_may_act(c, statement->span, "`assert`")) {
        emit_assertion(c, statement, &m);
        bool always = !c->regions && !c->masked && m.rank == 0; /* each program tests it */
        if (always) tile_claim_assume_checked(c, m.claim);
    }
}
