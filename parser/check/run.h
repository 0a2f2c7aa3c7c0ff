/* `run kernel(name = value, ..)` in a test: the instance, its tensors, and the shapes of its results. */
#ifndef TILE_PARSER_CHECK_RUN_H
#define TILE_PARSER_CHECK_RUN_H

#include "parser/check/check.h"

TileMeaning tile_check_run(TileChecker *c, const TileExpr *expr);

#endif
