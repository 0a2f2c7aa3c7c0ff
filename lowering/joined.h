/* Programs of a grid, or iterations of a loop, that are computed together or deal their lanes out: which axes of which tiles become
 * longer by that. */
#ifndef TILE_LOWERING_JOINED_H
#define TILE_LOWERING_JOINED_H

#include "base/map.h"
#include "lang/ir/build.h"
#include "lowering/pass.h"

/* What a scalar is to neighbours that are joined. */
typedef enum TileJoinPart {
    TILE_JOIN_SAME,    /* the same for all */
    TILE_JOIN_FIRST,   /* the first place of a range of `size`: each range begins where the one before ends */
    TILE_JOIN_LEFT,    /* falls by `size` from one to the next */
    TILE_JOIN_BOUND,   /* a bound of lanes: minima and maxima of LEFT and of numbers that exclude no lane, or all */
    TILE_JOIN_POINT,   /* rises by 1 from one to the next */
    TILE_JOIN_TEST,    /* is a point between bounds */
    TILE_JOIN_SAFE,    /* a point where its test holds, else another number that all share */
    TILE_JOIN_LIMITED, /* a bound that all share where a test holds; else nothing is inside */
    TILE_JOIN_OTHER    /* nothing of that */
} TileJoinPart;

typedef struct TileJoinedAxis {
    size_t parent; /* of the set of axes that grow together */
    bool grows, stays;
} TileJoinedAxis;

typedef struct TileJoin {
    TilePassContext *context;
    TileOp *around;    /* the grid, or the loop */
    TileValue *number; /* of the program along the axis; a loop's induction variable */
    int64_t size;      /* of one's range of lanes, 1: its number is the range's first place; 0: each has a point, and these become rows of its tiles */
    int64_t scale;     /* of a loop whose induction variable is multiplied by that wherever it is used; 0, 1: it is not */
    bool numbers;      /* tiles of the numbers of lanes along an axis that stays become longer with others */
    TileMap parts;     /* scalars to TileJoinPart */
    TileMap tiles;     /* tiles to the number of their first axis, plus 1 */
    TILE_LIST(TileJoinedAxis) axes;
    const char *why;     /* NULL: they can be joined */
    const TileOp *place; /* of the reason */
} TileJoin;

/* The number of lanes of a program's range, by which its number is multiplied; 0: there is none. */
int64_t tile_range_size(const TileValue *number);
/* Can neighbours be computed together? `size` and `number` are set. */
bool tile_can_join(TileJoin *join);
TileJoinPart tile_joined_part(const TileJoin *join, const TileValue *scalar);
/* Does the axis become longer? */
bool tile_joined_grows(const TileJoin *join, const TileValue *tile, unsigned axis);
/* Is the tile the same whatever its extents are: a constant, or a scalar everywhere? */
bool tile_joined_is_any(const TileJoin *join, const TileValue *tile);
/* Is it a broadcast along the axes that become longer? Then one from elsewhere is built again. */
bool tile_joined_spreads(const TileJoin *join, const TileValue *tile);
/* joined_bounds.c: a number that an op takes excludes no lane of `factor` neighbours where it excludes none of one's. */
void tile_widen_number(const TileJoin *join, int64_t factor, TileOp *op, unsigned operand);
/* Bounds of one's lanes are those of so many neighbours', and first places those of ranges that are so many times as long. */
void tile_widen_joined(TileJoin *join, int64_t factor);
/* joined_rewrite.c: computes `factor` neighbours together, which can be. `programs`: of the grid along the axis, before; NULL for a loop. */
void tile_join_neighbours(TileJoin *join, int64_t factor, TileValue *programs);

/* joined_products.c: the products of a block. */
typedef struct TileProducts {
    TileOp *dots[8];
    unsigned count;
    bool all; /* each of two axes, and no more than that */
} TileProducts;

TileProducts tile_find_products(TileBlock *block);
/* As many neighbours as give each product so many rows and columns, as far as these grow with them: the fewest that have as many at least (`reaches`), or the most
 * that have no more; 1: one has, or nothing grows. Of what can be joined. */
int64_t tile_neighbours_wanted(const TileJoin *join, const TileProducts *products, int64_t rows, int64_t columns, bool reaches);

/* Do loads leave out the lanes of a range that there are not, as far as stores do? Else they have them from a fill, and what is computed of them is
 * computed in vain: twice as long ranges may have twice as many. Of what can be joined. */
bool tile_joined_is_bounded(const TileJoin *join);

typedef struct TileJoinedDepth {
    int64_t (*wanted)(const TilePassContext *context, const TileOp *dot); /* k of an iteration, for a product; 0: such loops stay as they are */
    bool bounded; /* only where loads leave lanes out that there are not */
    bool in_order; /* only loops in which each sum has the same products in the same order afterwards */
} TileJoinedDepth;

/* Of the block's loops of products, as many iterations become one as have so many k. Were there any? */
bool tile_join_iterations(TilePassContext *context, TileBlock *block, const TileJoinedDepth *depth);

#endif
