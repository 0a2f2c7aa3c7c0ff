/* sort, argsort and topk. */
#ifndef TILE_PARSER_CHECK_SORT_H
#define TILE_PARSER_CHECK_SORT_H

#include "parser/check/check.h"

TileMeaning tile_check_sort(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_argsort(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
TileMeaning tile_check_topk(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);

#endif
