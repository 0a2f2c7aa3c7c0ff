/* Internals of cpu-interchange, shared by its files:
 *   interchange_points.c  which loops there are around the points of a tile, before and behind them
 *   interchange.c         the pass: the loops in their new order */
#ifndef TILE_CPU_INTERCHANGE_H
#define TILE_CPU_INTERCHANGE_H

#include "lang/ir/ir.h"

enum {
    INTERCHANGE_FORS = 6,
    INTERCHANGE_LOOPS = 4,
    INTERCHANGE_POINTS = 4 /* buffers that are updated */
};

/* `fors` around `loops`, both from the outermost one on. */
typedef struct Chain {
    TileOp *fors[INTERCHANGE_FORS], *loops[INTERCHANGE_LOOPS];
    unsigned for_count, loop_count;
    TileOp *load[INTERCHANGE_POINTS], *store[INTERCHANGE_POINTS];
    unsigned points;
    TileValue *start[INTERCHANGE_POINTS]; /* what all points begin with; NULL: what is in the buffer */
    TileOp *fill[INTERCHANGE_POINTS];     /* the loops that store that */
    TileOp *after[INTERCHANGE_LOOPS];     /* loops behind these over the same points, the only ones that read them; after[0] is NULL: none are */
} Chain;

/* Finds the loops of which this is the outermost one, and their points; false: they are others. */
bool interchange_find(TileOp *op, Chain *chain);
/* Finds what the points begin with, and the loops behind. */
void interchange_find_ends(Chain *chain);
/* The loop whose index it is; NULL: none of the chain. */
TileOp *interchange_loop_of(const Chain *chain, const TileValue *index);
/* The point that the op loads, + 1; 0: it loads none. */
unsigned interchange_point_of(const Chain *chain, const TileOp *op);

#endif
