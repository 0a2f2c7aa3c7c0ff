/* Claims: what conditions tell of integers, as facts for proofs. */
#ifndef TILE_PARSER_CHECK_CLAIM_H
#define TILE_PARSER_CHECK_CLAIM_H

#include "parser/check/bounds.h"
#include "parser/check/check.h"
#include "parser/syntax/lex.h"

/* Of a comparison of two integers of one type, or of the elements of tiles; NULL if nothing is known of them. */
const TileClaim *tile_claim_compare(TileChecker *c, TileTokenKind op, const TileMeaning *a, const TileMeaning *b,
                                    const TileMeaning *result);
/* NULL for no claim. */
const TileClaim *tile_claim_not(TileChecker *c, const TileClaim *x);
const TileClaim *tile_claim_both(TileChecker *c, const TileClaim *x, const TileClaim *y);
const TileClaim *tile_claim_either(TileChecker *c, const TileClaim *x, const TileClaim *y);
/* What the claim of an operand tells of the result of `&&` or `||`: a claim is about the valid elements, of which the result may have
 * fewer. */
const TileClaim *tile_claim_within(TileChecker *c, const TileMeaning *m, const TileMeaning *result);
/* The claim for those elements alone for which all is valid that stands beside them. */
const TileClaim *tile_claim_of_fewer(TileChecker *c, const TileClaim *x);
/* What is left of the claim where elements that are not valid become a constant. */
const TileClaim *tile_claim_filled(const TileClaim *claim);
/* Of `all(c)` and `any(c)`, where `c` has a claim. */
const TileClaim *tile_claim_of_elements(TileChecker *c, const TileClaim *x, bool all);
/* Of a bool that is `a` where the condition holds, else `b`. */
const TileClaim *tile_claim_choice(TileChecker *c, const TileClaim *condition, const TileMeaning *a,
                                   const TileMeaning *b);
/* Adds the facts that follow where it is true (false), up to the end of the scope. */
void tile_claim_assume(TileChecker *c, const TileClaim *claim, bool truth);
/* The same for what a launch can check: it has to where a proof uses it. */
void tile_claim_assume_checked(TileChecker *c, const TileClaim *claim);

/* The bounds of a number, or of a tile's elements, where the claim is true (false). */
TileBounds tile_claim_bounds(TileChecker *c, const TileMeaning *m, const TileClaim *claim, bool truth);
/* Adds the facts of the enclosing branches that choose for each element; what tile_facts_restore takes. */
size_t tile_claim_assume_chosen(TileChecker *c);
/* Do the enclosing branches that choose for each element choose none? Then all that is asked of chosen elements holds. */
bool tile_chosen_never(TileChecker *c);
/* Are all elements of an index tile inside that the enclosing branches choose, which have a tile as condition? */
bool tile_chosen_inside(TileChecker *c, const TileMeaning *index, const TileSum *dim);

#endif
