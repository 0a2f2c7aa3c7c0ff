/* What the files of lang/index/ share. */
#ifndef TILE_LANG_INDEX_INTERNAL_H
#define TILE_LANG_INDEX_INTERNAL_H

#include "base/map.h"
#include "lang/index/index.h"

/* Sums and products of bounds, and differences of any two 64-bit numbers, are exact in this. */
typedef __int128 Wide;

enum { TILE_MAX_ASSUMPTIONS = 64 };

/* A value in the middle of a walk, and the number of what it needs next. */
typedef struct TileIndexPending {
    const TileValue *value;
    unsigned next;
} TileIndexPending;

typedef struct TileAssumption {
    uint32_t parameter, dimension;
} TileAssumption;

struct TileIndices {
    TileArena *arena;
    TileFunc *func;
    TileMap ranges; /* TileValue to TileIndexRange */
    TileAssumption assumptions[TILE_MAX_ASSUMPTIONS];
    unsigned assumption_count;
    unsigned steps;     /* left for the difference at hand: min and max branch */
    int64_t divisor;    /* that extents of machine form are supposed to have, or 0 */
    bool unconditional; /* nothing is assumed of parameters */
    TileIndices *less;  /* the same without assumptions; NULL until asked for */
    TileSumTable table;
    TileMap symbols;    /* TileValue to the TileSymbol that stands for it */
    TileIndexView view; /* of all values */
    TILE_LIST(TileIndexPending) pending;
};

/* range.c: the numbers of a type. */
TileIndexRange tile_index_range_of_type(const TileType *type);
/* The range that holds whatever the parameters are. */
TileIndexRange tile_index_range_always(TileIndices *indices, const TileValue *value);

/* sums.c: the value as a sum that is exact as an integer, whatever the parameters are; NULL where it may wrap. */
const TileSum *tile_index_exact_sum(TileIndices *indices, const TileValue *value);

/* difference.c: the range of x - y where that does not wrap. */
TileIndexRange tile_index_subtraction(TileIndices *indices, const TileOp *op, const TileType *type);
int64_t tile_index_common_divisor(int64_t a, int64_t b);
/* The range lo .. hi in a value of the type; where the type does not hold all of it, the value may have wrapped, which
 * leaves of what divides it the power of two. */
TileIndexRange tile_index_in_type(const TileType *type, Wide lo, Wide hi, int64_t multiple, uint64_t because);

/* Calls compute(state, v) for `value` and what it needs, each value behind those that it needs itself, and only while
 * is_known(state, v) is false; needed(state, v, k) is the k-th of those, or NULL. A chain of ops takes no stack. */
typedef struct TileIndexOrder {
    bool (*is_known)(void *state, const TileValue *value);
    const TileValue *(*needed)(void *state, const TileValue *value, unsigned k);
    void (*compute)(void *state, const TileValue *value);
    void *state;
} TileIndexOrder;
void tile_index_in_order(TileIndices *indices, const TileIndexOrder *order, const TileValue *value);

#endif
