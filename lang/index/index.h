/* Index analysis: facts about the integers of a function. Requires SSA form.
 *
 *  ranges       an interval that contains a value, and a number that divides it, for each lane
 *  sums         a value as a sum of products of symbols, in the normal form of lang/affine/sum.h
 *  differences  an interval that contains x - y, if the two are related
 *  slopes       how a value depends on an induction variable
 *
 * Results are computed on demand and cached by value. They are valid as long as values keep their meaning: a pass may
 * replace and erase values while it uses the analysis; after the pass, the pass runner drops the analysis unless the
 * pass preserves it (lowering/pass.h). No result depends on names or on the order of queries. Not thread safe: an
 * analysis belongs to one function and one thread. */
#ifndef TILE_LANG_INDEX_INDEX_H
#define TILE_LANG_INDEX_INDEX_H

#include "lang/affine/sum.h"
#include "lang/ir/ir.h"

typedef struct TileIndices TileIndices;

/* ---- indices.c ---- */

TileIndices *tile_indices_create(TileArena *arena, TileFunc *func);
/* The same, which takes extents of narrow tensors for words. */
TileIndices *tile_indices_in_words(TileArena *arena, TileFunc *func);
/* The same, assuming that each extent of machine form is a multiple of a power of two; each is a separate assumption,
 * which tile_index_ask checks against the parameters' facts. */
TileIndices *tile_indices_suppose(TileArena *arena, TileFunc *func, int64_t divisor);
/* A user of a range marks its assumptions in the function's parameters (used_extent): only facts that were used are
 * guarded at launch. */
void tile_index_use(TileIndices *indices, uint64_t because);
/* Do all the assumed multiples hold? Records in the parameters that they were asked for and, if they hold, that code
 * relies on them. */
bool tile_index_ask(TileIndices *indices, uint64_t because);

/* The sums of values as seen from inside an op: values that a view does not follow are symbols with that `value`. */
typedef struct TileIndexView {
    TileIndices *indices;
    const TileOp *inside; /* values defined outside of this op are symbols; NULL: all are followed */
    bool tiles;           /* scalars are symbols: only tiles are followed */
    TileMap sums;         /* TileValue to TileSum */
    TileMap lanes; /* with `tiles`, TileValue to the symbol of the lanes' own part, whose bounds tile_symbol_bound has
                    * set */
} TileIndexView;

void tile_index_view_init(TileIndexView *view, TileIndices *indices, const TileOp *inside, bool tiles);

/* ---- range.c ---- */

typedef struct TileIndexRange {
    int64_t lo, hi;   /* lo <= value <= hi; if a u64 may exceed INT64_MAX, this is the range of i64 */
    int64_t multiple; /* divides the value; 0 when the value is 0 */
    uint64_t because; /* set of assumptions about the parameters (TileTensorFacts) that the range depends on */
} TileIndexRange;

static inline bool tile_index_is_constant(TileIndexRange range) { return range.lo == range.hi; }

TileIndexRange tile_index_range(TileIndices *indices, const TileValue *value);

/* ---- difference.c ---- */

/* x - y as an integer that does not wrap; bounds are saturated to 64 bits. */
TileIndexRange tile_index_difference(TileIndices *indices, const TileValue *x, const TileValue *y);

/* ---- sums.c ---- */

/* An i64 or pointer modulo 2^64, for each lane. Narrower integers are followed if they do not wrap; other values are
 * symbols. In a view of tiles, symbols that are scalars describe the part that all lanes share, symbols that are tiles
 * the lanes' own part. */
const TileSum *tile_index_sum(TileIndexView *view, const TileValue *value);
/* The table of these sums, for further arithmetic on them. */
TileSumTable *tile_index_table(TileIndices *indices);
/* Do the scalars or pointers differ by a constant, modulo 2^64: is a = b + *distance? */
bool tile_index_offset(TileIndices *indices, const TileValue *a, const TileValue *b, int64_t *distance);

/* ---- compare.c ---- */

/* A value of the function whose range or sum differs in a new analysis; NULL: there is none. */
const TileValue *tile_indices_compare(TileIndices *indices, TileArena *arena);

/* ---- slope.c ---- */

/* Is the value computed from the other one by ops without regions? */
bool tile_index_depends(TileIndices *indices, const TileValue *value, const TileValue *on);

typedef enum TileGrowth {
    TILE_GROWTH_NONE = 0,
    TILE_GROWTH_RISES = 1,
    TILE_GROWTH_FALLS = 2,
    TILE_GROWTH_UNKNOWN = 3
} TileGrowth;
/* How the value changes when the other one increases: NONE if it does not depend on it. Assumes that sums do not wrap:
 * only for heuristics. */
TileGrowth tile_index_growth(TileIndices *indices, const TileValue *value, const TileValue *on);

typedef enum TileSlopeKind {
    TILE_SLOPE_UNIFORM, /* loop-invariant */
    TILE_SLOPE_AFFINE,  /* changes by `step`, times `factor` if there is one, in each iteration */
    TILE_SLOPE_VARYING
} TileSlopeKind;

typedef struct TileSlope {
    TileSlopeKind kind;
    int64_t step;
    TileValue *factor; /* a loop-invariant i64, or NULL */
} TileSlope;

/* A number to assume for a value; false: none. */
typedef bool TileIndexGiven(void *state, TileValue *value, int64_t *number);

/* How values depend on the induction variable of one loop, loop-carried values excepted. */
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
