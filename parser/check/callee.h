/* Calls, by what is called: a built-in function, a function, a type. */
#ifndef TILE_PARSER_CHECK_CALLEE_H
#define TILE_PARSER_CHECK_CALLEE_H

#include "parser/check/check.h"

TileMeaning tile_check_call(TileChecker *c, const TileExpr *expr);

#endif
