/* The language's transcendental functions on scalars: the very programs that cpu/math.c compiles, so that
 * constant folding, executor and machine code agree bit for bit (docs/math.md states their accuracy). */
#ifndef TILE_LANG_MATH_H
#define TILE_LANG_MATH_H

#include "lang/ir.h"

/* Is this one of the operations of math.def? */
bool tile_math_has(TileOpId id);

/* The value of such an operation; y matters only to those of two operands. */
float tile_math_f32(TileOpId id, bool approx, float x, float y);
/* In f64 the short forms are the long ones. */
double tile_math_f64(TileOpId id, double x, double y);

/* The number of `rand`: see random.def. */
float tile_math_rand(uint64_t seed, uint64_t index);

#endif
