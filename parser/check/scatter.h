/* Gathers and scatters by flat index tiles, and atomics. */
#ifndef TILE_PARSER_CHECK_SCATTER_H
#define TILE_PARSER_CHECK_SCATTER_H

#include "parser/check/check.h"

TileMeaning tile_check_gather(TileChecker *c, const TileExpr *call);
/* The same of a tensor that is indexed in a function that lifts: each index is a number, and so a tile of the shape that it lifts to. */
TileMeaning tile_gather_lifted(TileChecker *c, const TileExpr *expr, const TileTensor *tensor, const TileMeaning *entries);
void tile_check_scatter(TileChecker *c, const TileExpr *call);
void tile_store_whole(TileChecker *c, TileTensor *tensor, TileMeaning value, const TileExpr *expr);
TileMeaning tile_check_atomic(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);

#endif
