/* pack, unpack and dot_scaled: numbers of 4 bits in bytes, products of numbers with scales. */
#ifndef TILE_PARSER_CHECK_PACKED_H
#define TILE_PARSER_CHECK_PACKED_H

#include "parser/check/check.h"

TileMeaning tile_check_unpack(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_pack(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_dot_scaled(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);

#endif
