/* The language's transcendental functions on scalars: the same programs that lowering/math.c compiles, so that constant
 * folding, executor and machine code agree bit for bit (docs/math.md states their accuracy). */
#ifndef TILE_LANG_SCALAR_MATH_H
#define TILE_LANG_SCALAR_MATH_H

#include "lang/scalar/eval.h"

/* Is this an operation of math.def? */
bool tile_math_has(TileEvalOp op);

/* The value of such an operation; y is read only by those of two operands. */
float tile_math_f32(TileEvalOp op, bool approx, float x, float y);
/* In f64 the approximate version is the exact program. */
double tile_math_f64(TileEvalOp op, double x, double y);

/* The value of `rand`: see random.def. */
float tile_math_rand(uint64_t seed, uint64_t index);
uint32_t tile_math_rand_word(uint64_t seed, uint64_t index);

#endif
