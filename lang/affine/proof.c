/* Proofs about sums: that one is at most another, by the bounds of symbols and by facts that hold in a scope. Both are
 * exact integers; interval.c tells whether the code's value, modulo 2^64, is equal. */
#include "lang/affine/internal.h"

/* ---- bounds ---- */

/* A failed proof is tried again once there is a new bound or fact about a symbol that it may have used. */
static void count_bound(TileSumTable *table, const TileSymbol *symbol) {
    table->bound_count += symbol->id < table->asked_symbols;
}

/* A proof is as open as the bounds that it uses. */
static void open_by_bound(TileSymbol *symbol, const TileSum *bound) {
    if (tile_sum_open(bound)) symbol->open |= TILE_OPEN_NUMBER;
}

void tile_symbol_bound(TileSumTable *table, TileSymbol *symbol, const TileSum *lower, const TileSum *upper) {
    count_bound(table, symbol);
    open_by_bound(symbol, lower);
    open_by_bound(symbol, upper);
    if (lower && symbol->lower_count < TILE_MAX_BOUNDS) symbol->lower[symbol->lower_count++] = lower;
    if (upper && symbol->upper_count < TILE_MAX_BOUNDS) symbol->upper[symbol->upper_count++] = upper;
}

/* ---- proofs ---- */

/* sum = coefficient * symbol + rest; false if a higher power of the symbol occurs, too. */
static bool take_apart(TileSumTable *table, const TileSum *sum, const TileSymbol *symbol, const TileSum **coefficient,
                       const TileSum **rest) {
    TileProduct kept[TILE_MAX_PRODUCTS];
    uint32_t kept_count = 0;
    *coefficient = tile_sum_integer(table, 0);
    for (uint32_t i = 0; i < sum->count; i++) {
        const TileProduct *product = &sum->products[i];
        TileProduct other = {.factor = product->factor};
        for (uint32_t k = 0; k < product->degree; k++)
            if (product->symbols[k] != symbol) other.symbols[other.degree++] = product->symbols[k];
        if (other.degree == product->degree) {
            kept[kept_count++] = *product;
            continue;
        }
        if (other.degree + 1 != product->degree) return false;
        const TileSum *term =
            other.degree ? tile_sum_intern(table, 0, &other, 1) : tile_sum_integer(table, other.factor);
        *coefficient = tile_sum_add(table, *coefficient, term);
    }
    *rest = tile_sum_intern(table, sum->constant, kept, kept_count);
    return true;
}

static const TileSymbol *newest_symbol(const TileSum *sum) {
    const TileSymbol *newest = NULL;
    for (uint32_t i = 0; i < sum->count; i++)
        for (uint32_t k = 0; k < sum->products[i].degree; k++)
            if (!newest || sum->products[i].symbols[k]->id > newest->id) newest = sum->products[i].symbols[k];
    return newest;
}

static bool prove(TileSumTable *table, const TileSum *sum, TileSumNeeds *needs, unsigned fuel);

static bool prove_with(TileSumTable *table, const TileSum *coefficient, const TileSum *bound, const TileSum *rest,
                       TileSumNeeds *needs, unsigned fuel) {
    tile_sum_wrapped(table);
    const TileSum *sum = tile_sum_add(table, tile_sum_multiply(table, coefficient, bound), rest);
    return !tile_sum_wrapped(table) && prove(table, sum, needs, fuel);
}

static bool add_need(const TileSymbol *symbol, TileSumNeeds *needs) {
    if (!symbol->needs) return true;
    if (!needs || needs->count == sizeof needs->items / sizeof *needs->items) return false;
    needs->items[needs->count++] = symbol->needs;
    return true;
}

typedef struct Goal {
    const TileSum *coefficient, *rest; /* coefficient * symbol + rest >= 0 */
    bool up;                           /* coefficient >= 0 */
    TileSumNeeds *needs;
    unsigned fuel;
} Goal;

/* Is the code's value never below (above) the exact one? */
static bool is_bound(TileSumTable *table, const TileSum *sum, bool below) {
    return below ? !tile_sum_exceeds(table, sum) : !tile_sum_falls(table, sum);
}

/* With d = floor(a / k), k > 0: k * d <= a <= k * d + k - 1; exact for a coefficient of 1 or -1. */
static bool prove_quotient(TileSumTable *table, const TileSymbol *symbol, const Goal *goal) {
    int64_t k, m;
    if (!tile_sum_known(table, symbol->b, &k) || !tile_sum_known(table, goal->coefficient, &m)) {
        if (tile_sum_wraps(table, symbol->a) || tile_sum_wraps(table, symbol->b)) return false;
        const TileSum *zero = tile_sum_integer(table, 0);
        return prove(table, symbol->b, goal->needs, goal->fuel) && prove(table, symbol->a, goal->needs, goal->fuel) &&
               prove_with(table, goal->coefficient, goal->up ? zero : symbol->a, goal->rest, goal->needs, goal->fuel);
    }
    if (k < 1 || m == INT64_MIN || !is_bound(table, symbol->a, goal->up)) return false;
    int64_t slack = goal->up ? (m == 1 ? 0 : 1 - k) : (m == -1 ? 1 - k : 0);
    tile_sum_wrapped(table);
    const TileSum *bound = tile_sum_add(table, symbol->a, tile_sum_integer(table, slack));
    const TileSum *rest = tile_sum_multiply(table, goal->rest, tile_sum_integer(table, k));
    return !tile_sum_wrapped(table) && prove_with(table, goal->coefficient, bound, rest, goal->needs, goal->fuel);
}

/* 0 <= a % b for b >= 0, and a % b <= b - 1 for b >= 1. */
static bool prove_remainder(TileSumTable *table, const TileSymbol *symbol, const Goal *goal) {
    const TileSum *last = tile_sum_subtract(table, symbol->b, tile_sum_integer(table, 1));
    if (tile_sum_wraps(table, symbol->b) || !prove(table, goal->up ? symbol->b : last, goal->needs, goal->fuel))
        return false;
    const TileSum *bound = goal->up ? tile_sum_integer(table, 0) : last;
    return prove_with(table, goal->coefficient, bound, goal->rest, goal->needs, goal->fuel);
}

static bool prove_by_facts(TileSumTable *table, const TileSymbol *symbol, const Goal *goal) {
    for (size_t i = 0; i < table->facts.count; i++) {
        TileFact fact = table->facts.items[i];
        if (fact.symbol != symbol || fact.upper == goal->up ||
            !prove_with(table, goal->coefficient, fact.bound, goal->rest, goal->needs, goal->fuel))
            continue;
        if (table->facts_used <= i) table->facts_used = i + 1;
        return true;
    }
    return false;
}

/* The newest symbol is replaced by its bounds, which contain only older symbols; so this terminates. */
static bool prove_by_newest(TileSumTable *table, const TileSum *sum, TileSumNeeds *needs, unsigned fuel) {
    const TileSymbol *symbol = newest_symbol(sum);
    const TileSum *coefficient, *rest;
    if (fuel == 0 || !take_apart(table, sum, symbol, &coefficient, &rest)) return false;
    fuel--;
    bool up = prove(table, coefficient, needs, fuel);
    if (!up && !prove(table, tile_sum_subtract(table, tile_sum_integer(table, 0), coefficient), needs, fuel))
        return false;
    bool both = symbol->kind == (up ? TILE_SYMBOL_MIN : TILE_SYMBOL_MAX);
    bool either = symbol->kind == (up ? TILE_SYMBOL_MAX : TILE_SYMBOL_MIN);
    if (both || either) {
        bool a = is_bound(table, symbol->a, up) && prove_with(table, coefficient, symbol->a, rest, needs, fuel);
        if (a && either) return true;
        bool b = (a || either) && is_bound(table, symbol->b, up);
        if (b && prove_with(table, coefficient, symbol->b, rest, needs, fuel)) return true;
    }
    const TileSum *const *bounds = up ? symbol->lower : symbol->upper;
    unsigned count = up ? symbol->lower_count : symbol->upper_count;
    for (unsigned i = 0; i < count; i++)
        if (prove_with(table, coefficient, bounds[i], rest, needs, fuel)) return add_need(symbol, needs);
    Goal goal = {coefficient, rest, up, needs, fuel};
    if (symbol->kind == TILE_SYMBOL_DIV && prove_quotient(table, symbol, &goal)) return true;
    if (symbol->kind == TILE_SYMBOL_REM && prove_remainder(table, symbol, &goal)) return true;
    return prove_by_facts(table, symbol, &goal);
}

static uint64_t fact_stamp(const TileSumTable *table, size_t count) {
    return count ? table->facts.items[count - 1].stamp : TILE_SUM_NO_FACT;
}

/* Facts are a stack: if one still holds, all before it hold, too. */
static bool still_proven(const TileSumTable *table, const TileProof *proof) {
    return proof->stamp && proof->facts <= table->facts.count && proof->stamp == fact_stamp(table, proof->facts);
}

static bool still_fails(const TileSumTable *table, const TileProof *proof, unsigned fuel) {
    return proof->stamp == table->bound_count + 1 && proof->facts >= table->facts.count && proof->fuel >= fuel;
}

/* Attempts under the same bounds are not repeated. What a failed attempt would have required of a launch is dropped. */
static bool prove(TileSumTable *table, const TileSum *question, TileSumNeeds *needs, unsigned fuel) {
    TileSum *sum = (TileSum *)tile_sum_resolve(table, question);
    if (question->inexact) return false;
    if (sum->count == 0) return sum->constant >= 0;
    size_t used = table->facts_used;
    TileProof *failed = &sum->failed[needs != NULL];
    if (still_proven(table, &sum->proven)) {
        if (used < sum->proven.facts) table->facts_used = sum->proven.facts;
        return true;
    }
    if (still_fails(table, failed, fuel)) return false;
    unsigned had = needs ? needs->count : 0;
    table->facts_used = 0;
    bool proven = prove_by_newest(table, sum, needs, fuel);
    size_t facts = table->facts_used;
    table->facts_used = proven && facts > used ? facts : used;
    if (!proven) {
        if (needs) needs->count = had;
        *failed = (TileProof){table->bound_count + 1, (uint32_t)table->facts.count, (uint8_t)fuel};
        table->asked_symbols = table->symbol_count;
    } else if (!needs || needs->count == had) {
        sum->proven = (TileProof){fact_stamp(table, facts), (uint32_t)facts, 0};
    }
    return proven;
}

static bool proves(TileSumTable *table, const TileSum *sum, TileSumNeeds *needs) {
    enum { FUEL = 12 };
    return prove(table, sum, needs, FUEL);
}

bool tile_sum_proves(TileSumTable *table, const TileSum *a, const TileSum *b, TileSumNeeds *needs) {
    tile_sum_wrapped(table);
    const TileSum *difference = tile_sum_subtract(table, b, a);
    return !tile_sum_wrapped(table) && proves(table, difference, needs);
}

bool tile_sum_at_most(TileSumTable *table, const TileSum *a, const TileSum *b) {
    return tile_sum_proves(table, a, b, NULL) && !tile_sum_falls(table, a) && !tile_sum_exceeds(table, b);
}

/* ---- facts ---- */

static void add_fact(TileSumTable *table, const TileSymbol *symbol, const TileSum *bound, bool upper) {
    count_bound(table, symbol);
    open_by_bound((TileSymbol *)symbol, bound);
    tile_list_push(table->arena, &table->facts, (TileFact){symbol, bound, ++table->stamp, upper});
}

/* A product that is at least 1 and whose factors are all at least 0: each factor is at least 1. */
static void assume_factors(TileSumTable *table, const TileSum *sum) {
    const TileProduct *product = &sum->products[0];
    if (sum->count != 1 || sum->constant >= 0 || product->factor < 0) return;
    for (uint32_t i = 0; i < product->degree; i++)
        if (!proves(table, tile_sum_symbol(table, product->symbols[i]), NULL)) return;
    for (uint32_t i = 0; i < product->degree; i++)
        add_fact(table, product->symbols[i], tile_sum_integer(table, 1), false);
}

static void assume(TileSumTable *table, const TileSum *sum);

/* The code's value of `sum` is at least -rest. */
static void assume_bound(TileSumTable *table, const TileSum *sum, const TileSum *rest) {
    tile_sum_wrapped(table);
    const TileSum *room = tile_sum_add(table, sum, rest);
    if (!tile_sum_wrapped(table) && !tile_sum_falls(table, sum)) assume(table, room);
}

/* The exact integer is >= 0. */
static void assume(TileSumTable *table, const TileSum *sum) {
    sum = tile_sum_resolve(table, sum);
    const TileSymbol *symbol = newest_symbol(sum);
    const TileSum *coefficient, *rest;
    if (!symbol || !take_apart(table, sum, symbol, &coefficient, &rest)) return;
    const TileSum *zero = tile_sum_integer(table, 0);
    int64_t k = coefficient->constant, divisor;
    if (coefficient->count) {
        assume_factors(table, sum);
    } else if (k == 1 || k == -1) {
        add_fact(table, symbol, k == 1 ? tile_sum_subtract(table, zero, rest) : rest, k == -1);
    } else if (rest->count == 0 && k > 1) {
        add_fact(table, symbol, tile_sum_integer(table, -tile_sum_floor_divide(rest->constant, k)), false);
    }
    if (k != 1 || coefficient->count) return;
    if (symbol->kind == TILE_SYMBOL_MIN) {
        assume_bound(table, symbol->a, rest);
        assume_bound(table, symbol->b, rest);
    } else if (symbol->kind == TILE_SYMBOL_DIV && tile_sum_known(table, symbol->b, &divisor) && divisor > 0) {
        tile_sum_wrapped(table);
        const TileSum *times = tile_sum_multiply(table, rest, tile_sum_integer(table, divisor));
        if (!tile_sum_wrapped(table)) assume_bound(table, symbol->a, times);
    }
}

void tile_sum_assume(TileSumTable *table, const TileSum *a, const TileSum *b) {
    tile_sum_wrapped(table);
    const TileSum *difference = tile_sum_subtract(table, b, a);
    if (!tile_sum_wrapped(table)) assume(table, difference);
}
