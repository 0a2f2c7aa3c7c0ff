/* Assertions. One that a program checks comes with the values that its message shows: both sides of a comparison that
 * is false (of tiles, of the first element for which it is false), and the listed values. In a test these become
 * tensors of its plan. */
#ifndef TILE_PARSER_CHECK_ASSERT_H
#define TILE_PARSER_CHECK_ASSERT_H

#include "parser/check/check.h"

void tile_check_assert(TileChecker *c, const TileStatement *statement);

#endif
