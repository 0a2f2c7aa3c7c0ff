/* Intervals of sums. Proofs are about exact integers, but code computes modulo 2^64: a comparison or a min or max at
 * run time implies something about the exact sum only on the side on which the sum cannot overflow. */
#include "base/limits.h"
#include "lang/affine/sum.h"

typedef __int128 Wide;

static const Wide INFINITE = (Wide)1 << 100, FINITE = (Wide)1 << 90;

static Wide limited(Wide x) { return x > INFINITE ? INFINITE : x < -INFINITE ? -INFINITE : x; }

static Wide multiply(Wide x, Wide y) {
    Wide product;
    if (__builtin_mul_overflow(x, y, &product)) return (x < 0) == (y < 0) ? INFINITE : -INFINITE;
    return limited(product);
}

static TileInterval whole(void) { return (TileInterval){.least = INT64_MIN, .most = INT64_MAX}; }

static TileInterval between(int64_t least, int64_t most) { return (TileInterval){.least = least, .most = most}; }

/* The interval of the value that the code computes. */
static TileInterval computed(TileSumTable *table, const TileSum *sum) {
    TileInterval interval = tile_sum_interval(table, sum);
    return interval.below || interval.above ? whole() : interval;
}

static int64_t floor_of(int64_t a, int64_t k) { return a / k - (a % k < 0); }

static TileInterval quotient(TileInterval a, TileInterval b) {
    if (b.least >= 1 && b.least == b.most) return between(floor_of(a.least, b.least), floor_of(a.most, b.least));
    if (b.least >= 0) return between(a.least < 0 ? a.least : 0, a.most > 0 ? a.most : 0);
    if (a.least == INT64_MIN) return whole();
    int64_t size = -a.least > a.most ? -a.least : a.most;
    return between(-size, size);
}

static TileInterval remainder_of(TileInterval b) {
    return between(b.least < 0 ? b.least + 1 : 0, b.most > 0 ? b.most - 1 : 0);
}

static TileInterval product_of(TileSumTable *table, const TileSum *a, const TileSum *b) {
    TileInterval x = computed(table, a), y = computed(table, b);
    Wide least = INFINITE, most = -INFINITE;
    for (unsigned i = 0; i < 4; i++) {
        Wide corner = multiply(i & 1 ? x.most : x.least, i & 2 ? y.most : y.least);
        if (corner < least) least = corner;
        if (corner > most) most = corner;
    }
    return least < INT64_MIN || most > INT64_MAX ? whole() : between((int64_t)least, (int64_t)most);
}

/* Ignores bounds that a launch still has to check. */
static TileInterval bounded(TileSumTable *table, const TileSymbol *symbol, TileInterval interval) {
    for (unsigned i = 0; i < symbol->lower_count && !symbol->needs; i++) {
        TileInterval bound = tile_sum_interval(table, symbol->lower[i]);
        if (!bound.below && bound.least > interval.least) interval.least = bound.least;
    }
    for (unsigned i = 0; i < symbol->upper_count; i++) {
        TileInterval bound = tile_sum_interval(table, symbol->upper[i]);
        if (!bound.above && bound.most < interval.most) interval.most = bound.most;
    }
    return interval;
}

/* The range of the type. */
static TileInterval typed(TileScalar type) {
    if (!tile_scalar_is_int(type) || tile_scalar_bits(type) == 64) return whole();
    int64_t most = (INT64_C(1) << tile_scalar_bits(type)) - 1;
    if (tile_scalar_class(type) == TILE_CLASS_UNSIGNED) return between(0, most);
    return between(-(most / 2) - 1, most / 2);
}

static TileInterval symbol_interval(TileSumTable *table, const TileSymbol *symbol) {
    TileInterval a = symbol->a ? computed(table, symbol->a) : whole();
    TileInterval b = symbol->b ? computed(table, symbol->b) : whole();
    switch (symbol->kind) {
    case TILE_SYMBOL_VALUE: return bounded(table, symbol, typed(symbol->type));
    case TILE_SYMBOL_KNOWN: return between(symbol->known, symbol->known);
    case TILE_SYMBOL_MIN:
        return bounded(table, symbol,
                       between(a.least < b.least ? a.least : b.least, a.most < b.most ? a.most : b.most));
    case TILE_SYMBOL_MAX: return between(a.least > b.least ? a.least : b.least, a.most > b.most ? a.most : b.most);
    case TILE_SYMBOL_DIV: return quotient(a, b);
    case TILE_SYMBOL_REM: return remainder_of(b);
    case TILE_SYMBOL_MUL: return product_of(table, symbol->a, symbol->b);
    case TILE_SYMBOL_GROUP: return a;
    case TILE_SYMBOL_SHL:
    case TILE_SYMBOL_SHR:
    case TILE_SYMBOL_AND:
    case TILE_SYMBOL_OR:
    case TILE_SYMBOL_XOR: {
        int64_t known;
        tile_sum_known(table, tile_sum_bits(table, symbol->kind, symbol->a, symbol->b), &known);
        return between(known, known);
    }
    }
    return whole();
}

/* x * (a / b) <= a if 0 <= x < b: the start of group x of b. */
static bool group_interval(TileSumTable *table, const TileSymbol *x, const TileSymbol *groups, Wide *least,
                           Wide *most) {
    if (groups->kind != TILE_SYMBOL_DIV || x->needs || symbol_interval(table, x).least < 0) return false;
    TileInterval a = tile_sum_interval(table, groups->a);
    if (a.below || a.above || a.least < 0) return false;
    *least = 0;
    *most = a.most;
    bool below = false, wrapped = tile_sum_wrapped(table);
    for (unsigned i = 0; i < x->upper_count && !below; i++)
        below = tile_sum_add(table, x->upper[i], tile_sum_integer(table, 1)) == groups->b && !tile_sum_wrapped(table);
    table->wrapped = wrapped;
    return below;
}

/* Is it a multiple of a product that a launch has checked? */
static bool trusted_interval(TileSumTable *table, const TileProduct *product, Wide *least, Wide *most) {
    if (!table->trusts || product->degree < 2) return false;
    TileProduct plain = *product;
    plain.factor = 1;
    const TileSum *sum = tile_sum_term(table, &plain);
    if (!sum->trusted) return false;
    Wide ends[] = {multiply(sum->interval.least, product->factor), multiply(sum->interval.most, product->factor)};
    *least = ends[product->factor < 0];
    *most = ends[product->factor >= 0];
    return true;
}

/* One product, exact. */
static void product_interval(TileSumTable *table, const TileProduct *product, Wide *least, Wide *most) {
    if (trusted_interval(table, product, least, most)) return;
    for (unsigned i = 0; i < 2 && product->degree == 2; i++) {
        if (!group_interval(table, product->symbols[i], product->symbols[1 - i], least, most)) continue;
        Wide ends[] = {multiply(*least, product->factor), multiply(*most, product->factor)};
        *least = ends[product->factor < 0];
        *most = ends[product->factor >= 0];
        return;
    }
    *least = *most = product->factor;
    for (uint32_t k = 0; k < product->degree; k++) {
        TileInterval symbol = symbol_interval(table, product->symbols[k]);
        Wide corners[] = {multiply(*least, symbol.least), multiply(*least, symbol.most), multiply(*most, symbol.least),
                          multiply(*most, symbol.most)};
        *least = *most = corners[0];
        for (unsigned i = 1; i < 4; i++) {
            if (corners[i] < *least) *least = corners[i];
            if (corners[i] > *most) *most = corners[i];
        }
    }
}

TileInterval tile_sum_interval(TileSumTable *table, const TileSum *sum) {
    if (sum->has_interval) return sum->interval;
    TileInterval interval = {0};
    Wide total_least = sum->constant, total_most = sum->constant;
    for (uint32_t i = 0; i < sum->count; i++) {
        Wide least, most;
        product_interval(table, &sum->products[i], &least, &most);
        interval.below |= least < -FINITE;
        interval.above |= most > FINITE;
        total_least += least;
        total_most += most;
    }
    interval.below |= total_least < INT64_MIN;
    interval.above |= total_most > INT64_MAX;
    interval.least = interval.below ? INT64_MIN : total_least > INT64_MAX ? INT64_MAX : (int64_t)total_least;
    interval.most = interval.above ? INT64_MAX : total_most < INT64_MIN ? INT64_MIN : (int64_t)total_most;
    ((TileSum *)sum)->interval = interval;
    ((TileSum *)sum)->has_interval = true;
    return interval;
}

bool tile_sum_falls(TileSumTable *table, const TileSum *sum) { return tile_sum_interval(table, sum).below; }

bool tile_sum_exceeds(TileSumTable *table, const TileSum *sum) { return tile_sum_interval(table, sum).above; }

bool tile_sum_wraps(TileSumTable *table, const TileSum *sum) {
    TileInterval interval = tile_sum_interval(table, sum);
    return interval.below || interval.above;
}

bool tile_sum_add_exceeds(TileSumTable *table, const TileSum *a, const TileSum *b, const TileSum **sum) {
    tile_sum_wrapped(table);
    *sum = tile_sum_add(table, a, b);
    if (!tile_sum_wrapped(table) && !tile_sum_exceeds(table, *sum)) return false;
    TileInterval x = tile_sum_interval(table, a), y = tile_sum_interval(table, b);
    return x.above || y.above || (Wide)x.most + y.most > INT64_MAX;
}

void tile_sum_trust(TileSumTable *table, const TileSum *sum) {
    TileInterval interval = tile_sum_interval(table, sum);
    interval.below = interval.above = false;
    if (interval.least < 0) interval.least = 0;
    if (interval.most > TILE_MAX_EXTENT) interval.most = TILE_MAX_EXTENT;
    ((TileSum *)sum)->interval = interval;
    ((TileSum *)sum)->trusted = table->trusts = true;
    if (sum->count == 1 && !sum->constant && sum->products[0].degree > 2) tile_list_push(table->arena, &table->trusted, sum);
    const TileSum *resolved = tile_sum_resolve(table, sum);
    if (resolved != sum) tile_sum_trust(table, resolved);
}
