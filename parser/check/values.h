/* Values that are known at compile time, of the names in a condition; for messages. */
#ifndef TILE_PARSER_CHECK_VALUES_H
#define TILE_PARSER_CHECK_VALUES_H

#include "parser/check/check.h"

/* The names in a condition with known values, "D = 7, G = 4", or ""; and a note with them. */
const char *tile_known_values(TileChecker *c, const TileExpr *expr);
/* Does the condition depend on the text, and not on the stand-ins of a generic check? */
bool tile_is_chosen(TileChecker *c, const TileExpr *expr);
void tile_note_values(TileChecker *c, TileDiagnostic *d, const TileExpr *expr);

#endif
