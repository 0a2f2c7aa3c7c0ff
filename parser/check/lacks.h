/* What a proof that an index is inside of its dimension lacked, for messages. */
#ifndef TILE_PARSER_CHECK_LACKS_H
#define TILE_PARSER_CHECK_LACKS_H

#include "parser/check/check.h"

/* Notes what is known of the indices of an atom with a dimension, where it is made. */
void tile_keep_known(TileChecker *c, TileAtom *atom, const TileSum *lowest, const TileSum *highest);
/* Adds a note: "needs `i < N`; known: `i >= 0`". */
void tile_note_lacks(TileChecker *c, TileDiagnostic *d, const TileAtom *atom);

#endif
