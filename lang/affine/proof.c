/* Proofs about sums: that one is at most another, by the bounds of symbols and by facts that hold in a scope. Both are
 * exact integers; interval.c tells whether the code's value, modulo 2^64, is equal. */
#include "lang/affine/internal.h"

#include <string.h>

/* ---- bounds ---- */

void tile_symbol_bound(TileSumTable *table, TileSymbol *symbol, const TileSum *lower, const TileSum *upper) {
    tile_sum_count_bound(table, symbol);
    tile_sum_open_symbol(symbol, lower);
    tile_sum_open_symbol(symbol, upper);
    if (lower && symbol->lower_count < TILE_MAX_BOUNDS) symbol->lower[symbol->lower_count++] = lower;
    if (upper && symbol->upper_count < TILE_MAX_BOUNDS) symbol->upper[symbol->upper_count++] = upper;
}

/* ---- proofs ---- */

/* sum = coefficient * symbol + rest; false if a higher power of the symbol occurs, too. */
bool tile_sum_take_apart(TileSumTable *table, const TileSum *sum, const TileSymbol *symbol, const TileSum **coefficient,
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

/* An element of a tile counts as newer than all that is none: facts are about the element alone. */
static bool is_newer(const TileSymbol *symbol, const TileSymbol *than) {
    return symbol->lane == than->lane ? symbol->id > than->id : symbol->lane;
}

const TileSymbol *tile_sum_newest(const TileSum *sum) {
    const TileSymbol *newest = NULL;
    for (uint32_t i = 0; i < sum->count; i++)
        for (uint32_t k = 0; k < sum->products[i].degree; k++)
            if (!newest || is_newer(sum->products[i].symbols[k], newest)) newest = sum->products[i].symbols[k];
    return newest;
}

static bool prove(TileSumTable *table, const TileSum *sum, TileSumNeeds *needs, unsigned fuel);

static bool prove_with(TileSumTable *table, const TileSum *coefficient, const TileSum *bound, const TileSum *rest,
                       TileSumNeeds *needs, unsigned fuel) {
    tile_sum_inexact(table);
    const TileSum *sum = tile_sum_add(table, tile_sum_multiply(table, coefficient, bound), rest);
    return !tile_sum_inexact(table) && prove(table, sum, needs, fuel);
}

static bool add_need(const TileSum *need, TileSumNeeds *needs) {
    if (!need) return true;
    if (!needs || needs->count == sizeof needs->items / sizeof *needs->items) return false;
    needs->items[needs->count++] = need;
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
    return below ? !tile_sum_may_exceed(table, sum) : !tile_sum_may_fall(table, sum);
}

/* Is a divisor at least 1, which a launch can check? `last` is one less. */
static bool is_divisor(TileSumTable *table, const TileSum *last, const Goal *goal) {
    if (prove(table, last, goal->needs, goal->fuel)) return true;
    return tile_sum_is_host(last) && goal->needs && goal->needs->divisors && add_need(last, goal->needs);
}

static bool leaves_64_bits(TileSumTable *table, const TileSum *sum) {
    return tile_sum_may_fall(table, sum) || tile_sum_may_exceed(table, sum);
}

const TileSum *tile_sum_code(TileSumTable *table, const TileSum *sum) {
    const TileSum *resolved = tile_sum_resolve(table, sum);
    bool exact = !sum->inexact && !tile_sum_may_fall(table, resolved) && !tile_sum_may_exceed(table, resolved);
    return exact ? resolved : tile_sum_compound(table, TILE_SYMBOL_GROUP, resolved, NULL);
}

/* What is divided: the exact sum, if it may stand for the code's value, else that. */
static const TileSum *dividend(TileSumTable *table, const TileSymbol *symbol, const Goal *goal) {
    return is_bound(table, symbol->a, goal->up) ? symbol->a : tile_sum_code(table, symbol->a);
}

/* With d = floor(a / b), b > 0: d <= r if a < (r + 1) * b, and d >= -r if a + r * b >= 0. Where 0 <= a < (r + 1) * b, a divisor that is
 * not negative is not 0 either. So a number below H * W has a quotient by W below H. */
static bool prove_by_product(TileSumTable *table, const TileSymbol *symbol, const Goal *goal) {
    if (leaves_64_bits(table, symbol->b)) return false;
    const TileSum *a = dividend(table, symbol, goal), *b = symbol->b, *zero = tile_sum_integer(table, 0), *one = tile_sum_integer(table, 1);
    tile_sum_inexact(table);
    const TileSum *past = goal->up ? goal->rest : tile_sum_add(table, goal->rest, one);
    const TileSum *rest = goal->up ? a : tile_sum_subtract(table, tile_sum_subtract(table, zero, a), one);
    const TileSum *last = tile_sum_subtract(table, b, one);
    if (tile_sum_inexact(table) || !prove_with(table, past, b, rest, goal->needs, goal->fuel)) return false;
    if (goal->up) return prove(table, last, goal->needs, goal->fuel);
    return prove(table, b, goal->needs, goal->fuel) && prove(table, a, goal->needs, goal->fuel);
}

/* With d = floor(a / b), b > 0: a - b < b * d <= a. So i - i / W * W lies from 0 up to, but without, W. */
static bool prove_by_multiple(TileSumTable *table, const TileSymbol *symbol, const Goal *goal) {
    const TileSum *b = symbol->b, *one = tile_sum_integer(table, 1), *zero = tile_sum_integer(table, 0);
    if (goal->coefficient != (goal->up ? b : tile_sum_subtract(table, zero, b)) || leaves_64_bits(table, b)) return false;
    const TileSum *a = tile_sum_code(table, symbol->a);
    tile_sum_inexact(table);
    const TileSum *least = tile_sum_add(table, tile_sum_subtract(table, a, b), one), *most = tile_sum_subtract(table, zero, a);
    const TileSum *last = tile_sum_subtract(table, b, one);
    if (tile_sum_inexact(table) || !is_divisor(table, last, goal)) return false;
    return prove_with(table, one, goal->up ? least : most, goal->rest, goal->needs, goal->fuel);
}

/* With d = floor(a / k), k > 0: k * d <= a <= k * d + k - 1; exact for a coefficient of 1 or -1. */
static bool prove_quotient(TileSumTable *table, const TileSymbol *symbol, const Goal *goal) {
    int64_t k, m;
    bool known = tile_sum_known(table, goal->coefficient, &m);
    if (!tile_sum_known(table, symbol->b, &k) || !known) {
        if (known && m == (goal->up ? 1 : -1) && prove_by_product(table, symbol, goal)) return true;
        if (prove_by_multiple(table, symbol, goal)) return true;
        if (leaves_64_bits(table, symbol->b)) return false;
        const TileSum *zero = tile_sum_integer(table, 0), *a = tile_sum_code(table, symbol->a);
        return prove(table, symbol->b, goal->needs, goal->fuel) && prove(table, a, goal->needs, goal->fuel) &&
               prove_with(table, goal->coefficient, goal->up ? zero : a, goal->rest, goal->needs, goal->fuel);
    }
    if (k < 1 || m == INT64_MIN) return false;
    int64_t slack = goal->up ? (m == 1 ? 0 : 1 - k) : (m == -1 ? 1 - k : 0);
    tile_sum_inexact(table);
    const TileSum *bound = tile_sum_add(table, dividend(table, symbol, goal), tile_sum_integer(table, slack));
    const TileSum *rest = tile_sum_multiply(table, goal->rest, tile_sum_integer(table, k));
    return !tile_sum_inexact(table) && prove_with(table, goal->coefficient, bound, rest, goal->needs, goal->fuel);
}

/* 0 <= a % b for b >= 0, and a % b <= b - 1 for b >= 1, which a launch can check. */
static bool prove_remainder(TileSumTable *table, const TileSymbol *symbol, const Goal *goal) {
    if (leaves_64_bits(table, symbol->b)) return false;
    tile_sum_inexact(table);
    const TileSum *last = tile_sum_subtract(table, symbol->b, tile_sum_integer(table, 1));
    if (tile_sum_inexact(table)) return false;
    if (!(goal->up && prove(table, symbol->b, goal->needs, goal->fuel)) && !is_divisor(table, last, goal)) return false;
    const TileSum *bound = goal->up ? tile_sum_integer(table, 0) : last;
    return prove_with(table, goal->coefficient, bound, goal->rest, goal->needs, goal->fuel);
}

/* A fact gives a bound of its symbol, in multiples of |factor|. */
static bool prove_by_fact(TileSumTable *table, const TileFact *fact, const Goal *goal) {
    const TileSum *zero = tile_sum_integer(table, 0);
    bool lower = fact->factor > 0;
    tile_sum_inexact(table);
    const TileSum *coefficient = lower ? tile_sum_subtract(table, zero, goal->coefficient) : goal->coefficient;
    int64_t size = lower ? fact->factor : -fact->factor;
    const TileSum *rest = tile_sum_multiply(table, goal->rest, tile_sum_integer(table, size));
    return !tile_sum_inexact(table) && prove_with(table, coefficient, fact->rest, rest, goal->needs, goal->fuel);
}

static bool prove_by_facts(TileSumTable *table, const TileSymbol *symbol, const Goal *goal) {
    for (size_t i = 0; i < table->facts.count; i++) {
        if (table->facts.items[i].symbol != symbol) continue;
        TileFact fact = table->facts.items[i];
        if ((fact.factor > 0) != goal->up || (fact.needs && !goal->needs)) continue;
        if (!prove_by_fact(table, &fact, goal)) continue;
        if (table->facts_used <= i) table->facts_used = i + 1;
        return add_need(fact.needs, goal->needs);
    }
    return false;
}

/* The newest symbol is replaced by its bounds, which contain only older symbols; so this terminates. */
static bool prove_by_newest(TileSumTable *table, const TileSum *sum, TileSumNeeds *needs, unsigned fuel) {
    const TileSymbol *symbol = tile_sum_newest(sum);
    const TileSum *coefficient, *rest;
    if (fuel == 0 || table->steps == 0 || !tile_sum_take_apart(table, sum, symbol, &coefficient, &rest)) return false;
    fuel--;
    table->steps--;
    bool up = prove(table, coefficient, needs, fuel);
    if (!up && !prove(table, tile_sum_subtract(table, tile_sum_integer(table, 0), coefficient), needs, fuel))
        return false;
    if (symbol->kind == TILE_SYMBOL_GROUP && is_bound(table, symbol->a, up) && prove_with(table, coefficient, symbol->a, rest, needs, fuel))
        return true;
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
        if (prove_with(table, coefficient, bounds[i], rest, needs, fuel)) return add_need(symbol->needs, needs);
    Goal goal = {coefficient, rest, up, needs, fuel};
    if (symbol->kind == TILE_SYMBOL_DIV && prove_quotient(table, symbol, &goal)) return true;
    if (symbol->kind == TILE_SYMBOL_REM && prove_remainder(table, symbol, &goal)) return true;
    return prove_by_facts(table, symbol, &goal);
}

static bool has_product(const TileSum *sum) {
    for (uint32_t i = 0; i < sum->count; i++)
        if (sum->products[i].degree > 1) return true;
    return false;
}

/* Have they a product of several symbols in common, with the same factor? */
static bool share_product(const TileSum *a, const TileSum *b) {
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t k = 0; a->products[i].degree > 1 && k < b->count; k++) {
            const TileProduct *x = &a->products[i], *y = &b->products[k];
            bool same = x->factor == y->factor && x->degree == y->degree;
            if (same && memcmp(x->symbols, y->symbols, x->degree * sizeof *x->symbols) == 0) return true;
        }
    return false;
}

/* A fact is about one symbol, which is older than those of a product beside it where it is declared first: `H <= K * g` is a
 * bound of H. So a question that has the product is asked again without the fact. */
static bool prove_by_difference(TileSumTable *table, const TileSum *sum, TileSumNeeds *needs, unsigned fuel) {
    if (fuel == 0 || !has_product(sum)) return false;
    for (size_t i = 0; i < table->facts.count && table->steps; i++) {
        TileFact fact = table->facts.items[i];
        if (!share_product(sum, fact.rest) || (fact.needs && !needs)) continue;
        table->steps--;
        tile_sum_inexact(table);
        const TileSum *known = tile_sum_symbol(table, (TileSymbol *)fact.symbol);
        known = tile_sum_multiply(table, known, tile_sum_integer(table, fact.factor));
        const TileSum *left = tile_sum_subtract(table, sum, tile_sum_add(table, known, fact.rest));
        if (tile_sum_inexact(table) || !prove(table, left, needs, fuel - 1)) continue;
        if (table->facts_used <= i) table->facts_used = i + 1;
        return add_need(fact.needs, needs);
    }
    return false;
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
    TileInterval interval = tile_sum_interval(table, sum);
    if (interval.least >= 0 && !interval.below) return true;
    size_t used = table->facts_used;
    TileProof *failed = &sum->failed[needs ? 1 + needs->divisors : 0];
    if (still_proven(table, &sum->proven)) {
        if (used < sum->proven.facts) table->facts_used = sum->proven.facts;
        return true;
    }
    if (still_fails(table, failed, fuel)) return false;
    unsigned had = needs ? needs->count : 0;
    table->facts_used = 0;
    bool proven = prove_by_newest(table, sum, needs, fuel) || prove_by_difference(table, sum, needs, fuel);
    size_t facts = table->facts_used;
    table->facts_used = proven && facts > used ? facts : used;
    if (!proven) {
        if (needs) needs->count = had;
        if (table->steps == 0) return false; /* it was given up, so that it may hold */
        *failed = (TileProof){table->bound_count + 1, (uint32_t)table->facts.count, (uint8_t)fuel};
        table->asked_symbols = table->symbol_count;
    } else if (!needs || needs->count == had) {
        sum->proven = (TileProof){fact_stamp(table, facts), (uint32_t)facts, 0};
    }
    return proven;
}

/* Proofs whose number of steps is not small are given up: there may be many facts about many symbols. */
static bool proves(TileSumTable *table, const TileSum *sum, TileSumNeeds *needs) {
    enum { FUEL = 12, STEPS = 200 };
    bool outer = !table->proving;
    if (outer) table->steps = STEPS;
    table->proving = true;
    bool proven = prove(table, sum, needs, FUEL);
    if (outer) table->proving = false;
    return proven;
}

bool tile_sum_proves(TileSumTable *table, const TileSum *a, const TileSum *b, TileSumNeeds *needs) {
    tile_sum_inexact(table);
    const TileSum *difference = tile_sum_subtract(table, b, a);
    return !tile_sum_inexact(table) && proves(table, difference, needs);
}

bool tile_sum_at_most(TileSumTable *table, const TileSum *a, const TileSum *b) {
    return tile_sum_proves(table, a, b, NULL) && !tile_sum_may_fall(table, a) && !tile_sum_may_exceed(table, b);
}

bool tile_sum_may_fall(TileSumTable *table, const TileSum *sum) {
    return tile_sum_falls(table, sum) && !tile_sum_proves(table, tile_sum_integer(table, -TILE_SUM_FAR), sum, NULL);
}

/* Are all symbols of the first product among those of the second, the others at least 1, and all at least 0? */
static bool is_part_of(TileSumTable *table, const TileProduct *part, const TileProduct *whole) {
    const TileSum *one = tile_sum_integer(table, 1), *zero = tile_sum_integer(table, 0);
    uint32_t found = 0;
    for (uint32_t i = 0; i < whole->degree; i++) { /* both are in the order of their symbols */
        bool both = found < part->degree && part->symbols[found] == whole->symbols[i];
        found += both;
        if (!tile_sum_proves(table, both ? zero : one, tile_sum_symbol(table, whole->symbols[i]), NULL)) return false;
    }
    return found == part->degree && part->factor > 0 && part->factor <= whole->factor;
}

/* Within a grid over A * B * C, which a launch has checked, B * C is at most as much. */
static bool divides_trusted(TileSumTable *table, const TileSum *sum) {
    sum = tile_sum_resolve(table, sum);
    if (sum->inexact || sum->count != 1 || sum->constant || sum->products[0].degree < 2) return false;
    for (size_t i = 0; i < table->trusted.count; i++)
        if (is_part_of(table, &sum->products[0], &table->trusted.items[i]->products[0])) return true;
    return false;
}

bool tile_sum_may_exceed(TileSumTable *table, const TileSum *sum) {
    return tile_sum_exceeds(table, sum) && !tile_sum_proves(table, sum, tile_sum_integer(table, TILE_SUM_FAR), NULL) &&
           !divides_trusted(table, sum);
}
