/* Literals: numbers without a type of their own, and choices between them. `where(c, 1, 0)` and `if c { 1 } else { 0 }`
 * are literals too: the context says what type they have, and only then are they made. */
#ifndef TILE_PARSER_CHECK_LITERAL_H
#define TILE_PARSER_CHECK_LITERAL_H

#include "parser/check/check.h"

/* A literal becomes a value of the scalar type; others pass. */
TileMeaning tile_as_value(TileChecker *c, TileMeaning m, TileSpan span);
TileMeaning tile_literal_as(TileChecker *c, const TileMeaning *m, TileScalar scalar, TileSpan span);
static inline bool tile_is_literal(const TileMeaning *m) {
    return m->kind == TILE_MEANING_INTEGER || m->kind == TILE_MEANING_NUMBER || m->kind == TILE_MEANING_CHOICE;
}
/* Is it whole, whatever is chosen? */
bool tile_literal_is_integer(const TileMeaning *m);
/* How many numbers may come out. */
unsigned tile_literal_count(const TileMeaning *m);
TileMeaning tile_choice_meaning(TileChecker *c, TileMeaning condition, TileMeaning a, TileMeaning b);
/* Rounds and saturates as a conversion does: nothing has to fit. */
TileMeaning tile_convert_literal(TileChecker *c, const TileMeaning *m, TileScalar to, TileSpan span);

#endif
