/* Tiles put together and taken apart: join, split, cat. What an axis that they touch lacks would end up among other
 * elements, so operands have to be valid along it. */
#ifndef TILE_PARSER_CHECK_JOIN_H
#define TILE_PARSER_CHECK_JOIN_H

#include "parser/check/check.h"

TileMeaning tile_check_join(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_split(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_cat(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);

#endif
