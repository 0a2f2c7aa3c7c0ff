/* Sequences of statements, and `if`, whose sides are sequences. After a statement that may leave the sequence early,
 * flags guard the rest: it is executed if none is set. */
#ifndef TILE_PARSER_CHECK_SEQUENCE_H
#define TILE_PARSER_CHECK_SEQUENCE_H

#include "parser/check/check.h"

void tile_check_sequence(TileChecker *c, const TileSequence *sequence);
TileMeaning tile_check_sequence_value(TileChecker *c, const TileSequence *sequence);
TileMeaning tile_check_if(TileChecker *c, const TileExpr *expr, bool want_value);
/* An expression that stands as a statement. */
void tile_check_expr_statement(TileChecker *c, const TileExpr *expr);

#endif
