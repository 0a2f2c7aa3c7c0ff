/* Expressions of each kind. */
#ifndef TILE_PARSER_CHECK_EXPRESSION_H
#define TILE_PARSER_CHECK_EXPRESSION_H

#include "parser/check/check.h"

TileMeaning tile_check_expr(TileChecker *c, const TileExpr *expr);
/* A scalar or tile; literals stay untyped. */
TileMeaning tile_check_value(TileChecker *c, const TileExpr *expr);
/* The same, or a tuple of such: the value of a branch. */
TileMeaning tile_check_part(TileChecker *c, const TileExpr *expr);
TileMeaning tile_apply_binary(TileChecker *c, TileTokenKind op, TileMeaning a, TileMeaning b, const TileExpr *expr);
TileMeaning tile_check_binary(TileChecker *c, const TileExpr *expr);
TileMeaning tile_check_unary(TileChecker *c, const TileExpr *expr);
TileMeaning tile_check_else(TileChecker *c, const TileExpr *expr);
TileMeaning tile_apply_else(TileChecker *c, TileMeaning v, TileMeaning fill, const TileExpr *expr);

#endif
