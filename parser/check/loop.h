/* Loops: `for`, `while` and `static for`. What the body assigns is carried from iteration to iteration; a body is
 * emitted until what its variables may lack no longer grows. */
#ifndef TILE_PARSER_CHECK_LOOP_H
#define TILE_PARSER_CHECK_LOOP_H

#include "parser/check/check.h"

void tile_check_for(TileChecker *c, const TileStatement *statement);
void tile_check_while(TileChecker *c, const TileStatement *statement);
/* Of a bool or a bool tile: TILE_KIND_ANY, or _ALL, of its valid elements. */
TileValue *tile_emit_one_bool(TileChecker *c, const TileMeaning *m, TileName kind);

#endif
