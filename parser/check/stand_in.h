/* What stands in for values that nobody has chosen. A file is checked before anything is launched: static dimensions,
 * constants and the arguments of functions have some value then, and will have another. What they decide is open:
 *
 *   sums       by their symbols, their operands and bounds (TileSymbol.open);
 *   scalars    by the names that their expression reads (TileMeaning.open), conditions among them;
 *   places     that are reached by a condition that is open (tile_doubt).
 *
 * An error about something open is taken back: there may be none for what will be chosen, and if there is one, the
 * check of that instance reports it. What has no such part is wrong whatever is chosen. */
#ifndef TILE_PARSER_CHECK_STAND_IN_H
#define TILE_PARSER_CHECK_STAND_IN_H

#include "parser/check/check.h"

/* The value comes from what is open so. A number is then one that has no literal's rights: extents made of it agree
 * with no other. */
void tile_open_meaning(TileChecker *c, TileMeaning *m, unsigned open);
unsigned tile_meaning_open(const TileMeaning *m);
/* What the next message is about. */
void tile_about_sum(TileChecker *c, const TileSum *sum);
/* That it is no constant. */
void tile_about_unknown(TileChecker *c, const TileSum *sum);
void tile_about_constant(TileChecker *c, const TileMeaning *m);
void tile_about_atom(TileChecker *c, const TileAtom *atom);
bool tile_is_open_atom(const TileAtom *atom);
void tile_about_shapes(TileChecker *c, const TileMeaning *a, const TileMeaning *b);
/* The entry that a message about this set is best about: one that holds whatever is chosen. NULL for an empty set. */
const TileValidEntry *tile_settled_entry(const TileValidity *valid);
/* TileOpen of the conditions that decided that this place is reached. */
unsigned tile_doubt(const TileChecker *c);
/* Takes an error back that might not be there for what will be chosen. */
bool tile_leave_open(TileChecker *c, const TileDiagnostic *d);

#endif
