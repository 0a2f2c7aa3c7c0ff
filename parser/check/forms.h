/* Overloads of built-in functions, for messages about a call that has none of their forms. */
#ifndef TILE_PARSER_CHECK_FORMS_H
#define TILE_PARSER_CHECK_FORMS_H

#include "parser/check/check.h"
#include "parser/check/propose.h"

/* Adds notes with the overloads of a built-in function and, if there are several, why each does not match. */
void tile_note_forms(TileChecker *c, TileDiagnostic *d, const TileExpr *call, const char *name);
/* Tries the names of the overloads' arguments. */
void tile_nearest_form(TileChecker *c, TileNearest *nearest, const char *name);

#endif
