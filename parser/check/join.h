/* join, split, cat, permute and reshape. Operands have to be valid along the axes that change: invalid elements would
 * move to other indices. */
#ifndef TILE_PARSER_CHECK_JOIN_H
#define TILE_PARSER_CHECK_JOIN_H

#include "parser/check/check.h"

TileMeaning tile_check_join(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_split(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_permute(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_reshape(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_cat(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);

#endif
