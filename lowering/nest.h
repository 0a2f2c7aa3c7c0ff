/* Loops of which each goes through the next one and nothing else. */
#ifndef TILE_LOWERING_NEST_H
#define TILE_LOWERING_NEST_H

#include "lang/ir/build.h"

enum { TILE_MOST_NESTED = 4 };

typedef struct TileNest {
    TileOp *loops[TILE_MOST_NESTED]; /* the outermost first */
    TileValue *trips[TILE_MOST_NESTED];
    unsigned count;
} TileNest;

/* The loop that the outer one goes through, with all that it carries and nothing but pure ops beside it, without tiles; NULL: there is
 * none. */
TileOp *tile_nest_next(const TileOp *outer);
/* Replaces the nest by one loop through all iterations, in their order. `bounds` builds the loop's bounds, where those of all loops
 * are known. Returns the loop, with the attributes of the outermost. */
TileOp *tile_nest_join(TileNest *nest, TileModule *module, TileArena *scratch, TileBuilder *bounds);

/* Its two steps, for nests that are joined in another way. */
/* Replaces the loops' numbers by the digits of the joined loop's. `divisors`: trip counts, 1 at least. Returns the outermost's number,
 * from 0 on. */
TileValue *tile_nest_build_indices(TileBuilder *b, const TileNest *nest, TileValue *const *divisors, TileValue *number);
/* Moves the ops of all bodies into one, in their order. */
void tile_nest_move_bodies(const TileNest *nest, TileBlock *body);

#endif
