/* pack, unpack and dot_scaled: numbers of 4 bits in bytes, products of numbers with scales. */
#ifndef TILE_PARSER_CHECK_PACKED_H
#define TILE_PARSER_CHECK_PACKED_H

#include "parser/check/check.h"

TileMeaning tile_check_unpack(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_pack(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_dot_scaled(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);

/* Values of the IR. The halves of each byte along the last axis, the lower first; the lower halves alone; and back, where
 * of integers 4 bits are kept, and floats are rounded. */
TileValue *tile_unpack_value(TileChecker *c, TileValue *bytes, TileFormat format);
TileValue *tile_unpack_low(TileChecker *c, TileValue *bytes, TileFormat format);
TileValue *tile_pack_value(TileChecker *c, TileValue *x, TileFormat format);
/* Numbers of the format e8m0, held by bytes, as f32. */
TileValue *tile_power_value(TileChecker *c, TileValue *exponent);

#endif
