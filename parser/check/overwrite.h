/* Stores and updates by which programs of a grid certainly overwrite one another's values: for a warning. */
#ifndef TILE_PARSER_CHECK_OVERWRITE_H
#define TILE_PARSER_CHECK_OVERWRITE_H

#include "parser/check/access.h"

/* The op, which was emitted last, is a store to what is accessed. */
void tile_overwrite_note(TileChecker *c, TileOp *op, const TileAccessed *access);
/* Warns of the stores that were noted in the grid that is being checked, which is complete. */
void tile_overwrite_warn(TileChecker *c);

#endif
