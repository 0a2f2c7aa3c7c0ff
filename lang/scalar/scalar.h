/* Numbers and their bits in every scalar type of the language.
 *
 * The bits of a scalar are the low bits of a uint64_t; the others are zero. Conversions to floats round once, to
 * nearest, ties to even; f8 types saturate to their greatest finite number (infinities too) and keep NaN. A float is
 * converted to an integer by truncation with saturation, NaN to 0; an integer to a narrower one by wrapping. To bool: x
 * != 0. */
#ifndef TILE_LANG_SCALAR_SCALAR_H
#define TILE_LANG_SCALAR_SCALAR_H

#include "base/string.h"
#include "lang/scalar/types.h"

/* A mask of the type's bits. */
static inline uint64_t tile_scalar_mask(TileScalar scalar) { return ~(uint64_t)0 >> (64 - tile_scalar_bits(scalar)); }

uint64_t tile_scalar_from_double(TileScalar scalar, double value);
uint64_t tile_scalar_from_float(TileScalar scalar, float value);
uint64_t tile_scalar_from_signed(TileScalar scalar, int64_t value);
uint64_t tile_scalar_from_unsigned(TileScalar scalar, uint64_t value);

/* Exact for all types but i64 and u64, which are rounded. */
double tile_scalar_to_double(TileScalar scalar, uint64_t bits);
/* Exact for floats of up to 32 bits. */
float tile_scalar_to_float(TileScalar scalar, uint64_t bits);
/* Integers and bools, extended to 64 bits by the type's signedness. */
int64_t tile_scalar_to_integer(TileScalar scalar, uint64_t bits);

/* The meaning of `convert`, for every pair of types. */
uint64_t tile_scalar_convert(TileScalar from, TileScalar to, uint64_t bits);

/* tf32, an f32 with 10 bits of mantissa: to nearest, ties to even or away from zero. */
float tile_scalar_round_tf32(float value);
float tile_scalar_round_tf32_away(float value);

bool tile_scalar_is_nan(TileScalar scalar, uint64_t bits);
/* Are the bits equal, or both NaN? The equality of tests and of constant folding. */
bool tile_scalar_same(TileScalar scalar, uint64_t a, uint64_t b);

/* Identity elements of reductions: +0, 1, the least and the greatest value (an infinity if there is one). */
uint64_t tile_scalar_least(TileScalar scalar);
uint64_t tile_scalar_greatest(TileScalar scalar);

/* A decimal number, converted as by strtod in the "C" locale, whatever the host's locale. */
double tile_read_number(const char *text, char **end);
/* The shortest text that reads back as these bits, integers with all digits: true, -7, 100.0, 0.1, 1e-30, inf, nan,
 * bits(0x7fc1). */
void tile_scalar_print(TileText *text, TileScalar scalar, uint64_t bits);
/* Reads what tile_scalar_print writes, and any decimal number, rounded once to double and once to the type. False if
 * the text is not a number, or an integer that the type cannot represent. */
bool tile_scalar_read(TileScalar scalar, const char *text, size_t length, uint64_t *bits);

#endif
