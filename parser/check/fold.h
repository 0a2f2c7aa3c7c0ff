/* reduce and scan with a function, and the scans that have names.
 *
 * The function is checked, and emitted, in the region of the op, on scalars of its own. Nothing from outside is seen
 * there, and there is no control flow: an `if` computes both sides, as in a function that lifts. */
#ifndef TILE_PARSER_CHECK_FOLD_H
#define TILE_PARSER_CHECK_FOLD_H

#include "parser/check/check.h"

TileMeaning tile_check_cumulative(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_fold(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);

#endif
