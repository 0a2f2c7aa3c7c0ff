/* Integer expressions against brute force: random expressions, as sums and evaluated by lang/scalar/eval.def, for all
 * small values of their symbols. */
#include <criterion/criterion.h>
#include <string.h>

#include "lang/affine/sum.h"
#include "lang/scalar/eval.h"

enum { SYMBOLS = 3, WIDTH = 5, POINTS = WIDTH * WIDTH * WIDTH, POOL = 24, ROUNDS = 300 };

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

Test(affine, random_expressions_are_what_they_say) {
    static Pool pool;
    unsigned tight = 0, proven = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        TileArena *arena = tile_arena_create(NULL);
        fill(&pool, arena, round);
        for (unsigned i = 0; i < pool.count; i++) check_interval(&pool, &pool.items[i], &tight);
        for (unsigned i = 0; i < pool.count; i++)
            for (unsigned k = 0; k < pool.count; k++) check_pair(&pool, &pool.items[i], &pool.items[k], &proven);
        tile_arena_destroy(arena);
    }
    /* Proving nothing would be sound, too: so the number of proofs must be at least 99 % of that when this test was
     * written. */
    cr_expect_geq(tight, 5730, "only %u intervals are tight", tight);
    cr_expect_geq(proven, 47730, "only %u pairs are proven", proven);
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
