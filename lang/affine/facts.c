/* Facts: what holds in a scope, by a condition that was tested. They are about exact integers; a sum that may overflow
 * 64 bits stands in them as one symbol, the value that the code computes. */
#include "lang/affine/internal.h"

/* factor * symbol + rest >= 0 */
static void add_fact(TileSumTable *table, const TileSymbol *symbol, int64_t factor, const TileSum *rest,
                     const TileSum *needs) {
    if (factor == INT64_MIN) return;
    tile_sum_count_bound(table, symbol);
    tile_sum_open_symbol((TileSymbol *)symbol, rest);
    TileFact fact = {.symbol = symbol, .rest = rest, .needs = needs, .factor = factor, .stamp = ++table->stamp};
    tile_list_push(table->arena, &table->facts, fact);
}

static bool is_not_negative(TileSumTable *table, const TileSymbol *symbol) {
    return tile_sum_proves(table, tile_sum_integer(table, 0), tile_sum_symbol(table, (TileSymbol *)symbol), NULL);
}

/* A product that is at least 1 and whose factors are all at least 0: each factor is at least 1. */
static void assume_factors(TileSumTable *table, const TileSum *sum, const TileSum *needs) {
    const TileProduct *product = &sum->products[0];
    if (sum->count != 1 || sum->constant >= 0 || product->factor < 0 || product->degree < 2) return;
    for (uint32_t i = 0; i < product->degree; i++)
        if (!is_not_negative(table, product->symbols[i])) return;
    for (uint32_t i = 0; i < product->degree; i++)
        add_fact(table, product->symbols[i], 1, tile_sum_integer(table, -1), needs);
}

/* Of 0 <= i < H * W follows that H and W are at least 1. */
static void assume_factors_above(TileSumTable *table, const TileSymbol *symbol) {
    for (size_t i = table->facts.count; i-- > 0;) {
        TileFact fact = table->facts.items[i];
        bool product = fact.symbol == symbol && fact.factor == -1 && fact.rest->count == 1 && fact.rest->products[0].degree > 1;
        if (!product || tile_sum_has_lanes(fact.rest) || !is_not_negative(table, symbol)) continue;
        assume_factors(table, fact.rest, fact.needs);
        return;
    }
}

static void assume(TileSumTable *table, const TileSum *sum, const TileSum *needs);

/* The code's value of `sum` is at least -rest. */
static void assume_bound(TileSumTable *table, const TileSum *sum, const TileSum *rest, const TileSum *needs) {
    tile_sum_inexact(table);
    const TileSum *code = tile_sum_code(table, sum), *room = tile_sum_add(table, code, rest);
    if (!tile_sum_inexact(table)) assume(table, room, needs);
    if (sum->inexact || code == tile_sum_resolve(table, sum) || tile_sum_may_fall(table, sum)) return;
    tile_sum_inexact(table);
    room = tile_sum_add(table, sum, rest);
    if (!tile_sum_inexact(table)) assume(table, room, needs);
}

/* symbol + rest >= 0 tells of the operands of the symbol, too; but of lanes nothing of other numbers. */
static void assume_operands(TileSumTable *table, const TileSymbol *symbol, const TileSum *rest, const TileSum *needs) {
    int64_t divisor;
    if (symbol->kind == TILE_SYMBOL_MIN && !symbol->lane) {
        assume_bound(table, symbol->a, rest, needs);
        assume_bound(table, symbol->b, rest, needs);
    } else if (symbol->kind == TILE_SYMBOL_DIV && tile_sum_known(table, symbol->b, &divisor) && divisor > 0) {
        tile_sum_inexact(table);
        const TileSum *times = tile_sum_multiply(table, rest, tile_sum_integer(table, divisor));
        if (!tile_sum_inexact(table)) assume_bound(table, symbol->a, times, needs);
    }
}

/* rest - symbol >= 0 */
static void assume_operands_below(TileSumTable *table, const TileSymbol *symbol, const TileSum *rest,
                                  const TileSum *needs) {
    int64_t divisor;
    bool divides = symbol->kind == TILE_SYMBOL_DIV && tile_sum_known(table, symbol->b, &divisor) && divisor > 0;
    const TileSum *const operands[] = {symbol->a, symbol->b};
    unsigned count = symbol->kind == TILE_SYMBOL_MAX && !symbol->lane ? 2 : divides;
    for (unsigned i = 0; i < count; i++) {
        const TileSum *code = tile_sum_code(table, operands[i]), *most = rest;
        tile_sum_inexact(table);
        if (divides) {
            most = tile_sum_multiply(table, rest, tile_sum_integer(table, divisor));
            most = tile_sum_add(table, most, tile_sum_integer(table, divisor - 1));
        }
        const TileSum *room = tile_sum_subtract(table, most, code);
        if (!tile_sum_inexact(table)) assume(table, room, needs);
    }
}

/* Divided by the greatest common divisor of its factors, rounded down. */
static const TileSum *reduced(TileSumTable *table, const TileSum *sum) {
    uint64_t divisor = 0;
    TileProduct products[TILE_MAX_PRODUCTS];
    for (uint32_t i = 0; i < sum->count; i++) {
        int64_t factor = sum->products[i].factor;
        uint64_t size = factor < 0 ? 0 - (uint64_t)factor : (uint64_t)factor;
        while (size) { /* Euclid's algorithm */
            uint64_t rest = divisor % size;
            divisor = size;
            size = rest;
        }
    }
    if (divisor < 2 || divisor > INT64_MAX || sum->count > TILE_MAX_PRODUCTS) return sum;
    for (uint32_t i = 0; i < sum->count; i++) {
        products[i] = sum->products[i];
        products[i].factor /= (int64_t)divisor;
    }
    return tile_sum_intern(table, tile_sum_floor_divide(sum->constant, (int64_t)divisor), products, sum->count);
}

/* The exact integer is >= 0: a bound of each symbol that stands alone in a product. What holds for all lanes of a tile
 * bounds lanes alone: there may be none. */
static void assume(TileSumTable *table, const TileSum *sum, const TileSum *needs) {
    sum = tile_sum_resolve(table, sum);
    if (sum->count == 0) return;
    sum = reduced(table, sum);
    bool lanes = tile_sum_has_lanes(sum);
    if (!lanes) assume_factors(table, sum, needs);
    for (uint32_t i = 0; i < sum->count; i++) {
        const TileProduct *product = &sum->products[i];
        const TileSum *coefficient, *rest;
        if (product->degree != 1 || (lanes && !product->symbols[0]->lane)) continue;
        const TileSymbol *symbol = product->symbols[0];
        if (!tile_sum_take_apart(table, sum, symbol, &coefficient, &rest) || coefficient->count) continue;
        add_fact(table, symbol, product->factor, rest, needs);
        if (!symbol->lane) assume_factors_above(table, symbol);
        if (product->factor == 1) assume_operands(table, symbol, rest, needs);
        if (product->factor == -1) assume_operands_below(table, symbol, rest, needs);
    }
}

/* a + gap <= b */
static void assume_at_most(TileSumTable *table, const TileSum *a, const TileSum *b, int64_t gap, const TileSum *needs) {
    const TileSum *x = tile_sum_resolve(table, a), *y = tile_sum_resolve(table, b);
    if (a->inexact || b->inexact) return;
    tile_sum_inexact(table);
    const TileSum *room = tile_sum_subtract(table, y, x);
    room = tile_sum_subtract(table, room, tile_sum_integer(table, gap));
    if (!tile_sum_inexact(table)) assume(table, room, needs);
}

void tile_sum_assume(TileSumTable *table, const TileSum *a, const TileSum *b) { assume_at_most(table, a, b, 0, NULL); }

/* ---- the code's values ---- */

/* The sum whose code's value it is; else itself. */
static const TileSum *sum_behind(const TileSum *sum) {
    bool alone = sum->count == 1 && !sum->constant && sum->products[0].degree == 1 && sum->products[0].factor == 1;
    return alone && sum->products[0].symbols[0]->kind == TILE_SYMBOL_GROUP ? sum->products[0].symbols[0]->a : sum;
}

void tile_sum_assume_code(TileSumTable *table, const TileSum *a, const TileSum *b, bool less, const TileSum *needs) {
    const TileSum *x = tile_sum_code(table, a), *y = tile_sum_code(table, b);
    assume_at_most(table, x, y, less, needs);
    a = sum_behind(a); /* of a number in a tile that is the same in all lanes, the value is what is compared */
    b = sum_behind(b);
    if (x == tile_sum_resolve(table, a) && y == tile_sum_resolve(table, b)) return;
    /* Where it wraps to one side alone, the exact sum lies further apart. */
    bool below = x != tile_sum_resolve(table, a) && !tile_sum_may_exceed(table, a);
    bool above = y != tile_sum_resolve(table, b) && !tile_sum_may_fall(table, b);
    if (below) assume_at_most(table, a, y, less, needs);
    if (above) assume_at_most(table, x, b, less, needs);
    if (below && above) assume_at_most(table, a, b, less, needs);
}

static bool between(TileSumTable *table, const TileSum *a, const TileSum *b, const TileSum *low, const TileSum *high,
                    TileSumNeeds *needs) {
    unsigned had = needs ? needs->count : 0;
    if (tile_sum_proves(table, low, a, needs) && tile_sum_proves(table, b, high, needs)) return true;
    if (needs) needs->count = had;
    return false;
}

/* The same sum modulo 2^64, where the part that overflows is the code's value of another sum. */
static const TileSum *by_group(TileSumTable *table, const TileSum *sum, const TileSymbol *group) {
    tile_sum_inexact(table);
    const TileSum *rest = tile_sum_subtract(table, sum, group->a);
    const TileSum *other = tile_sum_add(table, tile_sum_symbol(table, (TileSymbol *)group), rest);
    return tile_sum_inexact(table) ? NULL : other;
}

bool tile_sum_within(TileSumTable *table, const TileSum *a, const TileSum *b, const TileSum *low, const TileSum *high,
                     TileSumNeeds *needs) {
    if (between(table, a, b, low, high, needs)) return true;
    const TileSum *sum = tile_sum_resolve(table, a);
    if (a != b) return false;
    for (size_t i = table->facts.count; i-- > 0;) {
        const TileSymbol *group = table->facts.items[i].symbol;
        if (group->kind != TILE_SYMBOL_GROUP) continue;
        const TileSum *other = by_group(table, sum, group);
        if (other && between(table, other, other, low, high, needs)) return true;
    }
    return false;
}
