/* Names of files as editors write them, file:///home/me/a%20b.tile, and as the compiler does. Modules of the standard library
 * are no files: tile-stdlib:///math.tile. */
#ifndef TILE_LSP_URI_H
#define TILE_LSP_URI_H

#include "base/string.h"

/* The path without `.`, `..` and double slashes. */
const char *tile_path_normal(TileArena *arena, const char *path);
/* The compiler's name of a file: a path, "<stdlib>/math.tile", or the URI itself if it is of another kind. */
const char *tile_path_of_uri(TileArena *arena, const char *uri);
const char *tile_uri_of_path(TileArena *arena, const char *path);

#endif
