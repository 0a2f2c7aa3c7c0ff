/* Warnings: valid code that is probably a mistake. */
#ifndef TILE_PARSER_CHECK_WARN_H
#define TILE_PARSER_CHECK_WARN_H

#include "parser/check/check.h"

/* Is this warning enabled for the current kernel? */
bool tile_warns(const TileChecker *c, TileWarning warning);
/* Of 16-bit arithmetic, once for an expression with its parts; `before` is the mark from before the parts. */
void tile_warn_rounding(TileChecker *c, const TileExpr *expr, const TileMeaning *m, TileDiagnosticsMark before);
/* Of a 16-bit variable that a loop accumulates into. */
void tile_warn_accumulation(TileChecker *c, const TileVar *var, const TileStatement *statement,
                            TileDiagnosticsMark before);
/* Of names that a function or kernel binds and never uses. */
void tile_warn_unused(TileDiagnostics *diagnostics, TileArena *arena, const TileItem *item);

#endif
