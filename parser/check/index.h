/* Indexing: loads and stores of tensors, axes added to tiles. */
#ifndef TILE_PARSER_CHECK_INDEX_H
#define TILE_PARSER_CHECK_INDEX_H

#include "parser/check/check.h"

TileMeaning tile_check_index(TileChecker *c, const TileExpr *expr);
/* `loaded` is how far the target was valid where `+=` has just loaded it: the store is valid just so, though its index
 * tiles are values of their own. */
void tile_check_store(TileChecker *c, const TileExpr *target, TileMeaning value, const TileExpr *value_expr,
                      const TileValidity *loaded, bool skip);
TileMeaning tile_check_load(TileChecker *c, const TileExpr *expr, const TileMeaning *tensor);
/* A tensor of known dimensions as a tile, and the other way. */
TileMeaning tile_load_whole(TileChecker *c, const TileMeaning *tensor, TileSpan span);

#endif
