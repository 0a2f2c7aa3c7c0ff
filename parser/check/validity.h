/* Atoms of validity: where a value must not be used, and ops that compute that. */
#ifndef TILE_PARSER_CHECK_VALIDITY_H
#define TILE_PARSER_CHECK_VALIDITY_H

#include "parser/check/check.h"

TileAtom *tile_atom_interval(TileChecker *c, TileAtom atom);
/* An equal atom in scope, or NULL. */
TileAtom *tile_atom_same(const TileChecker *c, const TileAtom *atom);
/* `guard`: where the index itself is valid. */
TileAtom *tile_atom_condition(TileChecker *c, const TileSum *index, const TileSum *dim, const TileValidity *guard,
                              TileSpan span);
/* `guard`: where the index tile `key` itself is valid, which is included in `mask`. */
TileAtom *tile_atom_mask(TileChecker *c, TileValue *mask, TileValue *key, const TileSum *dim, const TileValidity *guard,
                         TileSpan span, const char *words);
/* For messages, the invalid elements: "the lanes of `n` past N". */
const char *tile_atom_words(TileChecker *c, const TileAtom *atom);
bool tile_valid_has(const TileValidity *valid, const TileValidEntry *entry);
const TileValidity *tile_valid_add(TileChecker *c, const TileValidity *valid, TileAtom *atom, const int8_t *axes,
                                   TileSpan where);
const TileValidity *tile_valid_union(TileChecker *c, const TileValidity *a, const TileValidity *b);
/* Axis i becomes map[i]; atoms of an axis that is mapped to -1 are dropped. */
const TileValidity *tile_valid_map(TileChecker *c, const TileValidity *valid, const int8_t *map);
/* Broadcasts axes of extent 1: bit set. */
const TileValidity *tile_valid_stretch(TileChecker *c, const TileValidity *valid, unsigned axes);
/* Only the atoms of one of these axes; with `conditions`, also all conditions. */
const TileValidity *tile_valid_select(TileChecker *c, const TileValidity *valid, unsigned axes, bool conditions);
const TileValidity *tile_valid_masks(TileChecker *c, const TileValidity *valid);
bool tile_valid_touches(const TileValidity *valid, unsigned axes);
/* Without what is proven not to occur here, by the conditions around. */
const TileValidity *tile_valid_settled(TileChecker *c, const TileValidity *valid);
/* With what it implies: an index is inside only where it is valid itself. */
const TileValidity *tile_valid_implied(TileChecker *c, const TileValidity *valid);
/* An atom of `valid` that `within` does not have, NULL if there is none; preferably one that does not depend on what is
 * open. */
const TileValidEntry *tile_valid_missing(const TileValidity *valid, const TileValidity *within);
/* The intersection of all intervals of an axis, NULL if there are none. */
void tile_valid_bounds(TileChecker *c, const TileValidity *valid, int axis, const TileSum **lo, const TileSum **hi);
/* The conjunction of all conditions, NULL if there are none. */
TileValue *tile_emit_conditions(TileChecker *c, const TileValidity *valid);
/* The conjunction of all masks, as a bool tile of the shape; NULL if there are none. */
TileValue *tile_emit_masks(TileChecker *c, const TileValidity *valid, const TileMeaning *shape);
/* The conjunction of all atoms, as a bool tile of the shape; NULL if there are none. */
TileValue *tile_emit_valid(TileChecker *c, const TileValidity *valid, const TileMeaning *shape);
/* The value, with `fill` (a scalar) where it is not valid. */
TileValue *tile_emit_filled(TileChecker *c, const TileMeaning *m, const TileValidity *valid, TileValue *fill);
/* Reports a use of a value that may be invalid; proposes `else`. */
TileMeaning tile_fail_invalid(TileChecker *c, const TileMeaning *m, const TileExpr *expr, const char *why);
const char *tile_fill_word(const TileExpr *expr);

#endif
