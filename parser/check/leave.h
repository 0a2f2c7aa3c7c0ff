/* Leaving a sequence early, by `return`, `break` or `continue`: which statements may, and the flags that then guard the
 * statements behind them. */
#ifndef TILE_PARSER_CHECK_LEAVE_H
#define TILE_PARSER_CHECK_LEAVE_H

#include "parser/check/check.h"

/* May a `return` leave the statement; a `return`, or a break or continue of the enclosing loop; a break? */
bool tile_statement_returns(const TileStatement *statement);
bool tile_expr_returns(const TileExpr *expr);
/* By a `return`, `break` or `continue`? */
bool tile_expr_leaves(const TileExpr *expr);
bool tile_sequence_returns(const TileSequence *sequence);
bool tile_sequence_leaves(const TileSequence *sequence);
bool tile_statement_leaves(const TileStatement *statement);
bool tile_sequence_breaks(const TileSequence *sequence);
/* Does every way through the sequence end in a `return`, so that code behind it is not reached? */
bool tile_sequence_ends(const TileSequence *sequence);
/* Are none of the flags (some may be NULL) set? A bool; in lifted functions a tile. */
TileMeaning tile_none_set(TileChecker *c, TileVar *const *flags, unsigned count, TileSpan span);
/* Would an untaken side have set one? Then the code after it is checked as if the condition were a tile. */
bool tile_any_undecided(TileVar *const *flags, unsigned count);
/* The declared type of the result, or of this part of it; NULL if none. */
const TileTypeExpr *tile_result_type(const TileTypeExpr *type, unsigned part);

#endif
