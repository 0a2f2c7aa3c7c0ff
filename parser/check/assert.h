/* Assertions. One that a program checks comes with what a failure has to show: the values on both sides of a comparison
 * that is false, where tiles are compared those of the first element for which it is, and the values that are listed.
 */
#ifndef TILE_PARSER_CHECK_ASSERT_H
#define TILE_PARSER_CHECK_ASSERT_H

#include "parser/check/check.h"

void tile_check_assert(TileChecker *c, const TileStatement *statement);

#endif
