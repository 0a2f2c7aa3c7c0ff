/* Expressions that must have a certain kind: a value, an integer, a constant, an extent, a condition. */
#ifndef TILE_PARSER_CHECK_OPERAND_H
#define TILE_PARSER_CHECK_OPERAND_H

#include "parser/check/check.h"

/* A scalar or tile; literals stay untyped. */
TileMeaning tile_check_value(TileChecker *c, const TileExpr *expr);
/* The same, or a tuple of such: the value of a branch. */
TileMeaning tile_check_part(TileChecker *c, const TileExpr *expr);
/* The meaning as a scalar or tile; reports others. */
TileMeaning tile_value_of(TileChecker *c, TileMeaning m, const TileExpr *expr);
/* An i64 scalar expression as a sum, NULL if an error was reported. `what` describes it in messages. */
const TileSum *tile_check_integer(TileChecker *c, const TileExpr *expr, const char *what);
const TileSum *tile_integer_of(TileChecker *c, TileMeaning m, TileSpan span, const char *what, bool must_be_valid);
/* The same, as a compile-time constant. */
const TileSum *tile_check_constant(TileChecker *c, const TileExpr *expr, const char *what, int64_t *value);
/* A positive compile-time extent. */
const TileSum *tile_check_extent(TileChecker *c, const TileExpr *expr);
/* A scalar condition: bool, proven valid. */
TileMeaning tile_check_condition(TileChecker *c, const TileExpr *expr);
TileMeaning tile_fail_tile_condition(TileChecker *c, const TileMeaning *m, TileSpan span);

#endif
