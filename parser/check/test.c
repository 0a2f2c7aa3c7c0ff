/* Tests. A test becomes a plan (program.h): tensors, runs of kernels, assertions. Other statements are checked and
 * emitted as usual, with whole tensors as tiles, into a function with one program that reads tensors and writes others;
 * shapes are known, so all of this is checked without running anything. */
#include "parser/check/builtin.h"
#include "parser/check/constant.h"
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/index.h"
#include "parser/check/literal.h"
#include "parser/check/module.h"
#include "parser/check/names.h"
#include "parser/check/operand.h"
#include "parser/check/range.h"
#include "parser/check/report.h"
#include "parser/check/scatter.h"
#include "parser/check/statement.h"
#include "parser/check/test.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"
#include <string.h>


/* ---- tensors ---- */

uint32_t tile_test_add(TileChecker *c, const TileTestTensor *tensor) {
    TileTest *plan = c->test->plan;
    tile_list_push(c->test->arena, &plan->tensors, *tensor);
    return (uint32_t)plan->tensors.count - 1;
}

/* As a parameter of the test's function. */
static TileTensor *add_parameter(TileChecker *c, uint32_t number, TileAccess access, TileSpan span) {
    const TileTestTensor *made = &c->test->plan->tensors.items[number];
    const char *name = tile_arena_format(c->arena, "t%u", number);
    TileTensor *tensor = TILE_NEW(c->arena, TileTensor);
    *tensor = (TileTensor){.name = name, .scalar = made->scalar, .access = access, .rank = made->rank, .span = span};
    for (unsigned d = 0; d < made->rank; d++) tensor->dims[d] = tile_sum_integer(&c->sums, made->extent[d]);
    const TileType *type = tile_type_tensor(c->context, made->scalar, made->rank, access);
    tensor->value = tile_func_add_parameter(c->func, name, type);
    tile_list_push(c->test->arena, &c->test->stage->tensors, number);
    return tensor;
}

TileMeaning tile_test_meaning(TileChecker *c, uint32_t number, TileSpan span) {
    const TileTestTensor *made = &c->test->plan->tensors.items[number];
    TileTensor *tensor = add_parameter(c, number, TILE_ACCESS_IN, span);
    tensor->number = number;
    TileMeaning m = {.kind = TILE_MEANING_TENSOR, .tensor = tensor};
    bool empty = made->rank > TILE_MAX_TILE_RANK;
    for (unsigned d = 0; d < made->rank; d++) empty = empty || made->extent[d] < 1 || made->extent[d] > 1 << 24;
    if (empty) return m; /* empty: there is no such tile; it can only be an argument of a kernel */
    m = tile_load_whole(c, &m, span);
    m.tensor = tensor;
    return m;
}

uint32_t tile_test_store(TileChecker *c, TileMeaning value, TileTestSource source, const TileExpr *expr) {
    TileTestTensor made = {.source = source, .scalar = (TileScalar)value.scalar, .rank = value.rank};
    made.run = (uint32_t)c->test->plan->runs.count;
    for (unsigned d = 0; d < value.rank; d++) made.extent[d] = tile_extent_value(c, value.extent[d]);
    uint32_t number = tile_test_add(c, &made);
    uint32_t wanted = source == TILE_TEST_COMPUTED ? made.run : TILE_TEST_ASSERTIONS;
    if (c->test->number != wanted) return number;
    TileTensor *tensor = add_parameter(c, number, TILE_ACCESS_OUT, expr->span);
    tile_store_whole(c, tensor, value, expr);
    return number;
}

/* ---- creating tensors ---- */

static const char *const makers[] = {
    [TILE_TEST_RAND] = "rand", [TILE_TEST_RANDN] = "randn",   [TILE_TEST_ZEROS] = "zeros",
    [TILE_TEST_ONES] = "ones", [TILE_TEST_ARANGE] = "arange", [TILE_TEST_RANDINT] = "randint",
    [TILE_TEST_FULL] = "full",
};

static int find_maker(const TileExpr *call) {
    if (call->a->kind != TILE_EXPR_NAME) return -1;
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        if (strcmp(makers[i], call->a->name) == 0) return (int)i;
    return -1;
}

static bool names_type(const TileExpr *call, TileScalar *scalar) {
    const TileExpr *type = call->arguments.count ? call->arguments.items[0].value : NULL;
    return type && type->kind == TILE_EXPR_NAME && tile_scalar_find(type->name, strlen(type->name), scalar);
}

bool tile_is_maker(const TileChecker *c, const TileExpr *call) {
    TileScalar scalar;
    const TileAst *where;
    if (!c->test || c->frame->parent || find_maker(call) < 0) return false;
    if (names_type(call, &scalar)) return true;
    bool other = tile_find_builtin(call->a->name) || tile_find_item(c->frame->ast, call->a->name, true, &where);
    return !other && call->arguments.count;
}

static bool read_numbers(TileChecker *c, const TileExpr *call, TileTestTensor *made, unsigned *next) {
    const TileExpr *expr = *next < call->arguments.count ? call->arguments.items[*next].value : call;
    if (made->source == TILE_TEST_RANDINT) {
        if (!tile_check_constant(c, expr, "a bound", &made->lo)) return false;
        expr = call->arguments.items[*next + 1].value;
        if (!tile_check_constant(c, expr, "a bound", &made->hi)) return false;
        *next += 2;
        return made->lo < made->hi || (tile_fail(c, TEST_BOUNDS, expr->span), false);
    }
    if (made->source != TILE_TEST_FULL) return true;
    TileMeaning m = tile_check_value(c, expr);
    if (tile_is_literal(&m)) m = tile_literal_as(c, &m, made->scalar, expr->span);
    if (tile_is_error(&m)) return false;
    if (!tile_constant_bits(c, &m, made->scalar, &made->bits))
        return tile_fail(c, NOT_CONSTANT, expr->span, "the value"), false;
    (*next)++;
    return true;
}

TileMeaning tile_check_maker(TileChecker *c, const TileExpr *call) {
    TileTestTensor made = {.source = (TileTestSource)find_maker(call)};
    const TileExpr *type = call->arguments.items[0].value;
    unsigned numbers = made.source == TILE_TEST_RANDINT ? 2 : made.source == TILE_TEST_FULL;
    if (!names_type(call, &made.scalar)) {
        TileMeaning m = tile_check_expr(c, type);
        return tile_is_error(&m) ? m : tile_fail(c, NOT_TYPE, type->span, tile_meaning_words(c, &m));
    }
    if (!tile_check_arguments(c, call, 1 + numbers, 1 + numbers + TILE_MAX_TENSOR_RANK, NULL))
        return tile_error_meaning();
    unsigned next = 1;
    if (!read_numbers(c, call, &made, &next)) return tile_error_meaning();
    int64_t count = 1;
    for (; next < call->arguments.count; next++) {
        enum { MOST = 1 << 28 };
        const TileExpr *expr = call->arguments.items[next].value;
        int64_t extent;
        if (!tile_check_constant(c, expr, "a dimension", &extent)) return tile_error_meaning();
        if (extent < 0 || __builtin_mul_overflow(count, extent ? extent : 1, &count) || count > MOST)
            return tile_fail(c, TEST_SIZE, expr->span, (int)MOST);
        made.extent[made.rank++] = extent;
    }
    return tile_test_meaning(c, tile_test_add(c, &made), call->span);
}

/* ---- assertions ---- */

const TileExpr *tile_compared(const TileExpr *expr) {
    bool all = tile_is_call_of(expr, "all") && expr->arguments.count == 1 && !expr->arguments.items[0].name;
    if (all) expr = expr->arguments.items[0].value;
    bool comparison =
        expr->kind == TILE_EXPR_BINARY && expr->op >= TILE_TOKEN_EQUAL && expr->op <= TILE_TOKEN_GREATER_EQUAL;
    return comparison ? expr : NULL;
}

/* Invalid elements are not compared. */
static uint32_t store_detail(TileChecker *c, TileMeaning m, uint64_t fill, const TileExpr *expr) {
    if (m.valid) {
        TileMeaning bits = tile_bits_meaning((TileScalar)m.scalar, fill);
        m.value = tile_emit_filled(c, &m, m.valid, tile_emit_value(c, &bits));
        m.valid = NULL;
    }
    return tile_test_store(c, m, TILE_TEST_DETAIL, expr);
}

/* A comparison keeps both sides, so that a failure can show which elements differ. */
static bool assert_comparison(TileChecker *c, const TileExpr *expr, bool all, TileTestAssertion *assertion) {
    TileMeaning v[3] = {tile_check_value(c, expr->a), tile_check_value(c, expr->b)};
    const TileExpr *const sides[] = {expr->a, expr->b};
    if (!tile_unify_scalars(c, v, sides, 2, expr->span)) return false;
    v[2] = tile_apply_binary(c, (TileTokenKind)expr->op, v[0], v[1], expr);
    if (tile_is_error(&v[2])) return false;
    if (!all && v[2].rank) return tile_fail_tile_condition(c, &v[2], expr->span), false;
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

void tile_test_assert(TileChecker *c, const TileStatement *statement, const char *text) {
    const TileExpr *expr = statement->arguments.items[0].value, *comparison = tile_compared(expr);
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

/* ---- statements ---- */

void tile_test_enter_branch(TileChecker *c) {
    if (c->test) c->test->branches++;
}

void tile_test_leave_branch(TileChecker *c) {
    if (c->test) c->test->branches--;
}

bool tile_test_is_done(const TileChecker *c) { return c->test && c->test->done; }

bool tile_at_top_of_test(TileChecker *c, TileSpan span, const char *what) {
    if (c->builder.block == c->test->block && !c->test->branches) return true;
    tile_fail(c, TEST_PLACE, span, what);
    return false;
}

bool tile_test_allows(const TileStatement *statement) {
    switch ((TileStatementKind)statement->kind) {
    case TILE_STATEMENT_LET:
    case TILE_STATEMENT_VAR:
    case TILE_STATEMENT_ASSIGN:
    case TILE_STATEMENT_EXPR:
    case TILE_STATEMENT_FOR:
    case TILE_STATEMENT_WHILE:
    case TILE_STATEMENT_BREAK:
    case TILE_STATEMENT_CONTINUE:
    case TILE_STATEMENT_ASSERT:
    case TILE_STATEMENT_STATIC_ASSERT: return true;
    case TILE_STATEMENT_RETURN:
    case TILE_STATEMENT_GRID:
    case TILE_STATEMENT_TEMP: return false;
    }
    return false;
}

/* ---- the plan ---- */

static void emit_test(TileChecker *c, const TileItem *item) {
    static const TileItem nowhere = {.kind = TILE_ITEM_FN};
    TileFrame frame = {.item = &nowhere, .ast = c->ast};
    c->frame = &frame;
    c->in_grid = true;
    c->where = item->name_span;
    c->func = tile_func_create(c->module, "test", TILE_FUNC_KERNEL, TILE_FORM_TILE);
    c->builder = tile_builder_at_end(c->module, &c->func->body);
    TileValue *one = tile_build_i64(tile_emitter(c), 1);
    TileOp *grid = tile_build_grid(tile_emitter(c), &one, 1);
    c->builder.block = c->test->block = &grid->regions[0];
    c->scope_start = c->bounds.count;
    tile_check_sequence(c, item->body);
    c->builder.block = c->test->block;
    tile_build_end(tile_emitter(c), TILE_OP_YIELD, NULL, 0);
    c->builder.block = &c->func->body;
    tile_build_end(tile_emitter(c), TILE_OP_RETURN, NULL, 0);
    c->test->stage->func = c->func;
}

tile_status tile_lower_test(TileContext *context, TileDiagnostics *diagnostics, TileArena *arena, const TileAst *ast,
                            const TileItem *item, uint32_t number, TileTest *test, TileTestStage *stage) {
    static const TileLowerOptions none = {0};
    uint32_t errors = diagnostics->error_count;
    *test = (TileTest){0};
    *stage = (TileTestStage){.module = tile_module_create(context)};
    TileArena *scratch = tile_arena_create(context->arena);
    if (!stage->module || !scratch) {
        tile_arena_destroy(scratch);
        tile_module_destroy(stage->module);
        stage->module = NULL;
        return TILE_OUT_OF_MEMORY;
    }
    TileTestState state = {.plan = test, .stage = stage, .arena = arena, .number = number};
    TileChecker c;
    tile_checker_init(&c, context, diagnostics, scratch, ast, &none);
    c.module = stage->module;
    c.test = &state;
    emit_test(&c, item);
    tile_status status = diagnostics->error_count == errors ? TILE_OK : TILE_INVALID_SOURCE;
    if (status == TILE_OK) status = tile_checker_verify(&c, item, true);
    tile_arena_destroy(scratch);
    if (status == TILE_OK) return TILE_OK;
    tile_module_destroy(stage->module);
    stage->module = NULL;
    return status;
}
