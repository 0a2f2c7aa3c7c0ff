/* Claims: what conditions tell of integers, as facts for proofs. */
#ifndef TILE_PARSER_CHECK_CLAIM_H
#define TILE_PARSER_CHECK_CLAIM_H

#include "parser/check/check.h"
#include "parser/syntax/lex.h"

/* Of a comparison of two scalars of one integer type; NULL if nothing is known of them. */
const TileClaim *tile_claim_compare(TileChecker *c, TileTokenKind op, const TileMeaning *a, const TileMeaning *b);
/* NULL for no claim. */
const TileClaim *tile_claim_not(TileChecker *c, const TileClaim *x);
const TileClaim *tile_claim_both(TileChecker *c, const TileClaim *x, const TileClaim *y);
const TileClaim *tile_claim_either(TileChecker *c, const TileClaim *x, const TileClaim *y);
/* Of a bool that is `a` where the condition holds, else `b`. */
const TileClaim *tile_claim_choice(TileChecker *c, const TileClaim *condition, const TileMeaning *a,
                                   const TileMeaning *b);
/* Adds the facts that follow where it is true (false), up to the end of the scope. */
void tile_claim_assume(TileChecker *c, const TileClaim *claim, bool truth);
/* The same for what a launch can check: it has to where a proof uses it. */
void tile_claim_assume_checked(TileChecker *c, const TileClaim *claim);

#endif
