/* Which lanes of tiles depend on one another: axes of values that have the same lanes, one by one, form a line. */
#ifndef TILE_CPU_LINES_H
#define TILE_CPU_LINES_H

#include "lang/ir/ir.h"

/* A line's number; two are the same line only until the next tile_lines_add. */
typedef uint32_t TileLine;

typedef struct TileLinesAxis {
    uint32_t parent;
    bool mixed, product;
} TileLinesAxis;

typedef struct TileLines {
    TileArena *scratch;
    uint32_t *bases; /* by the number of a value: 1 more than its first axis; 0: it has none yet */
    TILE_LIST(TileLinesAxis) axes;
} TileLines;

/* Numbers the function's values. */
void tile_lines_init(TileLines *lines, TileFunc *func, TileArena *scratch);
/* Adds an op of tile form, not those in its regions. False: it has tiles, and what it does with their lanes is not
 * known here. */
bool tile_lines_add(TileLines *lines, const TileOp *op);

/* The line of an axis of a tile. */
TileLine tile_lines_of(TileLines *lines, const TileValue *value, unsigned axis);
/* Does a lane of the line depend on another one, or is an address in memory computed from it? */
bool tile_lines_is_mixed(TileLines *lines, TileLine line);
/* Are they rows or columns of a product? */
bool tile_lines_is_product(TileLines *lines, TileLine line);

#endif
