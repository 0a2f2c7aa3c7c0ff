/* A kernel as a function: parameters, dimensions, clauses, body. */
#ifndef TILE_PARSER_CHECK_KERNEL_H
#define TILE_PARSER_CHECK_KERNEL_H

#include "parser/check/check.h"

/* Emits the kernel as a function of a new module; errors are in the diagnostics. */
void tile_check_kernel(TileChecker *c, const TileItem *kernel);
/* Is the extent, if it is known, valid for a tensor? False if an error was reported. */
bool tile_check_dimension(TileChecker *c, const TileSum *extent, const TileExpr *expr);
/* Records that a launch checks that the extent, which a tensor has, does not wrap. */
void tile_require_exact(TileChecker *c, const TileSum *extent, TileSpan span);

#endif
