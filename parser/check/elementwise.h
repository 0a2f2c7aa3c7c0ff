/* Elementwise built-in functions, and those that create a tile. */
#ifndef TILE_PARSER_CHECK_ELEMENTWISE_H
#define TILE_PARSER_CHECK_ELEMENTWISE_H

#include "parser/check/check.h"

TileMeaning tile_check_elementwise(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_extremum(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_clamp(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_cdiv(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_ldexp(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_frexp(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_where(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_keep(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_zeros(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_full(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_bitcast(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
/* The extents in brackets behind the function's name. False if an error was reported. */
bool tile_check_extents(TileChecker *c, const TileExpr *call, TileMeaning *shape);
TileMeaning tile_check_approximate(TileChecker *c, const TileExpr *call);

#endif
