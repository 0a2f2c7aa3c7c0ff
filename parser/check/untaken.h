/* Code that is not executed because a condition is constant: it is checked nevertheless, for its effect on validity.
 *
 * Whether a value may be invalid must not depend on the value of a constant condition. So the untaken side of an `if`,
 * in a lifted function, and the right side of `&&` and `||` are checked as if the condition were known at run time
 * only. Their ops are emitted without uses; side effects (stores, assertions, the iterations of a loop) are omitted. */
#ifndef TILE_PARSER_CHECK_UNTAKEN_H
#define TILE_PARSER_CHECK_UNTAKEN_H

#include "parser/check/branch.h"
#include "parser/check/check.h"

/* Checks an expression that a constant condition excludes, for its validity only. */
TileMeaning tile_check_untaken(TileChecker *c, const TileExpr *expr);
/* Emits the branch that a constant selects; its values are valid where those of the other side are, too, which `by` chooses elements for. */
TileMeaning tile_join_untaken(TileChecker *c, TileBranch taken, TileBranch other, const TileChosen *by, TileSpan span);

#endif
