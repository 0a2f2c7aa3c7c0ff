/* Which `out` tensors a grid certainly stores whole: later grids may read them. */
#ifndef TILE_PARSER_CHECK_COVERED_H
#define TILE_PARSER_CHECK_COVERED_H

#include "parser/check/access.h"

/* The name that a grid or loop has just bound takes all values from 0 up to, without, `extent`; NULL if not from 0, or not
 * all. */
void tile_cover_add(TileChecker *c, const TileOp *op, const char *name, const TileSum *extent);
/* For a store of all lanes that exist. */
void tile_cover_store(TileChecker *c, const TileAccessed *access);
/* Has an earlier grid stored each element? */
bool tile_cover_is_whole(const TileChecker *c, const TileTensor *tensor);

#endif
