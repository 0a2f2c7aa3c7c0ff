/* Random numbers: rand, randn, randint and randperm. */
#ifndef TILE_PARSER_CHECK_DRAW_H
#define TILE_PARSER_CHECK_DRAW_H

#include "parser/check/check.h"

TileMeaning tile_check_rand(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_randn(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_randint(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_randperm(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);

#endif
