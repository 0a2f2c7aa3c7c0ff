/* What is known at compile time, for messages: the values of the names in a condition, and the choices that made the
 * instance of a kernel. */
#ifndef TILE_PARSER_CHECK_VALUES_H
#define TILE_PARSER_CHECK_VALUES_H

#include "parser/check/check.h"

/* the names in a condition whose values are known, "D = 7, G = 4", or ""; and a note that says so. */
const char *tile_known_values(TileChecker *c, const TileExpr *expr);
/* Does the condition say something about the text, and not about the stand-ins of a generic check? */
bool tile_is_chosen(TileChecker *c, const TileExpr *expr);
void tile_note_values(TileChecker *c, TileDiagnostic *d, const TileExpr *expr);
/* A note that says which instance of the kernel this is, where it is one of several. */
void tile_note_instance(TileChecker *c, TileDiagnostic *d, const TileItem *kernel);

#endif
