/* Statements. What may be left early is followed by flags: the rest of a sequence runs where none is set. */
#ifndef TILE_PARSER_CHECK_STATEMENT_H
#define TILE_PARSER_CHECK_STATEMENT_H

#include "parser/check/check.h"

void tile_check_sequence(TileChecker *c, const TileSequence *sequence);
TileMeaning tile_check_sequence_value(TileChecker *c, const TileSequence *sequence);
void tile_check_statement(TileChecker *c, const TileStatement *statement);
/* Does control leave by `return`; by that, break or continue of the loop around; by break? */
bool tile_statement_returns(const TileStatement *statement);
bool tile_expr_returns(const TileExpr *expr);
/* Or a `break` or `continue`? */
bool tile_expr_leaves(const TileExpr *expr);
bool tile_sequence_returns(const TileSequence *sequence);
bool tile_sequence_leaves(const TileSequence *sequence);
bool tile_sequence_breaks(const TileSequence *sequence);
/* Is none of the flags (some may be NULL) set? A bool, a tile where functions are lifted. */
TileMeaning tile_none_set(TileChecker *c, TileVar *const *flags, unsigned count, TileSpan span);
/* Would a side that is not taken have set one? What is behind then counts as if a tile decided. */
bool tile_any_undecided(TileVar *const *flags, unsigned count);
/* The declared type of the result, or of this part of it; NULL where there is none. */
const TileTypeExpr *tile_result_type(const TileTypeExpr *type, unsigned part);

#endif
