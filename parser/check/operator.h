/* Binary operators, on the meanings of their operands. */
#ifndef TILE_PARSER_CHECK_OPERATOR_H
#define TILE_PARSER_CHECK_OPERATOR_H

#include "parser/check/check.h"

/* `expr`: for locations, and for the text of operands; without a right side, there is none. */
TileMeaning tile_apply_binary(TileChecker *c, TileTokenKind op, TileMeaning a, TileMeaning b, const TileExpr *expr);

#endif
