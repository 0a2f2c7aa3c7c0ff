/* What is not computed because a constant decides: it is checked all the same, for what it says of validity.
 *
 * What may be invalid must not depend on what is known of a condition. So the side of an `if` that is not taken, in a
 * function that lifts, and the right side of `&&` and `||` count as if the condition were one of run time. Their ops
 * are emitted and have no use; what would act (a store, an assertion, a loop's trips) is left out. */
#ifndef TILE_PARSER_CHECK_UNTAKEN_H
#define TILE_PARSER_CHECK_UNTAKEN_H

#include "parser/check/branch.h"
#include "parser/check/check.h"

/* the value, checked for its validity alone, since a constant decides that nothing computes it. */
TileMeaning tile_check_untaken(TileChecker *c, const TileExpr *expr);
/* Runs the branch that a constant chose; its values are valid where those of the other side are, too. */
TileMeaning tile_join_untaken(TileChecker *c, TileBranch taken, TileBranch other, TileSpan span);

#endif
