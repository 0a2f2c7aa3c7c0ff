/* Warnings: texts that are legal and suspect. */
#ifndef TILE_PARSER_CHECK_WARN_H
#define TILE_PARSER_CHECK_WARN_H

#include "parser/check/check.h"

/* May the kernel that is being checked be warned of this? */
bool tile_warns(const TileChecker *c, TileWarning warning);
/* Of arithmetic in 16 bits, once for an expression and its parts; `before` is the mark from before the parts. */
void tile_warn_rounding(TileChecker *c, const TileExpr *expr, const TileMeaning *m, TileDiagnosticsMark before);
/* Of a variable in 16 bits that a loop adds to. */
void tile_warn_accumulation(TileChecker *c, const TileVar *var, const TileStatement *statement,
                            TileDiagnosticsMark before);
/* Of names that a function or kernel binds and never reads. */
void tile_warn_unused(TileDiagnostics *diagnostics, TileArena *arena, const TileItem *item);

#endif
