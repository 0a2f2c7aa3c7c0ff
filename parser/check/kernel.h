/* A kernel as a function: parameters, dimensions, clauses, body. */
#ifndef TILE_PARSER_CHECK_KERNEL_H
#define TILE_PARSER_CHECK_KERNEL_H

#include "parser/check/check.h"

/* Emits the kernel as a function of a new module; errors are in the diagnostics. */
void tile_check_kernel(TileChecker *c, const TileItem *kernel);

#endif
