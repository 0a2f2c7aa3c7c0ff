/* einsum: a product of two tiles whose axes have letters. */
#ifndef TILE_PARSER_CHECK_EINSUM_H
#define TILE_PARSER_CHECK_EINSUM_H

#include "parser/check/check.h"

TileMeaning tile_check_einsum(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);

#endif
