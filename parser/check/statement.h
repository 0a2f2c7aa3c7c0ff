/* Statements of each kind. */
#ifndef TILE_PARSER_CHECK_STATEMENT_H
#define TILE_PARSER_CHECK_STATEMENT_H

#include "parser/check/check.h"

void tile_check_statement(TileChecker *c, const TileStatement *statement);

#endif
