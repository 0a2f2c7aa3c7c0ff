/* Calls that create a tensor of a test, `rand(f32, 4, 8)`. */
#ifndef TILE_PARSER_CHECK_MAKER_H
#define TILE_PARSER_CHECK_MAKER_H

#include "parser/check/check.h"

bool tile_is_maker(const TileChecker *c, const TileExpr *call);
TileMeaning tile_check_maker(TileChecker *c, const TileExpr *call);

#endif
