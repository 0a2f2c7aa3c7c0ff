/* Ops `statement`: where statements of the text begin, and what the names in scope stand for there. */
#ifndef TILE_PARSER_CHECK_OBSERVED_H
#define TILE_PARSER_CHECK_OBSERVED_H

#include "parser/check/check.h"

/* A statement, or an expression that stands as one, begins here; no op if nobody observes. */
void tile_observe_statement(TileChecker *c, TileSpan span);

#endif
