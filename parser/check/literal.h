/* Literals: untyped numbers, and choices between them. `where(c, 1, 0)` and `if c { 1 } else { 0 }` are literals, too:
 * they are emitted when the context determines their type. */
#ifndef TILE_PARSER_CHECK_LITERAL_H
#define TILE_PARSER_CHECK_LITERAL_H

#include "parser/check/check.h"

/* Converts a literal to a value of the scalar type; other meanings are unchanged. */
TileMeaning tile_as_value(TileChecker *c, TileMeaning m, TileSpan span);
TileMeaning tile_literal_as(TileChecker *c, const TileMeaning *m, TileScalar scalar, TileSpan span);
/* Rounds and saturates like a conversion; no range check. */
TileMeaning tile_convert_literal(TileChecker *c, const TileMeaning *m, TileScalar to, TileSpan span);

#endif
