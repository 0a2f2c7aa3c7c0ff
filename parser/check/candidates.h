/* Candidates for a call by an ambiguous name: the functions of this name in several imports. Notes list each with the
 * reason why it does not fit. */
#ifndef TILE_PARSER_CHECK_CANDIDATES_H
#define TILE_PARSER_CHECK_CANDIDATES_H

#include "parser/check/check.h"
#include "parser/check/propose.h"

/* Reports a call by an ambiguous name of several imports: it is checked with each of them. `index` are the brackets
 * before its arguments, or NULL. */
void tile_fail_ambiguous(TileChecker *c, const char *name, TileSpan span, const TileExpr *call, const TileExpr *index);

#endif
