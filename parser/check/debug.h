/* What debug builds stop at beside the assertions of the text: integer division by zero and shifts past the width. Both
 * become assertions here, where it is known which elements are valid; what follows sees nothing but those. */
#ifndef TILE_PARSER_CHECK_DEBUG_H
#define TILE_PARSER_CHECK_DEBUG_H

#include "parser/check/check.h"

/* `x op y` is about to be emitted. */
void tile_check_traps(TileChecker *c, TileTokenKind op, const TileMeaning *x, const TileMeaning *y,
                      const TileExpr *expr);

#endif
