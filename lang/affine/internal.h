/* What the files of lang/affine/ share. */
#ifndef TILE_LANG_AFFINE_INTERNAL_H
#define TILE_LANG_AFFINE_INTERNAL_H

#include "lang/affine/sum.h"

enum { TILE_SUM_NO_FACT = 1 }; /* the stamp of a proof that used no fact */

/* The unique sum of these products, in this order, and a constant. */
const TileSum *tile_sum_intern(TileSumTable *table, int64_t constant, const TileProduct *products, uint32_t count);
/* The sum that is one symbol of this kind, unique by its operands; b may be NULL. */
const TileSum *tile_sum_compound(TileSumTable *table, TileSymbolKind kind, const TileSum *a, const TileSum *b);
/* Division by zero gives 0. */
int64_t tile_sum_floor_divide(int64_t a, int64_t b);

/* sum = coefficient * symbol + rest; false if a higher power of the symbol occurs, too. */
bool tile_sum_take_apart(TileSumTable *table, const TileSum *sum, const TileSymbol *symbol, const TileSum **coefficient,
                         const TileSum **rest);
const TileSymbol *tile_sum_newest(const TileSum *sum);

/* A failed proof is tried again once there is a new bound or fact about a symbol that it may have used. */
static inline void tile_sum_count_bound(TileSumTable *table, const TileSymbol *symbol) {
    table->bound_count += symbol->id < table->asked_symbols;
}

/* A proof is as open as the bounds that it uses. */
static inline void tile_sum_open_symbol(TileSymbol *symbol, const TileSum *bound) {
    if (tile_sum_open(bound)) symbol->open |= TILE_OPEN_NUMBER;
}

/* Modulo 2^64; they note that a number wrapped. */
static inline int64_t wrap_add(TileSumTable *table, int64_t a, int64_t b) {
    int64_t sum;
    table->wrapped |= __builtin_add_overflow(a, b, &sum);
    return sum;
}

static inline int64_t wrap_multiply(TileSumTable *table, int64_t a, int64_t b) {
    int64_t product;
    table->wrapped |= __builtin_mul_overflow(a, b, &product);
    return product;
}

#endif
