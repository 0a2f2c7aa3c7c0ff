/* docs/errors/CODE.md, built into the program. */
#ifndef TILE_TOOLS_ERROR_PAGES_H
#define TILE_TOOLS_ERROR_PAGES_H

#include "driver/compile/unit.h"

extern const TileStandardFile tile_error_pages[]; /* "CODE.md"; ends in a row of zeros; made by the build */

#endif
