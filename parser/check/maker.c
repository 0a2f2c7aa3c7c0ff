/* Calls that create a tensor of a test, `rand(f32, 4, 8)`. */
#include "parser/check/arguments.h"
#include "parser/check/builtin.h"
#include "parser/check/expression.h"
#include "parser/check/item.h"
#include "parser/check/literal.h"
#include "parser/check/maker.h"
#include "parser/check/meaning.h"
#include "parser/check/operand.h"
#include "parser/check/plan.h"
#include "parser/check/report.h"

#include <string.h>

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

static bool is_type(const TileExpr *type, TileScalar *scalar) {
    return type && type->kind == TILE_EXPR_NAME && tile_scalar_find(type->name, strlen(type->name), scalar);
}

static bool names_type(const TileExpr *call, TileScalar *scalar) {
    return is_type(call->arguments.count ? call->arguments.items[0].value : NULL, scalar);
}

const char *tile_maker_meant(TileChecker *c, const TileExpr *call) {
    const TileExpr *index = call->a;
    TileScalar scalar;
    if (!c->test || c->frame->parent || index->kind != TILE_EXPR_INDEX || find_maker(index) < 0) return NULL;
    if (index->items.count != 1 || !is_type(index->items.items[0], &scalar) || !call->arguments.count) return NULL;
    TileSpan sizes = {call->span.file, call->arguments.items[0].value->span.begin, call->span.end};
    return tile_arena_format(c->arena, "%s(%s, %s", index->a->name, tile_scalar_name(scalar), tile_span_text(c, sizes));
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
