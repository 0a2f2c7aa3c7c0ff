/* Integer expressions against brute force: random expressions, as sums and evaluated by lang/scalar/eval.def, for all
 * small values of their symbols. */
#include <criterion/criterion.h>
#include <string.h>

#include "lang/affine/sum.h"
#include "lang/scalar/eval.h"

enum { SYMBOLS = 3, WIDTH = 5, POINTS = WIDTH * WIDTH * WIDTH, POOL = 24, ROUNDS = 300, MORE = 2 };

/* An expression and its value at every point. */
typedef struct Expression {
    const TileSum *sum;
    uint64_t at[POINTS];
} Expression;

typedef struct Pool {
    TileSumTable table;
    Expression items[POOL];
    unsigned count;
    uint64_t seed;
} Pool;

static unsigned pick(Pool *pool, unsigned count) {
    pool->seed = pool->seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((pool->seed >> 33) % count);
}

static void add_number(Pool *pool, int64_t number) {
    Expression *item = &pool->items[pool->count++];
    item->sum = tile_sum_integer(&pool->table, number);
    for (unsigned p = 0; p < POINTS; p++) item->at[p] = (uint64_t)number;
}

/* A symbol with the WIDTH values from `least` on. */
static void add_symbol(Pool *pool, unsigned place, int64_t least) {
    static const unsigned strides[SYMBOLS] = {1, WIDTH, WIDTH * WIDTH};
    TileSumTable *table = &pool->table;
    Expression *item = &pool->items[pool->count++];
    TileSymbol *symbol = tile_symbol_value(table, "x", NULL);
    tile_symbol_bound(table, symbol, tile_sum_integer(table, least), tile_sum_integer(table, least + WIDTH - 1));
    item->sum = tile_sum_symbol(table, symbol);
    for (unsigned p = 0; p < POINTS; p++) item->at[p] = (uint64_t)least + p / strides[place] % WIDTH;
}

static void add_operation(Pool *pool) {
    static const struct {
        TileEvalOp op;
        const TileSum *(*make)(TileSumTable *table, const TileSum *a, const TileSum *b);
    } operations[] = {{TILE_EVAL_ADD, tile_sum_add},       {TILE_EVAL_SUB, tile_sum_subtract},
                      {TILE_EVAL_MUL, tile_sum_multiply},  {TILE_EVAL_DIV, tile_sum_divide},
                      {TILE_EVAL_REM, tile_sum_remainder}, {TILE_EVAL_MIN, tile_sum_min},
                      {TILE_EVAL_MAX, tile_sum_max}};
    unsigned which = pick(pool, sizeof operations / sizeof *operations);
    const Expression *a = &pool->items[pick(pool, pool->count)], *b = &pool->items[pick(pool, pool->count)];
    Expression *item = &pool->items[pool->count++];
    const uint64_t *operands[] = {a->at, b->at};
    item->sum = operations[which].make(&pool->table, a->sum, b->sum);
    TileEvalLoop loop = tile_eval_op_loop(operations[which].op, TILE_I64, TILE_I64, false);
    loop(TILE_I64, TILE_I64, operands, item->at, POINTS);
}

static void fill(Pool *pool, TileArena *arena, uint64_t seed) {
    static const int64_t numbers[] = {0, 1, -1, 2, 3, 7, -5, 64, INT64_MAX, INT64_MIN, INT64_MAX / 2, INT64_C(1) << 32};
    memset(pool, 0, sizeof *pool);
    pool->seed = seed;
    tile_sum_table_init(&pool->table, arena);
    for (unsigned i = 0; i < SYMBOLS; i++) {
        bool far = pick(pool, 6) == 0;
        add_symbol(pool, i, far ? INT64_MAX - WIDTH + 1 : (int64_t)pick(pool, 5) - 3);
    }
    for (unsigned i = 0; i < 4; i++) add_number(pool, numbers[pick(pool, pick(pool, 4) ? 8 : 12)]);
    while (pool->count < POOL) add_operation(pool);
}

static bool least_and_most(const Expression *item, int64_t *least, int64_t *most) {
    *least = INT64_MAX, *most = INT64_MIN;
    for (unsigned p = 0; p < POINTS; p++) {
        int64_t number = (int64_t)item->at[p];
        if (number < *least) *least = number;
        if (number > *most) *most = number;
    }
    return *least == *most;
}

static void check_interval(Pool *pool, const Expression *item, unsigned *tight) {
    int64_t least, most, known;
    bool constant = least_and_most(item, &least, &most);
    TileInterval interval = tile_sum_interval(&pool->table, item->sum);
    if (!interval.below && !interval.above)
        cr_assert(interval.least <= least && most <= interval.most, "%lld .. %lld is not in %lld .. %lld",
                  (long long)least, (long long)most, (long long)interval.least, (long long)interval.most);
    *tight += !interval.below && !interval.above && interval.least == least && interval.most == most;
    if (tile_sum_known(&pool->table, item->sum, &known)) cr_assert(constant && known == least);
}

/* Proofs hold at every point, and equal sums have equal values at every point. */
static void check_pair(Pool *pool, const Expression *a, const Expression *b, unsigned *proven) {
    if (a->sum == b->sum) cr_assert_arr_eq(a->at, b->at, sizeof a->at);
    if (!tile_sum_at_most(&pool->table, a->sum, b->sum)) return;
    ++*proven;
    for (unsigned p = 0; p < POINTS; p++)
        cr_assert((int64_t)a->at[p] <= (int64_t)b->at[p], "seed %llu: %lld is not at most %lld",
                  (unsigned long long)pool->seed, (long long)a->at[p], (long long)b->at[p]);
}

/* Rounds of which one of the tests below once proved what does not hold. */
static uint64_t round_at(uint64_t i) {
    static const uint64_t once_wrong[MORE] = {1472, 39192};
    return i < ROUNDS ? i : once_wrong[i - ROUNDS];
}

Test(affine, random_expressions_are_what_they_say) {
    static Pool pool;
    unsigned tight = 0, proven = 0;
    for (uint64_t round = 0; round < ROUNDS + MORE; round++) {
        TileArena *arena = tile_arena_create(NULL);
        fill(&pool, arena, round_at(round));
        for (unsigned i = 0; i < pool.count; i++) check_interval(&pool, &pool.items[i], &tight);
        for (unsigned i = 0; i < pool.count; i++)
            for (unsigned k = 0; k < pool.count; k++) check_pair(&pool, &pool.items[i], &pool.items[k], &proven);
        tile_arena_destroy(arena);
    }
    /* Proving nothing would be sound, too: so the number of proofs must be at least 99 % of that when this test was
     * written. */
    cr_expect_geq(tight, 5740, "only %u intervals are tight", tight);
    cr_expect_geq(proven, 58260, "only %u pairs are proven", proven);
}

/* ---- facts ---- */

/* Assumes a <= b, or a < b, of the code's values; `holds` becomes the points at which that is so, too. False if there
 * are none. */
static bool assume(Pool *pool, bool *holds) {
    const Expression *a = &pool->items[pick(pool, pool->count)], *b = &pool->items[pick(pool, pool->count)];
    bool less = pick(pool, 2), some = false;
    for (unsigned p = 0; p < POINTS; p++) {
        int64_t x = (int64_t)a->at[p], y = (int64_t)b->at[p];
        some = some || (holds[p] && (less ? x < y : x <= y));
    }
    if (!some) return false;
    for (unsigned p = 0; p < POINTS; p++)
        holds[p] = holds[p] && (less ? (int64_t)a->at[p] < (int64_t)b->at[p] : (int64_t)a->at[p] <= (int64_t)b->at[p]);
    tile_sum_assume_code(&pool->table, a->sum, b->sum, less, NULL);
    return true;
}

static void check_under_facts(Pool *pool, const Expression *a, const Expression *b, const bool *holds,
                              unsigned *proven) {
    bool at_most = tile_sum_at_most(&pool->table, a->sum, b->sum);
    const TileSum *low = tile_sum_integer(&pool->table, (int64_t)pick(pool, 9) - 4);
    bool within = tile_sum_within(&pool->table, a->sum, a->sum, low, b->sum, NULL);
    *proven += at_most + within;
    for (unsigned p = 0; p < POINTS && (at_most || within); p++) {
        int64_t x = (int64_t)a->at[p], y = (int64_t)b->at[p];
        if (!holds[p]) continue;
        cr_assert(!at_most || x <= y, "seed %llu: %lld is not at most %lld", (unsigned long long)pool->seed,
                  (long long)x, (long long)y);
        /* Where the limit itself is no number of 64 bits, it is no extent of a tensor. */
        if (within && !tile_sum_wraps(&pool->table, b->sum))
            cr_assert(low->constant <= x && x <= y, "seed %llu: %lld is not in %lld .. %lld",
                      (unsigned long long)pool->seed, (long long)x, (long long)low->constant, (long long)y);
    }
}

/* What is proven by facts holds wherever they hold, and nothing of it is left without them. */
Test(affine, facts_prove_only_what_holds) {
    static Pool pool;
    unsigned with = 0, without = 0, again = 0;
    for (uint64_t round = 0; round < ROUNDS + MORE; round++) {
        TileArena *arena = tile_arena_create(NULL);
        bool holds[POINTS];
        fill(&pool, arena, round_at(round) + 1000);
        for (unsigned p = 0; p < POINTS; p++) holds[p] = true;
        for (unsigned i = 0; i < pool.count; i++)
            for (unsigned k = 0; k < pool.count; k++) check_pair(&pool, &pool.items[i], &pool.items[k], &without);
        for (unsigned i = 0; i < 4; i++) assume(&pool, holds);
        for (unsigned i = 0; i < pool.count; i++)
            for (unsigned k = 0; k < pool.count; k++)
                check_under_facts(&pool, &pool.items[i], &pool.items[k], holds, &with);
        pool.table.facts.count = 0;
        for (unsigned i = 0; i < pool.count; i++)
            for (unsigned k = 0; k < pool.count; k++) check_pair(&pool, &pool.items[i], &pool.items[k], &again);
        tile_arena_destroy(arena);
    }
    cr_expect_eq(without, again, "%u pairs are proven without facts, and %u when they are gone", without, again);
    cr_expect_geq(with, 94110, "only %u proofs by facts, %u without", with, without);
}

Test(affine, facts_relate_symbols_both_ways) {
    TileArena *arena = tile_arena_create(NULL);
    TileSumTable table;
    tile_sum_table_init(&table, arena);
    const TileSum *n[3], *zero = tile_sum_integer(&table, 0), *two = tile_sum_integer(&table, 2);
    for (unsigned i = 0; i < 3; i++) {
        TileSymbol *symbol = tile_symbol_value(&table, "n", NULL);
        tile_symbol_bound(&table, symbol, zero, tile_sum_integer(&table, INT64_C(1) << 47));
        n[i] = tile_sum_symbol(&table, symbol);
    }
    const TileSum *twice = tile_sum_multiply(&table, two, n[1]);
    cr_expect(!tile_sum_at_most(&table, n[1], n[0]));
    tile_sum_assume_code(&table, n[0], twice, false, NULL); /* n0 == 2 n1, n2 < n1 */
    tile_sum_assume_code(&table, twice, n[0], false, NULL);
    tile_sum_assume_code(&table, n[2], n[1], true, NULL);
    cr_expect(tile_sum_at_most(&table, n[1], n[0]));
    cr_expect(tile_sum_within(&table, tile_sum_add(&table, n[1], n[2]), tile_sum_add(&table, n[1], n[2]), zero,
                              tile_sum_subtract(&table, n[0], tile_sum_integer(&table, 1)), NULL));
    cr_expect(!tile_sum_at_most(&table, n[0], tile_sum_multiply(&table, two, n[2])));
    size_t before = table.facts.count;
    tile_sum_assume_code(&table, twice, tile_sum_integer(&table, 7), false, NULL); /* 5 <= 2 n1 <= 7, so n1 is 3 */
    tile_sum_assume_code(&table, tile_sum_integer(&table, 5), twice, false, NULL);
    cr_expect(tile_sum_at_most(&table, n[1], tile_sum_integer(&table, 3)));
    cr_expect(tile_sum_at_most(&table, tile_sum_integer(&table, 3), n[1]));
    cr_expect(!tile_sum_at_most(&table, n[1], two));
    cr_expect(!tile_sum_at_most(&table, tile_sum_integer(&table, 4), n[1]));
    table.facts.count = before;
    cr_expect(!tile_sum_at_most(&table, n[1], tile_sum_integer(&table, 3)));
    table.facts.count = 2;
    cr_expect(!tile_sum_at_most(&table, n[2], n[1]));
    tile_arena_destroy(arena);
}

/* Of h, w and i with i < h w: i / w < h and i % w < w, and no more. */
Test(affine, a_number_below_a_product_has_quotients) {
    TileArena *arena = tile_arena_create(NULL);
    TileSumTable table;
    tile_sum_table_init(&table, arena);
    const TileSum *n[3], *zero = tile_sum_integer(&table, 0), *one = tile_sum_integer(&table, 1);
    for (unsigned i = 0; i < 3; i++) {
        TileSymbol *symbol = tile_symbol_value(&table, "n", NULL);
        tile_symbol_bound(&table, symbol, zero, tile_sum_integer(&table, INT64_C(1) << 47));
        n[i] = tile_sum_symbol(&table, symbol);
    }
    const TileSum *h = n[0], *w = n[1], *i = n[2], *all = tile_sum_multiply(&table, h, w), *row = tile_sum_divide(&table, i, w);
    const TileSum *last = tile_sum_subtract(&table, h, one);
    cr_expect(!tile_sum_within(&table, row, row, zero, last, NULL));
    tile_sum_assume(&table, i, all);
    cr_expect(!tile_sum_within(&table, row, row, zero, last, NULL), "i may be h w");
    tile_sum_assume(&table, tile_sum_add(&table, i, one), all);
    cr_expect(tile_sum_within(&table, row, row, zero, last, NULL));
    cr_expect(!tile_sum_within(&table, row, row, zero, tile_sum_subtract(&table, last, one), NULL));
    cr_expect(!tile_sum_within(&table, row, row, one, last, NULL));
    tile_sum_assume(&table, one, w);
    tile_sum_assume(&table, w, i);
    cr_expect(tile_sum_within(&table, row, row, one, last, NULL), "i is not below w");
    tile_arena_destroy(arena);
}

/* i - i / w * w lies from 0 up to, but without, w, where w is at least 1; and 0 <= i < h w tells that it is. */
Test(affine, a_number_without_its_multiple_is_a_remainder) {
    TileArena *arena = tile_arena_create(NULL);
    TileSumTable table;
    tile_sum_table_init(&table, arena);
    const TileSum *n[3], *zero = tile_sum_integer(&table, 0), *one = tile_sum_integer(&table, 1);
    for (unsigned i = 0; i < 3; i++) {
        TileSymbol *symbol = tile_symbol_value(&table, "n", NULL);
        tile_symbol_bound(&table, symbol, i < 2 ? zero : NULL, tile_sum_integer(&table, INT64_C(1) << 47));
        n[i] = tile_sum_symbol(&table, symbol);
    }
    const TileSum *h = n[0], *w = n[1], *i = n[2], *last = tile_sum_subtract(&table, w, one);
    const TileSum *rest = tile_sum_subtract(&table, i, tile_sum_multiply(&table, tile_sum_divide(&table, i, w), w));
    cr_expect(!tile_sum_within(&table, rest, rest, zero, last, NULL));
    tile_sum_assume_code(&table, i, tile_sum_multiply(&table, h, w), true, NULL);
    cr_expect(!tile_sum_within(&table, rest, rest, zero, last, NULL), "w may be 0");
    tile_sum_assume_code(&table, zero, i, false, NULL);
    cr_expect(tile_sum_at_most(&table, one, h) && tile_sum_at_most(&table, one, w));
    cr_expect(tile_sum_within(&table, rest, rest, zero, last, NULL));
    cr_expect(!tile_sum_within(&table, rest, rest, one, last, NULL));
    cr_expect(!tile_sum_within(&table, rest, rest, zero, tile_sum_subtract(&table, last, one), NULL));
    tile_arena_destroy(arena);
}

/* A launch has checked a b c; so b c is exact where a is at least 1. */
Test(affine, a_part_of_a_trusted_product_is_exact) {
    TileArena *arena = tile_arena_create(NULL);
    TileSumTable table;
    tile_sum_table_init(&table, arena);
    const TileSum *n[3], *zero = tile_sum_integer(&table, 0), *one = tile_sum_integer(&table, 1);
    for (unsigned i = 0; i < 3; i++) {
        TileSymbol *symbol = tile_symbol_value(&table, "n", NULL);
        tile_symbol_bound(&table, symbol, zero, tile_sum_integer(&table, INT64_C(1) << 47));
        n[i] = tile_sum_symbol(&table, symbol);
    }
    const TileSum *part = tile_sum_multiply(&table, n[1], n[2]), *all = tile_sum_multiply(&table, n[0], part);
    cr_expect(tile_sum_may_exceed(&table, part));
    tile_sum_trust(&table, all);
    cr_expect(tile_sum_may_exceed(&table, part), "n0 may be 0");
    tile_sum_assume(&table, one, n[0]);
    cr_expect(!tile_sum_may_exceed(&table, part));
    cr_expect(tile_sum_may_exceed(&table, tile_sum_multiply(&table, tile_sum_integer(&table, 2), part)), "twice as much is no part");
    tile_arena_destroy(arena);
}

/* What the code computes of a product that may wrap is at most the product, and so is what is compared with it. */
Test(affine, a_number_below_what_may_wrap) {
    TileArena *arena = tile_arena_create(NULL);
    TileSumTable table;
    tile_sum_table_init(&table, arena);
    const TileSum *n[2], *zero = tile_sum_integer(&table, 0), *one = tile_sum_integer(&table, 1);
    for (unsigned i = 0; i < 2; i++) {
        TileSymbol *symbol = tile_symbol_value(&table, "n", NULL);
        tile_symbol_bound(&table, symbol, zero, tile_sum_integer(&table, INT64_C(1) << 47));
        n[i] = tile_sum_symbol(&table, symbol);
    }
    const TileSum *i = tile_sum_symbol(&table, tile_symbol_value(&table, "i", NULL));
    const TileSum *all = tile_sum_multiply(&table, n[0], n[1]), *code = tile_sum_code(&table, all);
    cr_expect(code != all);
    cr_expect(tile_sum_proves(&table, code, all, NULL));
    cr_expect(!tile_sum_proves(&table, all, code, NULL));
    tile_sum_assume_code(&table, zero, i, false, NULL);
    tile_sum_assume_code(&table, i, code, true, NULL); /* as of a tile, which holds the code's value */
    const TileSum *row = tile_sum_divide(&table, i, n[1]);
    cr_expect(tile_sum_within(&table, row, row, zero, tile_sum_subtract(&table, n[0], one), NULL));
    tile_arena_destroy(arena);
}

Test(affine, a_symbol_has_the_numbers_of_its_type) {
    TileArena *arena = tile_arena_create(NULL);
    TileSumTable table;
    tile_sum_table_init(&table, arena);
    static const struct {
        TileScalar type;
        int64_t least, most;
    } rows[] = {{TILE_I8, -128, 127}, {TILE_U8, 0, 255}, {TILE_U32, 0, UINT32_MAX}, {TILE_I64, INT64_MIN, INT64_MAX}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        TileSymbol *symbol = tile_symbol_value(&table, "x", NULL);
        symbol->type = rows[i].type;
        TileInterval interval = tile_sum_interval(&table, tile_sum_symbol(&table, symbol));
        cr_expect(interval.least == rows[i].least && interval.most == rows[i].most && !interval.below);
    }
    tile_arena_destroy(arena);
}

/* There may be no such element: what is known of it is about it alone. */
Test(affine, elements_tell_nothing_of_other_numbers) {
    TileArena *arena = tile_arena_create(NULL);
    TileSumTable table;
    tile_sum_table_init(&table, arena);
    const TileSum *zero = tile_sum_integer(&table, 0), *one = tile_sum_integer(&table, 1);
    const TileSum *sums[2];
    for (unsigned i = 0; i < 2; i++) {
        TileSymbol *symbol = tile_symbol_value(&table, i ? "n" : "element", NULL);
        tile_symbol_bound(&table, symbol, i ? zero : NULL, tile_sum_integer(&table, INT64_C(1) << 47));
        symbol->lane = i == 0;
        sums[i] = tile_sum_symbol(&table, symbol);
    }
    const TileSum *element = sums[0], *n = sums[1], *last = tile_sum_subtract(&table, n, one);
    tile_sum_assume_code(&table, zero, element, false, NULL);
    tile_sum_assume_code(&table, element, n, true, NULL);
    cr_expect(tile_sum_within(&table, element, element, zero, last, NULL));
    cr_expect(!tile_sum_at_most(&table, one, n));
    const TileSum *compound[] = {tile_sum_min(&table, element, n), tile_sum_multiply(&table, element, n),
                                 tile_sum_divide(&table, tile_sum_add(&table, element, n), tile_sum_integer(&table, 2)),
                                 tile_sum_add(&table, tile_sum_multiply(&table, element, element), n)};
    for (unsigned i = 0; i < sizeof compound / sizeof *compound; i++) {
        table.facts.count = 0;
        tile_sum_assume_code(&table, one, compound[i], false, NULL);
        tile_sum_assume_code(&table, compound[i], zero, false, NULL);
        cr_expect(!tile_sum_at_most(&table, one, n), "sum %u tells of n", i);
        cr_expect(!tile_sum_at_most(&table, n, zero), "sum %u tells of n", i);
    }
    const TileSum *greatest = tile_sum_max(&table, element, n);
    table.facts.count = 0;
    tile_sum_assume_code(&table, greatest, one, true, NULL);
    cr_expect(!tile_sum_at_most(&table, n, zero));
    tile_arena_destroy(arena);
}
