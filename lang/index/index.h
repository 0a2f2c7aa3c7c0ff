/* Index analysis: what is known of the integers of a function. Requires SSA values that dominate their uses.
 *
 *   ranges       the numbers that a value can be, and a number that divides them, for each lane
 *   sums         a value as a sum of products of symbols, in the normal form of lang/affine/sum.h
 *   differences  the numbers that x - y can be, where the two are related
 *   slopes       how a value changes with an induction variable
 *
 * Results are found when asked for and kept by value. They hold as long as values keep their meaning: a pass may
 * replace and erase values while it asks; after it, the pass runner drops the analysis unless the pass keeps it
 * (lowering/pass.h). No result depends on names or on the order of questions. Not thread safe: one analysis belongs to
 * one function and one thread. */
#ifndef TILE_LANG_INDEX_INDEX_H
#define TILE_LANG_INDEX_INDEX_H

#include "lang/affine/sum.h"
#include "lang/ir/ir.h"

typedef struct TileIndices TileIndices;

TileIndices *tile_indices_create(TileArena *arena, TileFunc *func);
/* The same where each extent of machine form is taken for a multiple of a power of two; each is an assumption of its
 * own, of which tile_index_ask knows whether it holds. */
TileIndices *tile_indices_suppose(TileArena *arena, TileFunc *func, int64_t divisor);

/* A value of the function of which a new analysis finds another range or sum than this one has; NULL: there is none. */
const TileValue *tile_indices_compare(TileIndices *indices, TileArena *arena);

/* ---- range.c ---- */

typedef struct TileIndexRange {
    int64_t lo, hi;   /* lo <= value <= hi; u64 beyond INT64_MAX is not described: then the range is that of i64 */
    int64_t multiple; /* divides the value; 0 when the value is 0 */
    uint64_t because; /* set of assumptions about the parameters (TileTensorFacts) that the range rests on */
} TileIndexRange;

static inline bool tile_index_is_constant(TileIndexRange range) { return range.lo == range.hi; }

TileIndexRange tile_index_range(TileIndices *indices, const TileValue *value);
/* Whoever relies on a range marks its assumptions in the function's parameters (used_extent): only what was used is
 * guarded at launch. */
void tile_index_use(TileIndices *indices, uint64_t because);
/* Do all the supposed multiples hold? The parameters learn what was asked for and, where it holds, that it is relied
 * on. */
bool tile_index_ask(TileIndices *indices, uint64_t because);

/* ---- difference.c ---- */

/* x - y as an integer that does not wrap; a bound past 64 bits is the outermost one. */
TileIndexRange tile_index_difference(TileIndices *indices, const TileValue *x, const TileValue *y);

/* ---- sums.c ---- */

/* Sums of the values seen from one place: what a view does not follow is a symbol, whose `value` it is. */
typedef struct TileIndexView {
    TileIndices *indices;
    const TileOp *inside; /* values from outside of this op are symbols; NULL: there are none */
    bool tiles;           /* scalars are symbols: only tiles are followed */
    TileMap sums;         /* TileValue to TileSum */
    TileMap lanes; /* with `tiles`, TileValue to the symbol of what its lanes do not share; by tile_symbol_bound its
                    * bounds are known */
} TileIndexView;

void tile_index_view_init(TileIndexView *view, TileIndices *indices, const TileOp *inside, bool tiles);
/* An i64 or pointer modulo 2^64, lane by lane. Narrower integers are followed where they do not wrap; other values are
 * symbols. In a view of tiles, what all lanes of a tile share is in symbols that are scalars, and the rest in symbols
 * that are tiles. */
const TileSum *tile_index_sum(TileIndexView *view, const TileValue *value);
/* Where these sums live: for further arithmetic on them. */
TileSumTable *tile_index_table(TileIndices *indices);
/* Do the scalars or pointers differ by a constant, modulo 2^64: is a = b + *distance? */
bool tile_index_offset(TileIndices *indices, const TileValue *a, const TileValue *b, int64_t *distance);

/* ---- slope.c ---- */

/* Is the value made of the other one by ops without regions? */
bool tile_index_depends(TileIndices *indices, const TileValue *value, const TileValue *on);

typedef enum TileGrowth {
    TILE_GROWTH_NONE = 0,
    TILE_GROWTH_RISES = 1,
    TILE_GROWTH_FALLS = 2,
    TILE_GROWTH_UNKNOWN = 3
} TileGrowth;
/* How the value changes as the other one rises: NONE where it does not depend on it. Sums are taken not to wrap: for
 * decisions that no result depends on. */
TileGrowth tile_index_growth(TileIndices *indices, const TileValue *value, const TileValue *on);

typedef enum TileSlopeKind {
    TILE_SLOPE_UNIFORM, /* the same in all iterations */
    TILE_SLOPE_AFFINE,  /* grows by `step`, times `factor` where there is one, with each iteration */
    TILE_SLOPE_VARYING
} TileSlopeKind;

typedef struct TileSlope {
    TileSlopeKind kind;
    int64_t step;
    TileValue *factor; /* uniform i64, or NULL */
} TileSlope;

/* A number that a value is taken to be; false: none. */
typedef bool TileIndexGiven(void *state, TileValue *value, int64_t *number);

/* How values change with the induction variable of one loop, what it carries aside. */
typedef struct TileSlopes {
    TileIndexView view; /* inside of the loop */
    TileOp *loop;
    TileMap known;         /* TileValue to TileSlope */
    TileIndexGiven *given; /* or NULL */
    void *state;
} TileSlopes;

void tile_slopes_init(TileSlopes *slopes, TileIndices *indices, TileOp *loop);
TileSlope tile_index_slope(TileSlopes *slopes, TileValue *value);

#endif
