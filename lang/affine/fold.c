/* Folding: minima and maxima that a proof decides, and known symbols, which are replaced by their values. */
#include "lang/affine/internal.h"

/* ---- minima and maxima ---- */

const TileSum *tile_sum_min(TileSumTable *table, const TileSum *a, const TileSum *b) {
    if (tile_sum_at_most(table, a, b)) return a;
    if (tile_sum_at_most(table, b, a)) return b;
    return tile_sum_compound(table, TILE_SYMBOL_MIN, a, b);
}

const TileSum *tile_sum_max(TileSumTable *table, const TileSum *a, const TileSum *b) {
    if (tile_sum_at_most(table, b, a)) return a;
    if (tile_sum_at_most(table, a, b)) return b;
    return tile_sum_compound(table, TILE_SYMBOL_MAX, a, b);
}

static TileSymbol *only_symbol(const TileSum *sum) { return sum->products[0].symbols[0]; }

/* min(bounded, high) where bounded >= low: a new symbol, even if it would fold to `high`, unless low <= high is
 * proven. */
static const TileSum *clamp_symbol(TileSumTable *table, const TileSum *bounded, const TileSum *low,
                                   const TileSum *high) {
    const TileSum *result = tile_sum_min(table, bounded, high), *needs = tile_sum_subtract(table, high, low);
    if (!needs->count || !tile_sum_is_host(needs) || tile_sum_at_most(table, low, high)) return result;
    if (tile_sum_wraps(table, low) || tile_sum_wraps(table, high) || tile_sum_wraps(table, needs)) return result;
    if (result == high) result = tile_sum_compound(table, TILE_SYMBOL_MIN, bounded, high);
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

/* Are all its symbols VALUEs, so that there is nothing to replace? */
static bool is_resolved(const TileSum *sum) {
    for (uint32_t i = 0; i < sum->count; i++)
        for (uint32_t k = 0; k < sum->products[i].degree; k++)
            if (sum->products[i].symbols[k]->kind != TILE_SYMBOL_VALUE) return false;
    return true;
}

/* Sets *inexact if a multiplication wraps. */
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
        plain.degree && plain.factor ? tile_sum_intern(table, 0, &plain, 1) : tile_sum_integer(table, plain.factor);
    const TileSum *result = tile_sum_multiply(table, term, others);
    *inexact |= tile_sum_wrapped(table);
    return result;
}

/* Stored with the sum, so it may only be folded by bounds that hold everywhere. */
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
