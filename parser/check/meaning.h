/* Meanings that need no op: sums, constants and literals. */
#ifndef TILE_PARSER_CHECK_MEANING_H
#define TILE_PARSER_CHECK_MEANING_H

#include "parser/check/check.h"

TileMeaning tile_sum_meaning(const TileSum *sum);
TileMeaning tile_bits_meaning(TileScalar scalar, uint64_t bits);
TileMeaning tile_bool_meaning(bool truth);
TileMeaning tile_integer_meaning(__int128 integer);
TileMeaning tile_choice_meaning(TileChecker *c, TileMeaning condition, TileMeaning a, TileMeaning b);
static inline bool tile_is_literal(const TileMeaning *m) {
    return m->kind == TILE_MEANING_INTEGER || m->kind == TILE_MEANING_NUMBER || m->kind == TILE_MEANING_CHOICE;
}
/* Is it an integer, whatever is chosen? */
bool tile_literal_is_integer(const TileMeaning *m);
/* The number of possible values. */
unsigned tile_literal_count(const TileMeaning *m);
/* The bits of a compile-time constant of the type. */
bool tile_constant_bits(TileChecker *c, const TileMeaning *m, TileScalar scalar, uint64_t *bits);

#endif
