/* Stand-ins for values that are not chosen yet. A file is checked before anything is launched: static dimensions,
 * constants and the arguments of functions have some value in the check, and another one later. What depends on them is
 * open:
 *
 *  sums       by their symbols, their operands and bounds (TileSymbol.open);
 *  scalars    by the names that their expression reads (TileMeaning.open), conditions among them;
 *  code       that is reached by a condition that is open (tile_doubt).
 *
 * An error about something open is withdrawn: other values may have no error, and if they do, the check of that
 * instance reports it. An error that depends on nothing open is an error for all values. */
#ifndef TILE_PARSER_CHECK_STAND_IN_H
#define TILE_PARSER_CHECK_STAND_IN_H

#include "parser/check/check.h"

/* Marks the value as computed from operands that are open. A literal number becomes a symbol: extents that contain it
 * agree with no others. */
void tile_open_meaning(TileChecker *c, TileMeaning *m, unsigned open);
unsigned tile_meaning_open(const TileMeaning *m);
/* Sets the subject of the next message. */
void tile_about_sum(TileChecker *c, const TileSum *sum);
/* The message is that it is not a constant. */
void tile_about_unknown(TileChecker *c, const TileSum *sum);
void tile_about_constant(TileChecker *c, const TileMeaning *m);
void tile_about_atom(TileChecker *c, const TileAtom *atom);
bool tile_is_open_atom(const TileAtom *atom);
void tile_about_shapes(TileChecker *c, const TileMeaning *a, const TileMeaning *b);
/* The message is that two extents differ. */
void tile_about_extents(TileChecker *c, const TileSum *a, const TileSum *b);
/* The atom that a message about this set should name: preferably one that does not depend on what is open. NULL for an
 * empty set. */
const TileValidEntry *tile_settled_entry(const TileValidity *valid);
/* The TileOpen of the conditions under which this code is reached. */
unsigned tile_doubt(const TileChecker *c);
/* Withdraws an error that other values may not have. */
bool tile_leave_open(TileChecker *c, const TileDiagnostic *d);

#endif
