/* Integer expressions of a kernel in a normal form: sums of products of symbols.
 *
 * Every i64 scalar, extent and bound is one. Sums are hash-consed: equal sums are equal pointers. So extents agree
 * exactly if they are the same expression after folding, equal index arithmetic is emitted once, and bounds of symbols
 * prove that indices are in bounds. Arithmetic is modulo 2^64, as in the language. */
#ifndef TILE_LANG_AFFINE_SUM_H
#define TILE_LANG_AFFINE_SUM_H

#include "base/arena.h"
#include "base/list.h"
#include "base/string.h"
#include "lang/scalar/types.h"

typedef struct TileSum TileSum;
typedef struct TileSymbol TileSymbol;
typedef struct TileValue TileValue; /* of the IR, which is above this room: only stored for the creator of the symbol */

/* Sums that are at most this far from 0 do not wrap, and neither do small multiples of them: extents are below 2^47. */
#define TILE_SUM_FAR (INT64_C(1) << 52)

enum { TILE_MAX_DEGREE = 4, TILE_MAX_PRODUCTS = 12, TILE_MAX_BOUNDS = 2, TILE_SMALL_INTEGERS = 32, TILE_RECENT_SUMS = 128 };

typedef enum TileSymbolKind {
    TILE_SYMBOL_VALUE, /* an extent, a parameter, an induction variable, the result of any other computation */
    TILE_SYMBOL_KNOWN, /* a named constant: compared by name in extents, by value elsewhere */
    TILE_SYMBOL_MIN,
    TILE_SYMBOL_MAX,
    TILE_SYMBOL_DIV,
    TILE_SYMBOL_REM,
    TILE_SYMBOL_MUL,   /* a product too large for the normal form */
    TILE_SYMBOL_GROUP, /* a sum too large for the normal form */
    TILE_SYMBOL_SHL,   /* this and the following: of known operands only */
    TILE_SYMBOL_SHR,
    TILE_SYMBOL_AND,
    TILE_SYMBOL_OR,
    TILE_SYMBOL_XOR,
} TileSymbolKind;

/* What is not yet known of a number, or only assumed for it (stand_in.c). */
typedef enum TileOpen {
    TILE_OPEN_NUMBER = 1, /* another number may be given later */
    TILE_OPEN_CHOICE = 2, /* it depends on a bool that may have the other value */
    TILE_OPEN_NAME = 4,   /* the number given later may be written otherwise: extents that differ here may agree then */
} TileOpen;

struct TileSymbol {
    TileSymbolKind kind;
    uint8_t open; /* TileOpen, including that of operands and bounds */
    uint32_t id;  /* in order of creation: bounds contain only older symbols */
    const char *name;
    int64_t known;
    const TileSum *a, *b;
    TileSymbol *next; /* in its bucket */
    TileValue *value; /* VALUE */
    TileScalar type;  /* VALUE: the integer type whose range it has: narrower than i64 if it was converted from it */
    const TileSum *lower[TILE_MAX_BOUNDS], *upper[TILE_MAX_BOUNDS]; /* inclusive; exact integers; all of them hold */
    uint8_t lower_count, upper_count;
    const TileSum *sum;   /* the symbol as a sum; NULL until first used */
    const TileSum *needs; /* the bounds hold only if this is >= 0, which a launch has to check; or NULL */
    bool host;            /* computed outside of grids */
    bool lane;            /* any element of a tile, of which there may be none; or operands are so */
    bool even;            /* VALUE: a multiple of 2, as an induction variable of even start and step */
};

typedef struct TileProduct {
    int64_t factor;
    uint32_t degree;
    TileSymbol *symbols[TILE_MAX_DEGREE]; /* by id */
} TileProduct;

/* The cached result of a proof. A success holds while the newest of the facts that it used holds; a failure until there
 * is a new bound, or there are more facts. */
typedef struct TileProof {
    uint64_t stamp; /* success: of that fact, or 1 if it used none; failure: the number of bounds, plus 1; 0: not
                     * tried */
    uint32_t facts; /* success: how many facts there were up to that one; failure: how many there were */
    uint8_t fuel;   /* of the failed attempt */
} TileProof;

/* The interval of a sum as an exact integer. `below` and `above`: it may overflow 64 bits on that side, and `least` or
 * `most` is saturated. Code computes modulo 2^64. */
typedef struct TileInterval {
    int64_t least, most;
    bool below, above;
} TileInterval;

struct TileSum {
    int64_t constant;
    uint32_t count, hash; /* of the products */
    const TileProduct *products;
    const TileSum *resolved;     /* with known symbols replaced by their values; NULL until first used */
    TileProof proven, failed[3]; /* failed: without `needs`, with them, and with divisors among them */
    size_t cache;                /* the emitter's */
    TileInterval interval;
    bool has_interval; /* the interval has been computed */
    bool trusted;      /* a launch checks that it does not overflow: so its interval is known where it is a part, too */
    bool inexact;      /* a number wrapped in `resolved` */
};

/* What holds in a scope only: factor * symbol + rest >= 0, of exact integers. Each symbol that a fact is about has one.
 */
typedef struct TileFact {
    const TileSymbol *symbol;
    const TileSum *rest;
    const TileSum *needs; /* it holds only if this is >= 0, which a launch has to check; or NULL */
    int64_t factor;
    uint64_t stamp; /* unique */
} TileFact;

/* a + factor * b, in which no number wrapped. */
typedef struct TileRecentSum {
    const TileSum *a, *b, *result;
    int64_t factor;
} TileRecentSum;

typedef struct TileSumTable {
    TileArena *arena;
    TILE_LIST(TileFact) facts; /* truncated at the end of a scope */
    bool wrapped;              /* a constant in a sum wrapped */
    bool grouped;              /* a sum or product became a symbol, as it is too large for the normal form */
    uint64_t bound_count;      /* bounds and facts added so far that may turn a failed proof into a success */
    uint64_t stamp;            /* of the newest fact so far; starts at 1 */
    size_t facts_used;         /* by the current proof: the number of facts up to the newest that it used */
    uint32_t asked_symbols;    /* symbols from this id on have not occurred in any proof so far */
    unsigned steps;            /* that the current proof may still take */
    bool proving;
    bool trusts; /* there are sums that a launch checks */
    TILE_LIST(const TileSum *) trusted; /* those of them that are one product */
    TileSum **slots;
    size_t capacity, count;
    uint32_t symbol_count;
    TileSymbol **buckets; /* compound symbols by kind and operands */
    size_t bucket_count, compound_count;
    const TileSum *integers[TILE_SMALL_INTEGERS]; /* NULL until first used */
    TileRecentSum *recent; /* TILE_RECENT_SUMS results, each at the hash of its operands: most additions are repeated */
} TileSumTable;

void tile_sum_table_init(TileSumTable *table, TileArena *arena);

/* The TileOpen of all its symbols. */
unsigned tile_sum_open(const TileSum *sum); /* may be NULL */

TileSymbol *tile_symbol_value(TileSumTable *table, const char *name, TileValue *value);
TileSymbol *tile_symbol_known(TileSumTable *table, const char *name, int64_t value);
void tile_symbol_bound(TileSumTable *table, TileSymbol *symbol, const TileSum *lower, const TileSum *upper);

const TileSum *tile_sum_integer(TileSumTable *table, int64_t value);
const TileSum *tile_sum_symbol(TileSumTable *table, TileSymbol *symbol);
/* One product, with its sign dropped; with its sign. */
const TileSum *tile_sum_product(TileSumTable *table, const TileProduct *product);
const TileSum *tile_sum_term(TileSumTable *table, const TileProduct *product);
const TileSum *tile_sum_add(TileSumTable *table, const TileSum *a, const TileSum *b);
const TileSum *tile_sum_subtract(TileSumTable *table, const TileSum *a, const TileSum *b);
const TileSum *tile_sum_multiply(TileSumTable *table, const TileSum *a, const TileSum *b);
/* Floor division and its remainder; both are 0 for a divisor of 0. */
const TileSum *tile_sum_divide(TileSumTable *table, const TileSum *a, const TileSum *b);
const TileSum *tile_sum_remainder(TileSumTable *table, const TileSum *a, const TileSum *b);
/* A shift, `&`, `|` or `^` (the kind of its symbol) of two known numbers; NULL if one is not known. */
const TileSum *tile_sum_bits(TileSumTable *table, TileSymbolKind kind, const TileSum *a, const TileSum *b);
const TileSum *tile_sum_min(TileSumTable *table, const TileSum *a, const TileSum *b);
const TileSum *tile_sum_max(TileSumTable *table, const TileSum *a, const TileSum *b);
/* min(max(x, low), high), which is at least `low` if a launch checks that low <= high. */
const TileSum *tile_sum_clamp(TileSumTable *table, const TileSum *x, const TileSum *low, const TileSum *high);
/* ceil(a / b) as (a + b - 1) / b. */
const TileSum *tile_sum_divide_up(TileSumTable *table, const TileSum *a, const TileSum *b);

const TileSum *tile_sum_resolve(TileSumTable *table, const TileSum *sum);
/* The value, if every symbol is known. */
bool tile_sum_known(TileSumTable *table, const TileSum *sum, int64_t *value);
/* A constant: no symbol occurs in it. */
static inline bool tile_sum_is_literal(const TileSum *sum, int64_t value) {
    return sum->count == 0 && sum->constant == value;
}
/* Is a <= b proven, for exact integers? An index is in bounds if both of its bounds are proven; a single bound may hold
 * for a number that wraps. Conditions that a launch has to check are added to `needs` (which may be NULL). */
typedef struct TileSumNeeds {
    const TileSum *items[4];
    unsigned count;
    bool divisors; /* also that a divisor is at least 1 */
} TileSumNeeds;
bool tile_sum_proves(TileSumTable *table, const TileSum *a, const TileSum *b, TileSumNeeds *needs);
/* The same for the values that the code computes. */
bool tile_sum_at_most(TileSumTable *table, const TileSum *a, const TileSum *b);
/* Adds the fact a <= b, for exact integers. */
void tile_sum_assume(TileSumTable *table, const TileSum *a, const TileSum *b);
/* Adds the fact that a <= b, or a < b, for the values that the code computes. */
void tile_sum_assume_code(TileSumTable *table, const TileSum *a, const TileSum *b, bool less, const TileSum *needs);
/* The value that the code computes as an exact integer: one symbol, if the sum may overflow 64 bits. */
const TileSum *tile_sum_code(TileSumTable *table, const TileSum *sum);
/* Are low <= a and b <= high proven for the values that the code computes, where a and b are one sum or do not
 * overflow? As tile_sum_proves; also by facts about other sums whose code's value is known to lie in an interval. */
bool tile_sum_within(TileSumTable *table, const TileSum *a, const TileSum *b, const TileSum *low, const TileSum *high,
                     TileSumNeeds *needs);
/* Has a constant in a sum wrapped since the last call? */
bool tile_sum_wrapped(TileSumTable *table);
/* Is a sum or product that was made since the last call another one than that of exact integers? A constant has wrapped, or a part
 * that is too large for the normal form has become a symbol, which stands for the code's value. */
bool tile_sum_inexact(TileSumTable *table);
/* Is it a multiple of 2 in any case? */
bool tile_sum_is_even(const TileSum *sum);
/* Half of it, rounded down; where every number in it is even, without a division. */
const TileSum *tile_sum_half(TileSumTable *table, const TileSum *sum);
/* Are all its symbols computed outside of grids? */
bool tile_sum_is_host(const TileSum *sum);
/* Does an element of a tile occur in it? */
bool tile_sum_has_lanes(const TileSum *sum);

/* ---- interval.c ---- */

TileInterval tile_sum_interval(TileSumTable *table, const TileSum *sum);
/* May it be below the range of 64 bits; above; either? */
bool tile_sum_falls(TileSumTable *table, const TileSum *sum);
bool tile_sum_exceeds(TileSumTable *table, const TileSum *sum);
bool tile_sum_wraps(TileSumTable *table, const TileSum *sum);
/* The same, where the facts of the scope count, too. */
bool tile_sum_may_fall(TileSumTable *table, const TileSum *sum);
bool tile_sum_may_exceed(TileSumTable *table, const TileSum *sum);
/* *sum = a + b; may it overflow 64 bits? The sum of two constants does not show that itself. */
bool tile_sum_add_exceeds(TileSumTable *table, const TileSum *a, const TileSum *b, const TileSum **sum);
/* Records that a launch checks the sum for overflow; it is the extent of a tensor. */
void tile_sum_trust(TileSumTable *table, const TileSum *sum);

/* As users would write it: "2 * N + 1". */
void tile_sum_print(TileText *text, const TileSum *sum);

#endif
