/* Integer expressions of a kernel in one normal form: sums of products of symbols.
 *
 * Every i64 scalar, extent and bound is one. Equal sums are equal pointers, so that extents agree exactly when
 * they are the same expression after folding, equal index arithmetic is emitted once, and what lies inside a
 * dimension can be proven from the bounds of symbols. Arithmetic is modulo 2^64, as in the language. */
#ifndef TILE_LANG_AFFINE_SUM_H
#define TILE_LANG_AFFINE_SUM_H

#include "base/arena.h"
#include "base/list.h"
#include "base/string.h"
#include "lang/scalar/types.h"

typedef struct TileSum TileSum;
typedef struct TileSymbol TileSymbol;
typedef struct TileValue TileValue; /* of the IR, which is above: kept for whoever made the symbol */

enum { TILE_MAX_DEGREE = 4, TILE_MAX_PRODUCTS = 12, TILE_MAX_BOUNDS = 2, TILE_SMALL_INTEGERS = 32 };

typedef enum TileSymbolKind {
    TILE_SYMBOL_VALUE, /* a dimension, a parameter, a loop's integer, anything computed otherwise */
    TILE_SYMBOL_KNOWN, /* a named constant: its name counts where extents are compared, its value elsewhere */
    TILE_SYMBOL_MIN,
    TILE_SYMBOL_MAX,
    TILE_SYMBOL_DIV,
    TILE_SYMBOL_REM,
    TILE_SYMBOL_MUL,   /* a product too large for the normal form */
    TILE_SYMBOL_GROUP, /* a sum too large for it */
    TILE_SYMBOL_SHL,   /* from here on: of known operands only */
    TILE_SYMBOL_SHR,
    TILE_SYMBOL_AND,
    TILE_SYMBOL_OR,
    TILE_SYMBOL_XOR,
} TileSymbolKind;

/* What is not said yet about a number, and what only stands in for it (stand_in.c). */
typedef enum TileOpen {
    TILE_OPEN_NUMBER = 1, /* another number may come */
    TILE_OPEN_CHOICE = 2, /* it follows from a bool that may be the other one */
    TILE_OPEN_NAME = 4,   /* whatever comes may be written otherwise: extents that differ here may agree then */
} TileOpen;

struct TileSymbol {
    TileSymbolKind kind;
    uint8_t open; /* TileOpen, of its operands and bounds too */
    uint32_t id;  /* in order of creation: bounds only speak of older symbols */
    const char *name;
    int64_t known;
    const TileSum *a, *b;
    TileSymbol *next; /* in its bucket */
    TileValue *value; /* VALUE */
    TileScalar type;  /* VALUE: the integer type whose numbers it has: narrower than i64 where it was widened */
    const TileSum *lower[TILE_MAX_BOUNDS], *upper[TILE_MAX_BOUNDS]; /* inclusive; whole numbers; each holds */
    uint8_t lower_count, upper_count;
    const TileSum *sum;   /* the symbol alone; NULL until asked for */
    const TileSum *needs; /* the bounds hold only where this is >= 0, which a launch has to check; or NULL */
    bool host;            /* computed before any grid */
};

typedef struct TileProduct {
    int64_t factor;
    uint32_t degree;
    TileSymbol *symbols[TILE_MAX_DEGREE]; /* by id */
} TileProduct;

/* What came of an attempt to prove. One that succeeded holds as long as the newest of the facts that it used; one that
 * failed until there is a new bound, or a fact more than there were. */
typedef struct TileProof {
    uint64_t stamp; /* succeeded: of that fact, or 1 without one; failed: the number of bounds, plus 1; 0: not tried */
    uint32_t facts; /* how many there were up to that fact, or at all */
    uint8_t fuel;   /* failed: with so much */
} TileProof;

/* Numbers that a sum can be, as a whole number: `below` and `above` where it may leave the 64 bits on that side, in
 * which `least` and `most` then end. Code computes modulo 2^64. */
typedef struct TileInterval {
    int64_t least, most;
    bool below, above;
} TileInterval;

struct TileSum {
    int64_t constant;
    uint32_t count, hash; /* of the products */
    const TileProduct *products;
    const TileSum *resolved;     /* known symbols replaced by their values; NULL until asked for */
    TileProof proven, failed[2]; /* failed: without and with needs */
    size_t cache;                /* the emitter's */
    TileInterval interval;
    bool has_interval; /* it was asked for */
    bool inexact;      /* a number wrapped in `resolved` */
};

/* A bound of a symbol that holds in some scopes only. */
typedef struct TileFact {
    const TileSymbol *symbol;
    const TileSum *bound;
    uint64_t stamp; /* no two facts have the same */
    bool upper;
} TileFact;

typedef struct TileSumTable {
    TileArena *arena;
    TILE_LIST(TileFact) facts; /* cut back to their old count where a scope ends */
    bool wrapped;              /* a number in a sum did */
    uint64_t bound_count;      /* bounds and facts ever added that an attempt to prove may have missed */
    uint64_t stamp;            /* of the newest fact ever; begins with 1 */
    size_t facts_used;         /* by the proof that goes on: so many facts hold up to the newest of them */
    uint32_t asked_symbols;    /* symbols younger than this were in no question yet */
    TileSum **slots;
    size_t capacity, count;
    uint32_t symbol_count;
    TileSymbol **buckets; /* compound symbols by kind and operands */
    size_t bucket_count, compound_count;
    const TileSum *integers[TILE_SMALL_INTEGERS]; /* once asked for */
} TileSumTable;

void tile_sum_table_init(TileSumTable *table, TileArena *arena);

/* The TileOpen of all its symbols. */
unsigned tile_sum_open(const TileSum *sum); /* may be NULL */

TileSymbol *tile_symbol_value(TileSumTable *table, const char *name, TileValue *value);
TileSymbol *tile_symbol_known(TileSumTable *table, const char *name, int64_t value);
void tile_symbol_bound(TileSumTable *table, TileSymbol *symbol, const TileSum *lower, const TileSum *upper);

const TileSum *tile_sum_integer(TileSumTable *table, int64_t value);
const TileSum *tile_sum_symbol(TileSumTable *table, TileSymbol *symbol);
/* One product without the sign of its factor; with it. */
const TileSum *tile_sum_product(TileSumTable *table, const TileProduct *product);
const TileSum *tile_sum_term(TileSumTable *table, const TileProduct *product);
const TileSum *tile_sum_add(TileSumTable *table, const TileSum *a, const TileSum *b);
const TileSum *tile_sum_subtract(TileSumTable *table, const TileSum *a, const TileSum *b);
const TileSum *tile_sum_multiply(TileSumTable *table, const TileSum *a, const TileSum *b);
/* Floor division and its remainder; by zero both are 0. */
const TileSum *tile_sum_divide(TileSumTable *table, const TileSum *a, const TileSum *b);
const TileSum *tile_sum_remainder(TileSumTable *table, const TileSum *a, const TileSum *b);
/* A shift, `&`, `|` or `^` (the kind of its symbol) of two numbers that are known; NULL where one is not. */
const TileSum *tile_sum_bits(TileSumTable *table, TileSymbolKind kind, const TileSum *a, const TileSum *b);
const TileSum *tile_sum_min(TileSumTable *table, const TileSum *a, const TileSum *b);
const TileSum *tile_sum_max(TileSumTable *table, const TileSum *a, const TileSum *b);
/* min(max(x, low), high), which is at least `low` where a launch finds that low <= high. */
const TileSum *tile_sum_clamp(TileSumTable *table, const TileSum *x, const TileSum *low, const TileSum *high);
/* ceil(a / b) as (a + b - 1) / b. */
const TileSum *tile_sum_divide_up(TileSumTable *table, const TileSum *a, const TileSum *b);

const TileSum *tile_sum_resolve(TileSumTable *table, const TileSum *sum);
/* The number, where every symbol is known. */
bool tile_sum_known(TileSumTable *table, const TileSum *sum, int64_t *value);
/* A plain number, no symbol in it. */
static inline bool tile_sum_is_literal(const TileSum *sum, int64_t value) {
    return sum->count == 0 && sum->constant == value;
}
/* Is a <= b proven, as whole numbers? An index with both bounds is sound so; one bound alone may hold of a number that
 * wraps. What a launch has to check for it is added to `needs` (which may be NULL). */
typedef struct TileSumNeeds {
    const TileSum *items[4];
    unsigned count;
} TileSumNeeds;
bool tile_sum_proves(TileSumTable *table, const TileSum *a, const TileSum *b, TileSumNeeds *needs);
/* The same of what the code computes. */
bool tile_sum_at_most(TileSumTable *table, const TileSum *a, const TileSum *b);
/* From here on a <= b holds, as whole numbers, as far as bounds of their symbols can say so. */
void tile_sum_assume(TileSumTable *table, const TileSum *a, const TileSum *b);
/* Did a number in a sum wrap since this was last asked? */
bool tile_sum_wrapped(TileSumTable *table);
/* Are all its symbols computed before any grid? */
bool tile_sum_is_host(const TileSum *sum);

/* ---- interval.c ---- */

TileInterval tile_sum_interval(TileSumTable *table, const TileSum *sum);
/* May it be less than 64 bits hold; more; either? */
bool tile_sum_falls(TileSumTable *table, const TileSum *sum);
bool tile_sum_exceeds(TileSumTable *table, const TileSum *sum);
bool tile_sum_wraps(TileSumTable *table, const TileSum *sum);
/* *sum = a + b; may that be more than 64 bits hold? Of two plain numbers the sum itself does not tell. */
bool tile_sum_add_exceeds(TileSumTable *table, const TileSum *a, const TileSum *b, const TileSum **sum);
/* A launch checks that it does not, and is the extent of a tensor. */
void tile_sum_trust(TileSumTable *table, const TileSum *sum);

/* As a person would write it: "2 * N + 1". */
void tile_sum_print(TileText *text, const TileSum *sum);

#endif
