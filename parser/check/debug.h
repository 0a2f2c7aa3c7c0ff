/* Additional checks of debug builds: integer division by zero and shifts by at least the width. They become assertions
 * here, where validity of elements is known; later passes see only these assertions. */
#ifndef TILE_PARSER_CHECK_DEBUG_H
#define TILE_PARSER_CHECK_DEBUG_H

#include "parser/check/check.h"

/* To be called before `x op y` is emitted. */
void tile_check_traps(TileChecker *c, TileTokenKind op, const TileMeaning *x, const TileMeaning *y,
                      const TileExpr *expr);

#endif
