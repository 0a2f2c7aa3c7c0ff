/* Sums in their normal form: the table of unique sums, symbols, arithmetic. */
#include "lang/affine/internal.h"

#include <string.h>

#include "lang/scalar/eval.h"

/* ---- the table ---- */

void tile_sum_table_init(TileSumTable *table, TileArena *arena) {
    *table = (TileSumTable){.arena = arena, .capacity = 128, .bucket_count = 16, .stamp = TILE_SUM_NO_FACT};
    table->slots = TILE_NEW_ARRAY(arena, TileSum *, table->capacity);
    table->buckets = TILE_NEW_ARRAY(arena, TileSymbol *, table->bucket_count);
    table->recent = TILE_NEW_ARRAY(arena, TileRecentSum, TILE_RECENT_SUMS);
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

/* The unique sum of these products, whose hash is given, and a constant. `kept`: they are in the arena already. */
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

const TileSum *tile_sum_intern(TileSumTable *table, int64_t constant, const TileProduct *products, uint32_t count) {
    if (!count) return tile_sum_integer(table, constant);
    return intern_hashed(table, constant, products, count, hash_products(products, count), false);
}

/* The same sum with another constant. */
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
    symbol->type = TILE_I64;
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

unsigned tile_sum_open(const TileSum *sum) {
    unsigned open = 0;
    for (uint32_t i = 0; sum && i < sum->count; i++)
        for (uint32_t k = 0; k < sum->products[i].degree; k++) open |= sum->products[i].symbols[k]->open;
    return open;
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
    return symbol->sum = tile_sum_intern(table, 0, &product, 1);
}

const TileSum *tile_sum_product(TileSumTable *table, const TileProduct *product) {
    TileProduct positive = *product;
    if (positive.factor < 0) positive.factor = (int64_t)(0 - (uint64_t)positive.factor);
    return tile_sum_intern(table, 0, &positive, 1);
}

const TileSum *tile_sum_term(TileSumTable *table, const TileProduct *product) {
    return tile_sum_intern(table, 0, product, 1);
}

/* ---- arithmetic ---- */

static int compare_products(const TileProduct *a, const TileProduct *b) {
    for (uint32_t i = 0; i < a->degree && i < b->degree; i++)
        if (a->symbols[i] != b->symbols[i]) return a->symbols[i]->id < b->symbols[i]->id ? -1 : 1;
    return a->degree == b->degree ? 0 : a->degree < b->degree ? -1 : 1;
}

bool tile_sum_wrapped(TileSumTable *table) {
    bool wrapped = table->wrapped;
    table->wrapped = false;
    return wrapped;
}

bool tile_sum_inexact(TileSumTable *table) {
    bool inexact = table->wrapped || table->grouped;
    table->wrapped = table->grouped = false;
    return inexact;
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

const TileSum *tile_sum_compound(TileSumTable *table, TileSymbolKind kind, const TileSum *a, const TileSum *b) {
    for (TileSymbol *other = *bucket_of(table, kind, a, b); other; other = other->next)
        if (other->kind == kind && other->a == a && other->b == b) return tile_sum_symbol(table, other);
    if (table->compound_count++ == table->bucket_count) grow_buckets(table);
    TileSymbol *symbol = new_symbol(table, kind, NULL);
    symbol->a = a;
    symbol->b = b;
    link_symbol(table, symbol);
    symbol->host = tile_sum_is_host(a) && (!b || tile_sum_is_host(b));
    symbol->open = (uint8_t)(tile_sum_open(a) | tile_sum_open(b));
    symbol->lane = tile_sum_has_lanes(a) || (b && tile_sum_has_lanes(b));
    return tile_sum_symbol(table, symbol);
}

static const TileSum *merge(TileSumTable *table, const TileSum *a, const TileSum *b, int64_t factor) {
    if (a->count + b->count > TILE_MAX_PRODUCTS) {
        if (a->count > 1) a = tile_sum_compound(table, TILE_SYMBOL_GROUP, a, NULL);
        if (b->count > 1) b = tile_sum_compound(table, TILE_SYMBOL_GROUP, b, NULL);
        table->grouped = true;
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
    return tile_sum_intern(table, wrap_add(table, a->constant, wrap_multiply(table, b->constant, factor)), merged,
                           count);
}

static TileRecentSum *recent_of(const TileSumTable *table, const TileSum *a, const TileSum *b, int64_t factor) {
    uint64_t hash = ((uint64_t)(uintptr_t)a * 3 + (uint64_t)(uintptr_t)b + (uint64_t)factor) * 0x9e3779b97f4a7c15u;
    return &table->recent[hash >> 32 & (TILE_RECENT_SUMS - 1)];
}

static const TileSum *add_scaled(TileSumTable *table, const TileSum *a, const TileSum *b, int64_t factor) {
    if (tile_sum_is_literal(b, 0)) return a;
    if (factor == 1 && tile_sum_is_literal(a, 0)) return b;
    if (b->count == 0)
        return with_constant(table, a, wrap_add(table, a->constant, wrap_multiply(table, b->constant, factor)));
    if (a->count == 0 && factor == 1) return with_constant(table, b, wrap_add(table, a->constant, b->constant));
    TileRecentSum *recent = recent_of(table, a, b, factor);
    if (recent->a == a && recent->b == b && recent->factor == factor) return recent->result;
    bool before = tile_sum_wrapped(table), grouped = table->grouped;
    table->grouped = false;
    const TileSum *result = merge(table, a, b, factor);
    if (!table->wrapped && !table->grouped) *recent = (TileRecentSum){a, b, result, factor};
    table->wrapped |= before;
    table->grouped |= grouped;
    return result;
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
    return tile_sum_intern(table, 0, &product, product.factor != 0);
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
    if (large) table->grouped = true;
    if (large) return tile_sum_compound(table, TILE_SYMBOL_MUL, a, b);
    const TileSum *result = tile_sum_integer(table, wrap_multiply(table, a->constant, b->constant));
    if (b->constant) result = add_scaled(table, result, with_constant(table, a, 0), b->constant);
    if (a->constant) result = add_scaled(table, result, with_constant(table, b, 0), a->constant);
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t k = 0; k < b->count; k++)
            result = tile_sum_add(table, result, multiply_products(table, &a->products[i], &b->products[k]));
    return result;
}

int64_t tile_sum_floor_divide(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return (int64_t)(0 - (uint64_t)a);
    int64_t quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

const TileSum *tile_sum_divide(TileSumTable *table, const TileSum *a, const TileSum *b) {
    if (a->count == 0 && b->count == 0) return tile_sum_integer(table, tile_sum_floor_divide(a->constant, b->constant));
    if (tile_sum_is_literal(b, 1)) return a;
    return tile_sum_compound(table, TILE_SYMBOL_DIV, a, b);
}

const TileSum *tile_sum_remainder(TileSumTable *table, const TileSum *a, const TileSum *b) {
    if (a->count || b->count) return tile_sum_compound(table, TILE_SYMBOL_REM, a, b);
    if (b->constant == 0) return tile_sum_integer(table, 0);
    int64_t quotient = tile_sum_floor_divide(a->constant, b->constant);
    uint64_t multiple = (uint64_t)quotient * (uint64_t)b->constant; /* the remainder fits, whatever wraps */
    return tile_sum_integer(table, (int64_t)((uint64_t)a->constant - multiple));
}

const TileSum *tile_sum_divide_up(TileSumTable *table, const TileSum *a, const TileSum *b) {
    const TileSum *one = tile_sum_integer(table, 1);
    return tile_sum_divide(table, tile_sum_subtract(table, tile_sum_add(table, a, b), one), b);
}

/* ---- values ---- */

bool tile_sum_known(TileSumTable *table, const TileSum *sum, int64_t *value) {
    const TileSum *resolved = tile_sum_resolve(table, sum);
    *value = resolved->constant;
    return resolved->count == 0;
}

static int64_t bits_of(TileSymbolKind kind, int64_t a, int64_t b) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b, bits = 0;
    const uint64_t *operands[] = {&x, &y};
    TileEvalOp op = kind == TILE_SYMBOL_SHL   ? TILE_EVAL_SHL
                    : kind == TILE_SYMBOL_SHR ? TILE_EVAL_SHR
                    : kind == TILE_SYMBOL_AND ? TILE_EVAL_AND
                    : kind == TILE_SYMBOL_OR  ? TILE_EVAL_OR
                                              : TILE_EVAL_XOR;
    tile_eval_op_loop(op, TILE_I64, TILE_I64, false)(TILE_I64, TILE_I64, operands, &bits, 1);
    return (int64_t)bits;
}

const TileSum *tile_sum_bits(TileSumTable *table, TileSymbolKind kind, const TileSum *a, const TileSum *b) {
    int64_t x, y;
    if (!tile_sum_known(table, a, &x) || !tile_sum_known(table, b, &y)) return NULL;
    if (a->count == 0 && b->count == 0) return tile_sum_integer(table, bits_of(kind, x, y));
    return tile_sum_compound(table, kind, a, b);
}

bool tile_sum_has_lanes(const TileSum *sum) {
    for (uint32_t i = 0; i < sum->count; i++)
        for (uint32_t k = 0; k < sum->products[i].degree; k++)
            if (sum->products[i].symbols[k]->lane) return true;
    return false;
}

bool tile_sum_is_host(const TileSum *sum) {
    for (uint32_t i = 0; i < sum->count; i++)
        for (uint32_t k = 0; k < sum->products[i].degree; k++)
            if (!sum->products[i].symbols[k]->host) return false;
    return true;
}

/* ---- even sums ---- */

static bool symbol_is_even(const TileSymbol *symbol) {
    switch (symbol->kind) {
    case TILE_SYMBOL_VALUE: return symbol->even;
    case TILE_SYMBOL_KNOWN: return symbol->known % 2 == 0;
    case TILE_SYMBOL_MIN:
    case TILE_SYMBOL_MAX: return tile_sum_is_even(symbol->a) && tile_sum_is_even(symbol->b);
    case TILE_SYMBOL_MUL: return tile_sum_is_even(symbol->a) || tile_sum_is_even(symbol->b);
    case TILE_SYMBOL_GROUP: return tile_sum_is_even(symbol->a);
    case TILE_SYMBOL_DIV:
    case TILE_SYMBOL_REM:
    case TILE_SYMBOL_SHL:
    case TILE_SYMBOL_SHR:
    case TILE_SYMBOL_AND:
    case TILE_SYMBOL_OR:
    case TILE_SYMBOL_XOR: return false;
    }
    return false;
}

bool tile_sum_is_even(const TileSum *sum) {
    bool even = sum->constant % 2 == 0;
    for (uint32_t i = 0; even && i < sum->count; i++) {
        const TileProduct *product = &sum->products[i];
        even = product->factor % 2 == 0;
        for (uint32_t k = 0; !even && k < product->degree; k++) even = symbol_is_even(product->symbols[k]);
    }
    return even;
}

const TileSum *tile_sum_half(TileSumTable *table, const TileSum *sum) {
    const TileSum *half = tile_sum_integer(table, sum->constant / 2);
    bool even = sum->constant % 2 == 0;
    for (uint32_t i = 0; even && i < sum->count; i++) {
        TileProduct product = sum->products[i];
        even = product.factor % 2 == 0;
        product.factor /= 2;
        if (even) half = tile_sum_add(table, half, tile_sum_term(table, &product));
    }
    return even ? half : tile_sum_divide(table, sum, tile_sum_integer(table, 2));
}
