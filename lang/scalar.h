/* Numbers of every scalar type as bits, and back. Bits of a narrow type stand in the low bits of the word. */
#ifndef TILE_LANG_SCALAR_H
#define TILE_LANG_SCALAR_H

#include "lang/types.h"

/* Rounds to nearest, ties to even. Floats: f8 types saturate at their largest finite value, the others overflow
 * to infinity; NaN becomes a quiet NaN. Integers: truncates, saturates, NaN gives 0. Bool: value != 0. */
uint64_t tile_scalar_from_double(TileScalar scalar, double value);
/* Exact for every type but i64 and u64 beyond 2^53. */
double tile_scalar_to_double(TileScalar scalar, uint64_t bits);

#endif
