/* Grids and temporaries: the part of a kernel that runs on the host. */
#ifndef TILE_PARSER_CHECK_GRID_H
#define TILE_PARSER_CHECK_GRID_H

#include "parser/check/check.h"

void tile_check_grid(TileChecker *c, const TileStatement *statement);
void tile_check_temp(TileChecker *c, const TileStatement *statement);

#endif
