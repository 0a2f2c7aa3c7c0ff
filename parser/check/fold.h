/* reduce and scan with a function, and the named scans.
 *
 * The function is checked and emitted in the region of the op, on the region's scalar arguments. Values from outside
 * are not visible there, and there is no control flow: an `if` computes both sides, as in a lifted function. */
#ifndef TILE_PARSER_CHECK_FOLD_H
#define TILE_PARSER_CHECK_FOLD_H

#include "parser/check/check.h"

TileMeaning tile_check_cumulative(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_fold(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);

#endif
