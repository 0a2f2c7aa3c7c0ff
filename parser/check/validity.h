/* Atoms of validity: where a value may not be used, and how ops are told. */
#ifndef TILE_PARSER_CHECK_VALIDITY_H
#define TILE_PARSER_CHECK_VALIDITY_H

#include "parser/check/check.h"

TileAtom *tile_atom_interval(TileChecker *c, TileAtom atom);
/* The same source in scope, or NULL. */
TileAtom *tile_atom_same(const TileChecker *c, const TileAtom *atom);
/* `guard`: where the index itself is valid. */
TileAtom *tile_atom_condition(TileChecker *c, const TileSum *index, const TileSum *dim, const TileValidity *guard,
                              TileSpan span);
/* `guard`: where the index tile `key` itself is valid, which `mask` takes into account. */
TileAtom *tile_atom_mask(TileChecker *c, TileValue *mask, TileValue *key, const TileSum *dim, const TileValidity *guard,
                         TileSpan span, const char *words);
/* What is not valid, for messages: "the lanes of `n` past N". */
const char *tile_atom_words(TileChecker *c, const TileAtom *atom);
bool tile_valid_has(const TileValidity *valid, const TileValidEntry *entry);
const TileValidity *tile_valid_add(TileChecker *c, const TileValidity *valid, TileAtom *atom, const int8_t *axes,
                                   TileSpan where);
const TileValidity *tile_valid_union(TileChecker *c, const TileValidity *a, const TileValidity *b);
/* Axis i becomes map[i]; what touches an axis mapped to -1 is dropped. */
const TileValidity *tile_valid_map(TileChecker *c, const TileValidity *valid, const int8_t *map);
/* Axes of extent 1 that are stretched: bit set. */
const TileValidity *tile_valid_stretch(TileChecker *c, const TileValidity *valid, unsigned axes);
/* Only the entries that touch one of the axes; all conditions too when `conditions`. */
const TileValidity *tile_valid_select(TileChecker *c, const TileValidity *valid, unsigned axes, bool conditions);
const TileValidity *tile_valid_masks(TileChecker *c, const TileValidity *valid);
bool tile_valid_touches(const TileValidity *valid, unsigned axes);
/* An entry of `valid` that `within` lacks, NULL where there is none; one that holds whatever is chosen before others.
 */
const TileValidEntry *tile_valid_missing(const TileValidity *valid, const TileValidity *within);
/* The bounds of an axis by all intervals, NULL where there is none. */
void tile_valid_bounds(TileChecker *c, const TileValidity *valid, int axis, const TileSum **lo, const TileSum **hi);
/* All conditions joined, NULL when there is none. */
TileValue *tile_emit_conditions(TileChecker *c, const TileValidity *valid);
/* All masks joined, as a bool tile of the shape; NULL when there is none. */
TileValue *tile_emit_masks(TileChecker *c, const TileValidity *valid, const TileMeaning *shape);
/* Everything as one bool of the shape; NULL when all is valid. */
TileValue *tile_emit_valid(TileChecker *c, const TileValidity *valid, const TileMeaning *shape);
/* The value with `fill` (a scalar) where `valid` does not hold. */
TileValue *tile_emit_filled(TileChecker *c, const TileMeaning *m, const TileValidity *valid, TileValue *fill);
/* Reports that a value that may be invalid stands where it must not; proposes `else`. */
TileMeaning tile_fail_invalid(TileChecker *c, const TileMeaning *m, const TileExpr *expr, const char *why);
const char *tile_fill_word(const TileExpr *expr);

#endif
