/* Statements. After a statement that may leave the sequence early, flags guard the rest: it is executed if none is
 * set. */
#ifndef TILE_PARSER_CHECK_STATEMENT_H
#define TILE_PARSER_CHECK_STATEMENT_H

#include "parser/check/check.h"

void tile_check_sequence(TileChecker *c, const TileSequence *sequence);
TileMeaning tile_check_sequence_value(TileChecker *c, const TileSequence *sequence);
void tile_check_statement(TileChecker *c, const TileStatement *statement);
/* May a `return` leave the statement; a `return`, or a break or continue of the enclosing loop; a break? */
bool tile_statement_returns(const TileStatement *statement);
bool tile_expr_returns(const TileExpr *expr);
/* By a `return`, `break` or `continue`? */
bool tile_expr_leaves(const TileExpr *expr);
bool tile_sequence_returns(const TileSequence *sequence);
bool tile_sequence_leaves(const TileSequence *sequence);
bool tile_sequence_breaks(const TileSequence *sequence);
/* Are none of the flags (some may be NULL) set? A bool; in lifted functions a tile. */
TileMeaning tile_none_set(TileChecker *c, TileVar *const *flags, unsigned count, TileSpan span);
/* Would an untaken side have set one? Then the code after it is checked as if the condition were a tile. */
bool tile_any_undecided(TileVar *const *flags, unsigned count);
/* The declared type of the result, or of this part of it; NULL if none. */
const TileTypeExpr *tile_result_type(const TileTypeExpr *type, unsigned part);

#endif
