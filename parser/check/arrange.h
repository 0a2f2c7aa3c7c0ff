/* broadcast, shift and valid. */
#ifndef TILE_PARSER_CHECK_ARRANGE_H
#define TILE_PARSER_CHECK_ARRANGE_H

#include "parser/check/check.h"

TileMeaning tile_check_broadcast(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_shift(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_valid(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);

#endif
