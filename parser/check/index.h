/* Indexing: loads and stores of tensors, new axes of tiles. */
#ifndef TILE_PARSER_CHECK_INDEX_H
#define TILE_PARSER_CHECK_INDEX_H

#include "parser/check/check.h"

TileMeaning tile_check_index(TileChecker *c, const TileExpr *expr);
/* `loaded`: the validity of the target that `+=` has just loaded: the store has the same, although its index tiles are
 * other values. */
void tile_check_store(TileChecker *c, const TileExpr *target, TileMeaning value, const TileExpr *value_expr,
                      const TileValidity *loaded, bool skip);
TileMeaning tile_check_load(TileChecker *c, const TileExpr *expr, const TileMeaning *tensor);
/* A tensor of known dimensions as a tile, and the inverse. */
TileMeaning tile_load_whole(TileChecker *c, const TileMeaning *tensor, TileSpan span);

#endif
