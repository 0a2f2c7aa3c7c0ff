/* Compile-time evaluation of the ops that were emitted for a constant expression, with tile_eval. */
#ifndef TILE_PARSER_CHECK_CONSTANT_H
#define TILE_PARSER_CHECK_CONSTANT_H

#include "parser/check/check.h"

/* Replaces a scalar that is computed from constants only by a constant. False if it is not. */
bool tile_make_constant(TileChecker *c, TileMeaning *m);

/* A value outside of grids: reports one that comes of a loop that is not evaluated at compile time. */
bool tile_check_host_value(TileChecker *c, TileMeaning *m, TileSpan span);

#endif
