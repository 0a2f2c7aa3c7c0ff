/* Bounds of integers. A tile of indices has those of its valid elements, so that an access by it can be proven to be
 * inside of a dimension; a scalar of a type narrower than i64 has a sum, as an i64 has. */
#include "lang/scalar/scalar.h"
#include "parser/check/bounds.h"
#include "parser/check/element.h"
#include "parser/check/scope.h"

static const TileBounds unknown = {NULL, NULL};

const TileSum *tile_scalar_sum(TileChecker *c, const TileMeaning *m) {
    if (m->kind != TILE_MEANING_VALUE || m->rank || !tile_scalar_is_int((TileScalar)m->scalar)) return NULL;
    if (m->sum) return m->sum;
    if (!m->constant) return m->lowest;
    return tile_sum_integer(&c->sums, tile_scalar_to_integer((TileScalar)m->scalar, m->bits));
}

/* The numbers of a type; of 64 bits those that leave room for arithmetic, and of u64 those that an i64 has, too. */
static void type_range(TileScalar type, int64_t *least, int64_t *most) {
    bool is_signed = tile_scalar_class(type) == TILE_CLASS_SIGNED;
    unsigned bits = tile_scalar_bits(type);
    *most = bits == 64 ? TILE_SUM_FAR - 1 : (INT64_C(1) << (bits - is_signed)) - 1;
    *least = is_signed ? -*most - 1 : 0;
}

static bool at_least(TileChecker *c, const TileSum *sum, int64_t least) {
    return sum && tile_sum_proves(&c->sums, tile_sum_integer(&c->sums, least), sum, NULL);
}

static bool at_most(TileChecker *c, const TileSum *sum, int64_t most) {
    return sum && tile_sum_proves(&c->sums, sum, tile_sum_integer(&c->sums, most), NULL);
}

static bool fits(TileChecker *c, TileBounds bounds, TileScalar type) {
    int64_t least, most;
    type_range(type, &least, &most);
    return at_least(c, bounds.lowest, least) && at_most(c, bounds.highest, most);
}

static TileBounds of_type(TileChecker *c, TileScalar type) {
    int64_t least, most;
    if (!tile_scalar_is_int(type) || tile_scalar_bits(type) == 64) return unknown;
    type_range(type, &least, &most);
    return (TileBounds){tile_sum_integer(&c->sums, least), tile_sum_integer(&c->sums, most)};
}

TileBounds tile_bounds_of(TileChecker *c, const TileMeaning *m) {
    TileScalar type = (TileScalar)m->scalar;
    if (m->kind != TILE_MEANING_VALUE || !tile_scalar_is_int(type)) return unknown;
    const TileSum *sum = tile_scalar_sum(c, m);
    if (sum) sum = tile_sum_code(&c->sums, sum);
    TileBounds bounds = sum ? (TileBounds){sum, sum} : (TileBounds){m->lowest, m->highest};
    if (type == TILE_U64 && !at_least(c, bounds.lowest, 0)) return unknown;
    TileBounds all = of_type(c, type);
    if (!bounds.lowest) bounds.lowest = all.lowest;
    if (!bounds.highest) bounds.highest = all.highest;
    const TileSum *element = m->element ? m->element : tile_element_find(c, m);
    if (!element || !c->sums.facts.count) return bounds;
    const TileSum *least = tile_element_known(c, element, false), *most = tile_element_known(c, element, true);
    if (least && !(bounds.lowest && tile_sum_proves(&c->sums, least, bounds.lowest, NULL))) bounds.lowest = least;
    if (most && !(bounds.highest && tile_sum_proves(&c->sums, bounds.highest, most, NULL))) bounds.highest = most;
    return bounds;
}

static uint32_t newest_of(const TileSum *sum) {
    uint32_t newest = 0;
    for (uint32_t i = 0; i < sum->count; i++)
        for (uint32_t k = 0; k < sum->products[i].degree; k++)
            if (sum->products[i].symbols[k]->id >= newest) newest = sum->products[i].symbols[k]->id + 1;
    return newest;
}

/* Of i < N a bound of i is worth to be kept, one of N is not: it would be by a number that is known later. And does it not hold
 * without the conditions around, anyway? */
static bool is_worth(TileChecker *c, const TileSum *sum, const TileSum *bound, const TileSum *least, const TileSum *most) {
    if (!bound || newest_of(bound) >= newest_of(sum)) return false;
    size_t facts = c->sums.facts.count;
    c->sums.facts.count = 0;
    bool holds = tile_sum_proves(&c->sums, least, most, NULL);
    c->sums.facts.count = facts;
    return !holds;
}

TileBounds tile_bounds_told(TileChecker *c, const TileMeaning *m) {
    TileBounds bounds = tile_bounds_of(c, m);
    if (m->kind != TILE_MEANING_VALUE || m->rank || !c->sums.facts.count) return bounds;
    const TileSum *sum = tile_scalar_sum(c, m);
    if (!sum || m->scalar == TILE_U64) return bounds;
    const TileSum *least = tile_element_known(c, sum, false), *most = tile_element_known(c, sum, true);
    if (is_worth(c, sum, least, least, bounds.lowest)) bounds.lowest = least;
    if (is_worth(c, sum, most, bounds.highest, most)) bounds.highest = most;
    return bounds;
}

const TileSum *tile_element_sum(TileChecker *c, const TileMeaning *m) {
    if (m->kind != TILE_MEANING_VALUE || !tile_scalar_is_int((TileScalar)m->scalar)) return NULL;
    if (m->rank == 0) return tile_scalar_sum(c, m);
    if (m->element) return m->element;
    const TileSum *own = tile_element_find(c, m);
    if (own) return own;
    TileBounds bounds = tile_bounds_of(c, m);
    return tile_element_make(c, m, bounds.lowest, bounds.highest);
}

/* ---- operators ---- */

typedef const TileSum *(*Combine)(TileSumTable *table, const TileSum *a, const TileSum *b);

/* The result of an operation on two bounds; NULL if one is unknown or a number wraps. */
static const TileSum *combine(TileChecker *c, Combine operation, const TileSum *a, const TileSum *b) {
    if (!a || !b) return NULL;
    tile_sum_inexact(&c->sums);
    const TileSum *sum = operation(&c->sums, a, b);
    return tile_sum_inexact(&c->sums) ? NULL : sum;
}

static const TileSum *power(TileChecker *c, TileBounds count) {
    int64_t number;
    bool known = count.lowest && count.lowest == count.highest && tile_sum_known(&c->sums, count.lowest, &number);
    return known && number >= 0 && number < 62 ? tile_sum_integer(&c->sums, INT64_C(1) << number) : NULL;
}

static TileBounds scaled(TileChecker *c, TileBounds a, const TileSum *by) {
    if (!by) return unknown;
    bool up = at_least(c, by, 0);
    if (!up && !at_most(c, by, 0)) return unknown;
    const TileSum *low = combine(c, tile_sum_multiply, up ? a.lowest : a.highest, by);
    return (TileBounds){low, combine(c, tile_sum_multiply, up ? a.highest : a.lowest, by)};
}

static TileBounds product(TileChecker *c, TileBounds a, TileBounds b) {
    if (b.lowest && b.lowest == b.highest) return scaled(c, a, b.lowest);
    if (a.lowest && a.lowest == a.highest) return scaled(c, b, a.lowest);
    if (!at_least(c, a.lowest, 0) || !at_least(c, b.lowest, 0)) return unknown;
    return (TileBounds){combine(c, tile_sum_multiply, a.lowest, b.lowest),
                        combine(c, tile_sum_multiply, a.highest, b.highest)};
}

static TileBounds quotient(TileChecker *c, TileBounds a, const TileSum *by) {
    if (!at_least(c, by, 0)) return unknown; /* by 0 all quotients are 0 */
    return (TileBounds){combine(c, tile_sum_divide, a.lowest, by), combine(c, tile_sum_divide, a.highest, by)};
}

/* Any remainder: nothing is known of what is divided. */
static const TileSum *some_remainder(TileChecker *c, const TileSum *by) {
    TileSymbol *some = tile_symbol_value(&c->sums, NULL, NULL);
    return tile_sum_remainder(&c->sums, tile_sum_symbol(&c->sums, some), by);
}

static TileBounds remainder_of(TileChecker *c, TileBounds a, TileBounds b) {
    bool one = b.lowest && b.lowest == b.highest;
    if (!at_least(c, b.lowest, 1)) /* a proof may need it, which a launch then checks */
        return one ? (TileBounds){some_remainder(c, b.lowest), some_remainder(c, b.lowest)} : unknown;
    const TileSum *zero = tile_sum_integer(&c->sums, 0), *most = NULL;
    if (b.highest) most = combine(c, tile_sum_subtract, b.highest, tile_sum_integer(&c->sums, 1));
    if (at_least(c, a.lowest, 0) && a.highest) most = most ? combine(c, tile_sum_min, a.highest, most) : a.highest;
    return (TileBounds){zero, most};
}

/* a & b is at most each operand that is not negative. */
static TileBounds common_bits(TileChecker *c, TileBounds a, TileBounds b) {
    bool x = at_least(c, a.lowest, 0), y = at_least(c, b.lowest, 0);
    if (!x && !y) return unknown;
    const TileSum *most = x && a.highest ? a.highest : y ? b.highest : NULL;
    if (x && y && a.highest && b.highest) most = combine(c, tile_sum_min, a.highest, b.highest);
    return (TileBounds){tile_sum_integer(&c->sums, 0), most};
}

static TileBounds apply(TileChecker *c, TileTokenKind op, TileBounds a, TileBounds b) {
    switch (op) {
    case TILE_TOKEN_PLUS:
        return (TileBounds){combine(c, tile_sum_add, a.lowest, b.lowest),
                            combine(c, tile_sum_add, a.highest, b.highest)};
    case TILE_TOKEN_MINUS:
        return (TileBounds){combine(c, tile_sum_subtract, a.lowest, b.highest),
                            combine(c, tile_sum_subtract, a.highest, b.lowest)};
    case TILE_TOKEN_STAR: return product(c, a, b);
    case TILE_TOKEN_SLASH: return b.lowest == b.highest ? quotient(c, a, b.lowest) : unknown;
    case TILE_TOKEN_PERCENT: return remainder_of(c, a, b);
    case TILE_TOKEN_AMPERSAND: return common_bits(c, a, b);
    case TILE_TOKEN_SHL: return scaled(c, a, power(c, b));
    case TILE_TOKEN_SHR: return quotient(c, a, power(c, b));
    default: return unknown;
    }
}

/* May the operation wrap, or does it stay between its operands and 0? */
static bool grows(TileTokenKind op) {
    return op == TILE_TOKEN_PLUS || op == TILE_TOKEN_MINUS || op == TILE_TOKEN_STAR || op == TILE_TOKEN_SHL;
}

TileBounds tile_bounds_of_operator(TileChecker *c, TileTokenKind op, const TileMeaning *a, const TileMeaning *b) {
    if (!tile_scalar_is_int((TileScalar)a->scalar)) return unknown;
    TileBounds bounds = apply(c, op, tile_bounds_of(c, a), tile_bounds_of(c, b));
    return grows(op) && !fits(c, bounds, (TileScalar)a->scalar) ? unknown : bounds;
}

/* x op y in the type; NULL where it may wrap, but for i64, whose sums are numbers modulo 2^64, or has no normal form. */
static const TileSum *operator_sum(TileChecker *c, TileTokenKind op, TileScalar type, const TileSum *x,
                                   const TileSum *y) {
    static const Combine operations[] = {[TILE_TOKEN_PLUS] = tile_sum_add,
                                         [TILE_TOKEN_MINUS] = tile_sum_subtract,
                                         [TILE_TOKEN_STAR] = tile_sum_multiply,
                                         [TILE_TOKEN_SLASH] = tile_sum_divide,
                                         [TILE_TOKEN_PERCENT] = tile_sum_remainder};
    bool known = op < sizeof operations / sizeof *operations && operations[op];
    if (!known || type == TILE_U64 || !x || !y) return NULL;
    if (type == TILE_I64) return operations[op](&c->sums, x, y);
    const TileSum *sum = combine(c, operations[op], x, y);
    return sum && fits(c, (TileBounds){sum, sum}, type) ? sum : NULL;
}

const TileSum *tile_narrow_sum(TileChecker *c, TileTokenKind op, const TileMeaning *a, const TileMeaning *b) {
    if (a->scalar == TILE_I64) return NULL;
    return operator_sum(c, op, (TileScalar)a->scalar, tile_scalar_sum(c, a), tile_scalar_sum(c, b));
}

/* What is divided is the code's value, which conditions tell of. */
const TileSum *tile_element_of_operator(TileChecker *c, TileTokenKind op, const TileMeaning *a, const TileMeaning *b) {
    const TileSum *x = tile_element_sum(c, a), *y = tile_element_sum(c, b);
    if (x && (op == TILE_TOKEN_SLASH || op == TILE_TOKEN_PERCENT)) x = tile_sum_code(&c->sums, x);
    return operator_sum(c, op, (TileScalar)a->scalar, x, y);
}

/* ---- choices ---- */

TileBounds tile_bounds_of_extremum(TileChecker *c, TileOpId op, TileBounds a, TileBounds b) {
    if (op == TILE_OP_MIN)
        return (TileBounds){combine(c, tile_sum_min, a.lowest, b.lowest),
                            a.highest && b.highest ? tile_sum_min(&c->sums, a.highest, b.highest)
                            : a.highest            ? a.highest
                                                   : b.highest};
    return (TileBounds){a.lowest && b.lowest ? tile_sum_max(&c->sums, a.lowest, b.lowest)
                        : a.lowest           ? a.lowest
                                             : b.lowest,
                        combine(c, tile_sum_max, a.highest, b.highest)};
}

/* min(max(x, low), high), where a launch checks that low <= high, if need be. */
TileBounds tile_bounds_of_clamp(TileChecker *c, TileBounds x, TileBounds low, TileBounds high) {
    TileBounds bounds = tile_bounds_of_extremum(c, TILE_OP_MAX, x, low);
    bounds = tile_bounds_of_extremum(c, TILE_OP_MIN, bounds, high);
    bool one = low.lowest && high.lowest && low.lowest == low.highest && high.lowest == high.highest;
    if (one) bounds.lowest = tile_sum_clamp(&c->sums, low.lowest, low.lowest, high.lowest);
    return bounds;
}

TileBounds tile_bounds_of_either(TileChecker *c, TileBounds x, TileBounds y) {
    TileSumTable *t = &c->sums; /* one of two numbers does not wrap, whatever the proofs that compare them came across */
    return (TileBounds){x.lowest && y.lowest ? tile_sum_min(t, x.lowest, y.lowest) : NULL,
                        x.highest && y.highest ? tile_sum_max(t, x.highest, y.highest) : NULL};
}

TileBounds tile_bounds_as(TileChecker *c, const TileMeaning *m, TileScalar to) {
    if (!tile_scalar_is_int(to)) return unknown;
    TileBounds bounds = tile_bounds_of(c, m);
    if (m->scalar == TILE_BOOL) bounds = (TileBounds){tile_sum_integer(&c->sums, 0), tile_sum_integer(&c->sums, 1)};
    if (fits(c, bounds, to)) return bounds;
    return to == TILE_I64 && m->scalar != TILE_U64 ? bounds : unknown;
}

TileBounds tile_bounds_truncated(TileChecker *c, const TileMeaning *m) {
    TileBounds bounds = tile_bounds_of(c, m);
    return at_least(c, bounds.lowest, 0) ? (TileBounds){NULL, bounds.highest} : unknown;
}

/* ---- results ---- */

/* The VALUE symbol that alone is the sum of a scalar; or NULL. */
static TileSymbol *own_symbol(const TileMeaning *m) {
    const TileSum *own = m->sum ? m->sum : m->rank ? NULL : m->lowest;
    bool alone = own && own->count == 1 && !own->constant && own->products[0].degree == 1 &&
                 own->products[0].factor == 1 && own->products[0].symbols[0]->kind == TILE_SYMBOL_VALUE;
    return alone ? own->products[0].symbols[0] : NULL;
}

void tile_name_symbol(const TileMeaning *m, const char *name) {
    TileSymbol *symbol = m->kind == TILE_MEANING_VALUE ? own_symbol(m) : NULL;
    if (symbol && !symbol->name) symbol->name = name;
}

TileMeaning tile_bounded(TileChecker *c, TileMeaning m, TileBounds bounds) {
    if (m.kind != TILE_MEANING_VALUE || m.constant || (!bounds.lowest && !bounds.highest)) return m;
    if (m.rank) {
        m.lowest = bounds.lowest;
        m.highest = bounds.highest;
        return m;
    }
    TileSymbol *symbol = own_symbol(&m);
    if (symbol && !symbol->lower_count && !symbol->upper_count)
        tile_symbol_bound(&c->sums, symbol, bounds.lowest, bounds.highest);
    return m;
}

void tile_bound_also(TileChecker *c, const TileMeaning *m, TileBounds bounds) {
    TileSymbol *symbol = m->kind == TILE_MEANING_VALUE ? own_symbol(m) : NULL;
    if (symbol && (bounds.lowest || bounds.highest)) tile_symbol_bound(&c->sums, symbol, bounds.lowest, bounds.highest);
}

/* ---- proofs ---- */

/* Only what the host can compute is a condition. */
static bool add_needs(TileChecker *c, const TileSumNeeds *needs) {
    for (unsigned i = 0; i < needs->count; i++) {
        bool there = false;
        for (unsigned k = 0; k < c->needs.count; k++) there = there || c->needs.items[k] == needs->items[i];
        if (there) continue;
        if (c->needs.count == sizeof c->needs.items / sizeof *c->needs.items) return false;
        c->needs.items[c->needs.count++] = needs->items[i];
    }
    return true;
}

static bool is_inside(TileChecker *c, const TileSum *lowest, const TileSum *highest, const TileSum *dim,
                      bool divisors) {
    TileSumNeeds needs = {.divisors = divisors};
    if (!lowest || !highest) return false;
    const TileSum *zero = tile_sum_integer(&c->sums, 0);
    const TileSum *last = tile_sum_subtract(&c->sums, dim, tile_sum_integer(&c->sums, 1));
    return tile_sum_within(&c->sums, lowest, highest, zero, last, c->in_grid ? &needs : NULL) && add_needs(c, &needs);
}

bool tile_proven_inside(TileChecker *c, const TileSum *lowest, const TileSum *highest, const TileSum *dim) {
    return is_inside(c, lowest, highest, dim, false);
}

bool tile_required_inside(TileChecker *c, const TileSum *lowest, const TileSum *highest, const TileSum *dim) {
    return is_inside(c, lowest, highest, dim, true);
}

/* Where there is an element, the numbers between which it lies are in this order. */
static void assume_one(TileChecker *c, const TileSum *element) {
    for (uint32_t i = 0; element && i < element->count; i++)
        for (uint32_t k = 0; k < element->products[i].degree; k++) {
            TileSymbol *symbol = element->products[i].symbols[k];
            if (!symbol->lane) continue;
            const TileSum *sum = tile_sum_symbol(&c->sums, symbol);
            const TileSum *least = tile_element_known(c, sum, false), *most = tile_element_known(c, sum, true);
            if (least && most) tile_sum_assume(&c->sums, least, most);
            assume_one(c, symbol->a);
            assume_one(c, symbol->b);
        }
}

bool tile_elements_inside(TileChecker *c, const TileMeaning *index, const TileSum *dim) {
    TileBounds bounds = tile_bounds_of(c, index);
    if (tile_proven_inside(c, bounds.lowest, bounds.highest, dim)) return true;
    const TileSum *element = index->element;
    if (!element && c->sums.facts.count && index->rank) element = tile_element_sum(c, index);
    if (!element) return false;
    size_t known = c->sums.facts.count;
    assume_one(c, element);
    bool inside = tile_proven_inside(c, element, element, dim);
    tile_facts_restore(c, known);
    return inside;
}
