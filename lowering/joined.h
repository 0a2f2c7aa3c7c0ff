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
    int64_t size;      /* of one's range of lanes; 0: each has a point, and these become rows of its tiles */
    int64_t scale;     /* of a loop whose induction variable is multiplied by that wherever it is used; 0, 1: it is not */
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

#endif
