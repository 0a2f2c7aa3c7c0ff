/* The plan of a test under construction (program.h): its tensors, and where its statements stand. */
#include "parser/check/emit.h"
#include "parser/check/index.h"
#include "parser/check/plan.h"
#include "parser/check/report.h"
#include "parser/check/scatter.h"

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

/* ---- where a statement of a test stands ---- */

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
