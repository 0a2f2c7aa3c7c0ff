/* Loops: `for`, `while` and `static for`. Variables that the body assigns are loop-carried. Their validity is a
 * fixpoint: the body is emitted again until the atoms of its variables no longer grow. */
#ifndef TILE_PARSER_CHECK_LOOP_H
#define TILE_PARSER_CHECK_LOOP_H

#include "parser/check/check.h"

void tile_check_for(TileChecker *c, const TileStatement *statement);
void tile_check_while(TileChecker *c, const TileStatement *statement);
/* Of a bool or a bool tile: TILE_KIND_ANY or _ALL, over its valid elements. */
TileValue *tile_emit_one_bool(TileChecker *c, const TileMeaning *m, TileName kind);

#endif
