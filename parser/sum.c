#include "parser/sum.h"

#include <string.h>

#include "lang/eval.h"

enum { NO_FACT = 1 }; /* the stamp of a proof that needs none */

/* ---- the table ---- */

void tile_sum_table_init(TileSumTable *table, TileArena *arena) {
    *table = (TileSumTable){.arena = arena, .capacity = 128, .bucket_count = 16, .stamp = NO_FACT};
    table->slots = TILE_NEW_ARRAY(arena, TileSum *, table->capacity);
    table->buckets = TILE_NEW_ARRAY(arena, TileSymbol *, table->bucket_count);
}

static uint32_t hash_products(const TileProduct *products, uint32_t count) {
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++) {
        hash = (hash ^ (uint64_t)products[i].factor) * 0x100000001b3u;
        for (uint32_t k = 0; k < products[i].degree; k++) hash = (hash ^ products[i].symbols[k]->id) * 0x100000001b3u;
    }
    return (uint32_t)(hash ^ hash >> 32);
}

static size_t slot_of(const TileSumTable *table, uint32_t hash, int64_t constant) {
    uint64_t mixed = ((uint64_t)constant ^ (uint64_t)hash << 32 ^ hash) * 0x9e3779b97f4a7c15u;
    return mixed >> 32 & (table->capacity - 1);
}

static bool same_products(const TileProduct *a, const TileProduct *b, uint32_t count) {
    for (uint32_t i = 0; a != b && i < count; i++) {
        if (a[i].factor != b[i].factor || a[i].degree != b[i].degree) return false;
        for (uint32_t k = 0; k < a[i].degree; k++)
            if (a[i].symbols[k] != b[i].symbols[k]) return false;
    }
    return true;
}

static void grow_table(TileSumTable *table) {
    TileSum **old = table->slots;
    size_t old_capacity = table->capacity;
    table->capacity *= 2;
    table->slots = TILE_NEW_ARRAY(table->arena, TileSum *, table->capacity);
    for (size_t i = 0; i < old_capacity; i++) {
        if (!old[i]) continue;
        size_t slot = slot_of(table, old[i]->hash, old[i]->constant);
        while (table->slots[slot]) slot = (slot + 1) & (table->capacity - 1);
        table->slots[slot] = old[i];
    }
}

/* The sum of these products, which have this hash, and a constant. `kept`: they lie in the arena already. */
static const TileSum *intern_hashed(TileSumTable *table, int64_t constant, const TileProduct *products, uint32_t count,
                                    uint32_t hash, bool kept) {
    if (table->count * 2 >= table->capacity) grow_table(table);
    size_t slot = slot_of(table, hash, constant);
    for (const TileSum *sum; (sum = table->slots[slot]); slot = (slot + 1) & (table->capacity - 1))
        if (sum->hash == hash && sum->constant == constant && sum->count == count &&
            same_products(sum->products, products, count))
            return sum;
    TileSum *sum = TILE_NEW(table->arena, TileSum);
    sum->constant = constant;
    sum->count = count;
    sum->hash = hash;
    sum->products = kept || !count ? products : tile_arena_copy(table->arena, products, count * sizeof *products);
    table->slots[slot] = sum;
    table->count++;
    return sum;
}

static const TileSum *intern(TileSumTable *table, int64_t constant, const TileProduct *products, uint32_t count) {
    if (!count) return tile_sum_integer(table, constant);
    return intern_hashed(table, constant, products, count, hash_products(products, count), false);
}

/* The sum with another constant. */
static const TileSum *with_constant(TileSumTable *table, const TileSum *sum, int64_t constant) {
    if (sum->constant == constant) return sum;
    if (!sum->count) return tile_sum_integer(table, constant);
    return intern_hashed(table, constant, sum->products, sum->count, sum->hash, true);
}

/* ---- symbols ---- */

static TileSymbol *new_symbol(TileSumTable *table, TileSymbolKind kind, const char *name) {
    TileSymbol *symbol = TILE_NEW(table->arena, TileSymbol);
    symbol->kind = kind;
    symbol->name = name;
    symbol->id = table->symbol_count++;
    return symbol;
}

TileSymbol *tile_symbol_value(TileSumTable *table, const char *name, TileValue *value) {
    TileSymbol *symbol = new_symbol(table, TILE_SYMBOL_VALUE, name);
    symbol->value = value;
    return symbol;
}

TileSymbol *tile_symbol_known(TileSumTable *table, const char *name, int64_t value) {
    TileSymbol *symbol = new_symbol(table, TILE_SYMBOL_KNOWN, name);
    symbol->known = value;
    symbol->host = true;
    return symbol;
}

/* What failed has to be tried again if there is something new about a symbol that it may have met. */
static void count_bound(TileSumTable *table, const TileSymbol *symbol) {
    table->bound_count += symbol->id < table->asked_symbols;
}

unsigned tile_sum_open(const TileSum *sum) {
    unsigned open = 0;
    for (uint32_t i = 0; sum && i < sum->count; i++)
        for (uint32_t k = 0; k < sum->products[i].degree; k++) open |= sum->products[i].symbols[k]->open;
    return open;
}

/* What is proven from a bound is open as that is. */
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

const TileSum *tile_sum_integer(TileSumTable *table, int64_t value) {
    uint64_t place = (uint64_t)value + TILE_SMALL_INTEGERS / 2;
    bool small = place < TILE_SMALL_INTEGERS;
    if (small && table->integers[place]) return table->integers[place];
    const TileSum *sum = intern_hashed(table, value, NULL, 0, 0, true);
    if (small) table->integers[place] = sum;
    return sum;
}

const TileSum *tile_sum_symbol(TileSumTable *table, TileSymbol *symbol) {
    if (symbol->sum) return symbol->sum;
    TileProduct product = {.factor = 1, .degree = 1, .symbols = {symbol}};
    return symbol->sum = intern(table, 0, &product, 1);
}

const TileSum *tile_sum_product(TileSumTable *table, const TileProduct *product) {
    TileProduct positive = *product;
    if (positive.factor < 0) positive.factor = (int64_t)(0 - (uint64_t)positive.factor);
    return intern(table, 0, &positive, 1);
}

/* ---- arithmetic ---- */

static int compare_products(const TileProduct *a, const TileProduct *b) {
    for (uint32_t i = 0; i < a->degree && i < b->degree; i++)
        if (a->symbols[i] != b->symbols[i]) return a->symbols[i]->id < b->symbols[i]->id ? -1 : 1;
    return a->degree == b->degree ? 0 : a->degree < b->degree ? -1 : 1;
}

static int64_t wrap_add(TileSumTable *table, int64_t a, int64_t b) {
    int64_t sum;
    table->wrapped |= __builtin_add_overflow(a, b, &sum);
    return sum;
}

static int64_t wrap_multiply(TileSumTable *table, int64_t a, int64_t b) {
    int64_t product;
    table->wrapped |= __builtin_mul_overflow(a, b, &product);
    return product;
}

bool tile_sum_wrapped(TileSumTable *table) {
    bool wrapped = table->wrapped;
    table->wrapped = false;
    return wrapped;
}

static TileSymbol **bucket_of(const TileSumTable *table, TileSymbolKind kind, const TileSum *a, const TileSum *b) {
    uint64_t hash = ((uint64_t)(uintptr_t)a * 3 + (uint64_t)(uintptr_t)b + kind) * 0x9e3779b97f4a7c15u;
    return &table->buckets[hash >> 32 & (table->bucket_count - 1)];
}

static void link_symbol(TileSumTable *table, TileSymbol *symbol) {
    TileSymbol **bucket = bucket_of(table, symbol->kind, symbol->a, symbol->b);
    symbol->next = *bucket;
    *bucket = symbol;
}

static void grow_buckets(TileSumTable *table) {
    TileSymbol **old = table->buckets;
    size_t old_count = table->bucket_count;
    table->bucket_count *= 4;
    table->buckets = TILE_NEW_ARRAY(table->arena, TileSymbol *, table->bucket_count);
    for (size_t i = 0; i < old_count; i++)
        for (TileSymbol *symbol = old[i], *next; symbol; symbol = next) {
            next = symbol->next;
            link_symbol(table, symbol);
        }
}

/* A sum as one symbol of its own, where the normal form would grow too large. */
static const TileSum *as_symbol(TileSumTable *table, TileSymbolKind kind, const TileSum *a, const TileSum *b) {
    for (TileSymbol *other = *bucket_of(table, kind, a, b); other; other = other->next)
        if (other->kind == kind && other->a == a && other->b == b) return tile_sum_symbol(table, other);
    if (table->compound_count++ == table->bucket_count) grow_buckets(table);
    TileSymbol *symbol = new_symbol(table, kind, NULL);
    symbol->a = a;
    symbol->b = b;
    link_symbol(table, symbol);
    symbol->host = tile_sum_is_host(a) && (!b || tile_sum_is_host(b));
    symbol->open = (uint8_t)(tile_sum_open(a) | tile_sum_open(b));
    return tile_sum_symbol(table, symbol);
}

static const TileSum *add_scaled(TileSumTable *table, const TileSum *a, const TileSum *b, int64_t factor) {
    if (tile_sum_is_literal(b, 0)) return a;
    if (factor == 1 && tile_sum_is_literal(a, 0)) return b;
    int64_t constant = wrap_add(table, a->constant, wrap_multiply(table, b->constant, factor));
    if (b->count == 0) return with_constant(table, a, constant);
    if (a->count == 0 && factor == 1) return with_constant(table, b, constant);
    if (a->count + b->count > TILE_MAX_PRODUCTS) {
        if (a->count > 1) a = as_symbol(table, TILE_SYMBOL_GROUP, a, NULL);
        if (b->count > 1) b = as_symbol(table, TILE_SYMBOL_GROUP, b, NULL);
    }
    TileProduct merged[TILE_MAX_PRODUCTS + 2];
    uint32_t count = 0, i = 0, k = 0;
    while (i < a->count || k < b->count) {
        int order = i == a->count ? 1 : k == b->count ? -1 : compare_products(&a->products[i], &b->products[k]);
        TileProduct next = order <= 0 ? a->products[i] : b->products[k];
        if (order > 0) next.factor = wrap_multiply(table, next.factor, factor);
        if (order == 0) next.factor = wrap_add(table, next.factor, wrap_multiply(table, b->products[k].factor, factor));
        i += order <= 0;
        k += order >= 0;
        if (next.factor) merged[count++] = next;
    }
    return intern(table, wrap_add(table, a->constant, wrap_multiply(table, b->constant, factor)), merged, count);
}

const TileSum *tile_sum_add(TileSumTable *table, const TileSum *a, const TileSum *b) {
    return add_scaled(table, a, b, 1);
}

const TileSum *tile_sum_subtract(TileSumTable *table, const TileSum *a, const TileSum *b) {
    return add_scaled(table, a, b, -1);
}

static const TileSum *multiply_products(TileSumTable *table, const TileProduct *a, const TileProduct *b) {
    TileProduct product = {.factor = wrap_multiply(table, a->factor, b->factor), .degree = a->degree + b->degree};
    uint32_t i = 0, k = 0;
    for (uint32_t n = 0; n < product.degree; n++) {
        bool left = k == b->degree || (i < a->degree && a->symbols[i]->id <= b->symbols[k]->id);
        product.symbols[n] = left ? a->symbols[i++] : b->symbols[k++];
    }
    return intern(table, 0, &product, product.factor != 0);
}

static uint32_t degree_of(const TileSum *sum) {
    uint32_t degree = 0;
    for (uint32_t i = 0; i < sum->count; i++)
        if (sum->products[i].degree > degree) degree = sum->products[i].degree;
    return degree;
}

const TileSum *tile_sum_multiply(TileSumTable *table, const TileSum *a, const TileSum *b) {
    if (tile_sum_is_literal(b, 1)) return a;
    if (tile_sum_is_literal(a, 1)) return b;
    const TileSum *zero = tile_sum_integer(table, 0);
    if (b->count == 0) return add_scaled(table, zero, a, b->constant);
    if (a->count == 0) return add_scaled(table, zero, b, a->constant);
    bool large = (a->count + 1) * (b->count + 1) > TILE_MAX_PRODUCTS || degree_of(a) + degree_of(b) > TILE_MAX_DEGREE;
    if (large) return as_symbol(table, TILE_SYMBOL_MUL, a, b);
    const TileSum *result = tile_sum_integer(table, wrap_multiply(table, a->constant, b->constant));
    if (b->constant) result = add_scaled(table, result, with_constant(table, a, 0), b->constant);
    if (a->constant) result = add_scaled(table, result, with_constant(table, b, 0), a->constant);
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t k = 0; k < b->count; k++)
            result = tile_sum_add(table, result, multiply_products(table, &a->products[i], &b->products[k]));
    return result;
}

static int64_t floor_divide(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return (int64_t)(0 - (uint64_t)a);
    int64_t quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

static TileSymbol *only_symbol(const TileSum *sum) { return sum->products[0].symbols[0]; }

const TileSum *tile_sum_divide(TileSumTable *table, const TileSum *a, const TileSum *b) {
    if (a->count == 0 && b->count == 0) return tile_sum_integer(table, floor_divide(a->constant, b->constant));
    if (tile_sum_is_literal(b, 1)) return a;
    return as_symbol(table, TILE_SYMBOL_DIV, a, b);
}

const TileSum *tile_sum_remainder(TileSumTable *table, const TileSum *a, const TileSum *b) {
    if (a->count == 0 && b->count == 0)
        return tile_sum_integer(table,
                                wrap_add(table, b->constant ? a->constant : 0,
                                         wrap_multiply(table, -floor_divide(a->constant, b->constant), b->constant)));
    return as_symbol(table, TILE_SYMBOL_REM, a, b);
}

static int64_t bits_of(TileSymbolKind kind, int64_t a, int64_t b) {
    uint64_t operands[] = {(uint64_t)a, (uint64_t)b}, bits = 0;
    TileOpId op = kind == TILE_SYMBOL_SHL   ? TILE_OP_SHL
                  : kind == TILE_SYMBOL_SHR ? TILE_OP_SHR
                  : kind == TILE_SYMBOL_AND ? TILE_OP_AND
                  : kind == TILE_SYMBOL_OR  ? TILE_OP_OR
                                            : TILE_OP_XOR;
    tile_eval(op, TILE_I64, TILE_I64, operands, &bits);
    return (int64_t)bits;
}

const TileSum *tile_sum_bits(TileSumTable *table, TileSymbolKind kind, const TileSum *a, const TileSum *b) {
    int64_t x, y;
    if (!tile_sum_known(table, a, &x) || !tile_sum_known(table, b, &y)) return NULL;
    if (a->count == 0 && b->count == 0) return tile_sum_integer(table, bits_of(kind, x, y));
    return as_symbol(table, kind, a, b);
}

const TileSum *tile_sum_min(TileSumTable *table, const TileSum *a, const TileSum *b) {
    if (tile_sum_at_most(table, a, b)) return a;
    if (tile_sum_at_most(table, b, a)) return b;
    return as_symbol(table, TILE_SYMBOL_MIN, a, b);
}

/* min(bounded, high) where bounded >= low: a symbol of its own, even where it would fold to `high`, unless proven. */
static const TileSum *clamp_symbol(TileSumTable *table, const TileSum *bounded, const TileSum *low,
                                   const TileSum *high) {
    const TileSum *result = tile_sum_min(table, bounded, high), *needs = tile_sum_subtract(table, high, low);
    if (!needs->count || !tile_sum_is_host(needs) || tile_sum_at_most(table, low, high)) return result;
    if (tile_sum_wraps(table, low) || tile_sum_wraps(table, high) || tile_sum_wraps(table, needs)) return result;
    if (result == high) result = as_symbol(table, TILE_SYMBOL_MIN, bounded, high);
    TileSymbol *symbol = result->count ? only_symbol(result) : NULL;
    bool made = symbol && result == tile_sum_symbol(table, symbol) && symbol->kind == TILE_SYMBOL_MIN &&
                symbol->a == bounded && symbol->b == high;
    if (!made || symbol->lower_count) return result;
    tile_symbol_bound(table, symbol, low, NULL);
    symbol->needs = needs;
    return result;
}

const TileSum *tile_sum_clamp(TileSumTable *table, const TileSum *x, const TileSum *low, const TileSum *high) {
    return clamp_symbol(table, tile_sum_max(table, x, low), low, high);
}

const TileSum *tile_sum_max(TileSumTable *table, const TileSum *a, const TileSum *b) {
    if (tile_sum_at_most(table, b, a)) return a;
    if (tile_sum_at_most(table, a, b)) return b;
    return as_symbol(table, TILE_SYMBOL_MAX, a, b);
}

const TileSum *tile_sum_divide_up(TileSumTable *table, const TileSum *a, const TileSum *b) {
    const TileSum *one = tile_sum_integer(table, 1);
    return tile_sum_divide(table, tile_sum_subtract(table, tile_sum_add(table, a, b), one), b);
}

/* ---- values ---- */

static const TileSum *resolve_symbol(TileSumTable *table, TileSymbol *symbol) {
    const TileSum *a = symbol->a ? tile_sum_resolve(table, symbol->a) : NULL;
    const TileSum *b = symbol->b ? tile_sum_resolve(table, symbol->b) : NULL;
    bool same = a == symbol->a && b == symbol->b;
    switch (symbol->kind) {
    case TILE_SYMBOL_KNOWN: return tile_sum_integer(table, symbol->known);
    case TILE_SYMBOL_VALUE: return tile_sum_symbol(table, symbol);
    case TILE_SYMBOL_MIN:
        if (same) return tile_sum_symbol(table, symbol);
        return symbol->needs ? clamp_symbol(table, a, tile_sum_resolve(table, symbol->lower[0]), b)
                             : tile_sum_min(table, a, b);
    case TILE_SYMBOL_MAX: return same ? tile_sum_symbol(table, symbol) : tile_sum_max(table, a, b);
    case TILE_SYMBOL_DIV: return same ? tile_sum_symbol(table, symbol) : tile_sum_divide(table, a, b);
    case TILE_SYMBOL_REM: return same ? tile_sum_symbol(table, symbol) : tile_sum_remainder(table, a, b);
    case TILE_SYMBOL_MUL: return same ? tile_sum_symbol(table, symbol) : tile_sum_multiply(table, a, b);
    case TILE_SYMBOL_GROUP: return same ? tile_sum_symbol(table, symbol) : a;
    case TILE_SYMBOL_SHL:
    case TILE_SYMBOL_SHR:
    case TILE_SYMBOL_AND:
    case TILE_SYMBOL_OR:
    case TILE_SYMBOL_XOR: return tile_sum_bits(table, symbol->kind, a, b);
    }
    return tile_sum_symbol(table, symbol);
}

/* Nothing in it has a value or operands that could have one. */
static bool is_resolved(const TileSum *sum) {
    for (uint32_t i = 0; i < sum->count; i++)
        for (uint32_t k = 0; k < sum->products[i].degree; k++)
            if (sum->products[i].symbols[k]->kind != TILE_SYMBOL_VALUE) return false;
    return true;
}

/* *inexact where what is multiplied here wraps. */
static const TileSum *resolve_product(TileSumTable *table, const TileProduct *product, bool *inexact) {
    TileProduct plain = {.factor = product->factor};
    const TileSum *others = tile_sum_integer(table, 1);
    for (uint32_t k = 0; k < product->degree; k++) {
        TileSymbol *symbol = product->symbols[k];
        const TileSum *resolved = symbol->kind > TILE_SYMBOL_KNOWN ? resolve_symbol(table, symbol) : NULL;
        tile_sum_wrapped(table);
        if (symbol->kind == TILE_SYMBOL_VALUE)
            plain.symbols[plain.degree++] = symbol;
        else if (symbol->kind == TILE_SYMBOL_KNOWN)
            plain.factor = wrap_multiply(table, plain.factor, symbol->known);
        else
            others = tile_sum_multiply(table, others, resolved);
        *inexact |= tile_sum_wrapped(table);
    }
    const TileSum *term =
        plain.degree && plain.factor ? intern(table, 0, &plain, 1) : tile_sum_integer(table, plain.factor);
    const TileSum *result = tile_sum_multiply(table, term, others);
    *inexact |= tile_sum_wrapped(table);
    return result;
}

/* Kept with the sum, so that only what holds everywhere may fold it. */
const TileSum *tile_sum_resolve(TileSumTable *table, const TileSum *sum) {
    if (sum->resolved) return sum->resolved;
    if (is_resolved(sum)) return ((TileSum *)sum)->resolved = sum;
    size_t facts = table->facts.count;
    table->facts.count = 0;
    bool inexact = false;
    const TileSum *result = tile_sum_integer(table, sum->constant);
    for (uint32_t i = 0; i < sum->count; i++) {
        const TileSum *term = resolve_product(table, &sum->products[i], &inexact);
        tile_sum_wrapped(table);
        result = tile_sum_add(table, result, term);
        inexact |= tile_sum_wrapped(table);
    }
    table->facts.count = facts;
    ((TileSum *)sum)->inexact = inexact;
    ((TileSum *)sum)->resolved = result;
    return result;
}

bool tile_sum_known(TileSumTable *table, const TileSum *sum, int64_t *value) {
    const TileSum *resolved = tile_sum_resolve(table, sum);
    *value = resolved->constant;
    return resolved->count == 0;
}

bool tile_sum_is_host(const TileSum *sum) {
    for (uint32_t i = 0; i < sum->count; i++)
        for (uint32_t k = 0; k < sum->products[i].degree; k++)
            if (!sum->products[i].symbols[k]->host) return false;
    return true;
}

/* ---- proofs ---- */

/* sum = coefficient * symbol + rest; false where the symbol also stands in a higher power. */
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
        const TileSum *term = other.degree ? intern(table, 0, &other, 1) : tile_sum_integer(table, other.factor);
        *coefficient = tile_sum_add(table, *coefficient, term);
    }
    *rest = intern(table, sum->constant, kept, kept_count);
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

/* Is the code's number nowhere below (above) the whole number? */
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

/* The newest symbol is replaced by its bounds, which speak of older ones; so this ends. */
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
    return count ? table->facts.items[count - 1].stamp : NO_FACT;
}

/* Facts are a stack: where one still holds, so do those before it. */
static bool still_proven(const TileSumTable *table, const TileProof *proof) {
    return proof->stamp && proof->facts <= table->facts.count && proof->stamp == fact_stamp(table, proof->facts);
}

static bool still_fails(const TileSumTable *table, const TileProof *proof, unsigned fuel) {
    return proof->stamp == table->bound_count + 1 && proof->facts >= table->facts.count && proof->fuel >= fuel;
}

/* What was tried under the same bounds is not tried again. What an attempt that failed would have needed is not
 * needed. */
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

/* A product of two or more that is at least 1, each factor being at least 0: each is at least 1. */
static void assume_factors(TileSumTable *table, const TileSum *sum) {
    const TileProduct *product = &sum->products[0];
    if (sum->count != 1 || sum->constant >= 0 || product->factor < 0) return;
    for (uint32_t i = 0; i < product->degree; i++)
        if (!proves(table, tile_sum_symbol(table, product->symbols[i]), NULL)) return;
    for (uint32_t i = 0; i < product->degree; i++)
        add_fact(table, product->symbols[i], tile_sum_integer(table, 1), false);
}

static void assume(TileSumTable *table, const TileSum *sum);

/* What the code computes for `sum` is at least -rest. */
static void assume_bound(TileSumTable *table, const TileSum *sum, const TileSum *rest) {
    tile_sum_wrapped(table);
    const TileSum *room = tile_sum_add(table, sum, rest);
    if (!tile_sum_wrapped(table) && !tile_sum_falls(table, sum)) assume(table, room);
}

/* The whole number is >= 0. */
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
        add_fact(table, symbol, tile_sum_integer(table, -floor_divide(rest->constant, k)), false);
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

/* ---- words ---- */

static void print_symbol(TileText *text, const TileSymbol *symbol) {
    static const char *const words[] = {[TILE_SYMBOL_MIN] = "min", [TILE_SYMBOL_MAX] = "max"};
    if (symbol->kind == TILE_SYMBOL_MIN || symbol->kind == TILE_SYMBOL_MAX) {
        tile_text_format(text, "%s(", words[symbol->kind]);
        tile_sum_print(text, symbol->a);
        tile_text_add(text, ", ");
        tile_sum_print(text, symbol->b);
        tile_text_add(text, ")");
    } else if (symbol->a) {
        tile_text_add(text, "(");
        tile_sum_print(text, symbol->a);
        if (symbol->b) {
            static const char *const operators[] = {
                [TILE_SYMBOL_DIV] = ") / (",  [TILE_SYMBOL_REM] = ") % (",  [TILE_SYMBOL_MUL] = ") * (",
                [TILE_SYMBOL_SHL] = ") << (", [TILE_SYMBOL_SHR] = ") >> (", [TILE_SYMBOL_AND] = ") & (",
                [TILE_SYMBOL_OR] = ") | (",   [TILE_SYMBOL_XOR] = ") ^ ("};
            tile_text_add(text, operators[symbol->kind]);
            tile_sum_print(text, symbol->b);
        }
        tile_text_add(text, ")");
    } else {
        tile_text_add(text, symbol->name ? symbol->name : "a value");
    }
}

void tile_sum_print(TileText *text, const TileSum *sum) {
    for (uint32_t i = 0; i < sum->count; i++) {
        const TileProduct *product = &sum->products[i];
        int64_t factor = product->factor;
        if (i) tile_text_add(text, factor < 0 ? " - " : " + ");
        if (i == 0 && factor < 0) tile_text_add(text, "-");
        uint64_t size = factor < 0 ? 0 - (uint64_t)factor : (uint64_t)factor;
        if (size != 1) tile_text_format(text, "%llu * ", (unsigned long long)size);
        for (uint32_t k = 0; k < product->degree; k++) {
            if (k) tile_text_add(text, " * ");
            print_symbol(text, product->symbols[k]);
        }
    }
    if (sum->count == 0)
        tile_text_format(text, "%lld", (long long)sum->constant);
    else if (sum->constant)
        tile_text_format(
            text, sum->constant < 0 ? " - %llu" : " + %llu",
            (unsigned long long)(sum->constant < 0 ? 0 - (uint64_t)sum->constant : (uint64_t)sum->constant));
}
