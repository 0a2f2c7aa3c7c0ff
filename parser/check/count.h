/* histogram and searchsorted. */
#ifndef TILE_PARSER_CHECK_COUNT_H
#define TILE_PARSER_CHECK_COUNT_H

#include "parser/check/check.h"

TileMeaning tile_check_histogram(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_searchsorted(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);

#endif
