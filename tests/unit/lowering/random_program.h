/* Random functions, for tests that compare a pass's result with its input. */
#ifndef TILE_TESTS_RANDOM_PROGRAM_H
#define TILE_TESTS_RANDOM_PROGRAM_H

#include "lang/ir/build.h"

uint64_t random_next(uint64_t *state);
/* Special and random bits of the type. */
uint64_t random_bits(TileScalar scalar, uint64_t *state);
/* A device function of scalar parameters that returns a few values: arithmetic on scalars and tiles, shapes, fills,
 * reductions, loops and branches. */
TileFunc *random_function(TileModule *module, uint64_t *state);
/* A kernel over x: f32[M, N] that reads shifted ranges of it, sums and stores: y: f32[M, N], s: f32[M]. */
TileFunc *random_kernel(TileModule *module, uint64_t *state);

#endif
