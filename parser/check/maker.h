/* Calls that create a tensor of a test, `rand(f32, 4, 8)`. */
#ifndef TILE_PARSER_CHECK_MAKER_H
#define TILE_PARSER_CHECK_MAKER_H

#include "parser/check/check.h"

bool tile_is_maker(const TileChecker *c, const TileExpr *call);
TileMeaning tile_check_maker(TileChecker *c, const TileExpr *call);
/* `randn[f32](4, 8)` in a test: the call that was meant, `randn(f32, 4, 8)`; NULL if it is none. */
const char *tile_maker_meant(TileChecker *c, const TileExpr *call);

#endif
