/* Expressions of each kind. */
#ifndef TILE_PARSER_CHECK_EXPRESSION_H
#define TILE_PARSER_CHECK_EXPRESSION_H

#include "parser/check/check.h"

TileMeaning tile_check_expr(TileChecker *c, const TileExpr *expr);

#endif
