/* What the files of lang/index/ share. */
#ifndef TILE_LANG_INDEX_INTERNAL_H
#define TILE_LANG_INDEX_INTERNAL_H

#include "base/map.h"
#include "lang/index/index.h"

/* 128 bits: sums and products of bounds, and differences of any two 64-bit numbers, do not overflow. */
typedef __int128 Wide;

enum { TILE_MAX_ASSUMPTIONS = 64 };

/* An entry of the depth-first walk: a value, and the index of its next dependence. */
typedef struct TileIndexPending {
    const TileValue *value;
    unsigned next;
} TileIndexPending;

typedef struct TileAssumption {
    uint32_t parameter, dimension; /* or TILE_ANY_DIMENSION: that the tensor is narrow */
} TileAssumption;
enum { TILE_ANY_DIMENSION = TILE_MAX_TENSOR_RANK };

struct TileIndices {
    TileArena *arena;
    TileFunc *func;
    TileMap ranges; /* TileValue to TileIndexRange */
    TileAssumption assumptions[TILE_MAX_ASSUMPTIONS];
    unsigned assumption_count;
    unsigned steps;     /* remaining steps for the current difference: min and max branch */
    int64_t divisor;    /* the assumed divisor of extents of machine form, or 0 */
    bool words;         /* extents of narrow tensors are words */
    bool unconditional; /* no assumptions about parameters are used */
    TileIndices *less;  /* the analysis without assumptions; NULL until first used */
    TileSumTable table;
    TileMap symbols;    /* TileValue to the TileSymbol that stands for it */
    TileIndexView view; /* of all values */
    TILE_LIST(TileIndexPending) pending;
};

/* ---- indices.c ---- */
int64_t tile_index_common_divisor(int64_t a, int64_t b);
/* The numbers of a type. */
TileIndexRange tile_index_range_of_type(const TileType *type);
/* The range lo .. hi as a value of the type. If the type cannot represent all of it, the value may have wrapped: only
 * the power of two in its divisor remains. */
TileIndexRange tile_index_in_type(const TileType *type, Wide lo, Wide hi, int64_t multiple, uint64_t because);
/* The range without any assumption about parameters. */
TileIndexRange tile_index_range_always(TileIndices *indices, const TileValue *value);
/* Calls compute(state, v) for `value` and its dependences, in post-order, and only while is_known(state, v) is false;
 * needed(state, v, k) is dependence k, or NULL. Does not recurse, so long chains of ops are fine. */
typedef struct TileIndexOrder {
    bool (*is_known)(void *state, const TileValue *value);
    const TileValue *(*needed)(void *state, const TileValue *value, unsigned k);
    void (*compute)(void *state, const TileValue *value);
    void *state;
} TileIndexOrder;
void tile_index_in_order(TileIndices *indices, const TileIndexOrder *order, const TileValue *value);

/* ---- sums.c ---- */
/* The value as a sum that is exact as an integer, without assumptions about parameters; NULL if it may wrap. */
const TileSum *tile_index_exact_sum(TileIndices *indices, const TileValue *value);

/* ---- difference.c ---- */
/* The range of x - y, if that does not wrap. */
TileIndexRange tile_index_subtraction(TileIndices *indices, const TileOp *op, const TileType *type);

#endif
