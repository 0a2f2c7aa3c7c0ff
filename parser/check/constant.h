/* Compile-time evaluation: what was emitted for an expression of constants, by the one definition of its meaning. */
#ifndef TILE_PARSER_CHECK_CONSTANT_H
#define TILE_PARSER_CHECK_CONSTANT_H

#include "parser/check/check.h"

/* A scalar that is computed from constants alone becomes one. False where it is none. */
bool tile_make_constant(TileChecker *c, TileMeaning *m);
/* The bits of a scalar of the type that is known at compile time. */
bool tile_constant_bits(TileChecker *c, const TileMeaning *m, TileScalar scalar, uint64_t *bits);

#endif
