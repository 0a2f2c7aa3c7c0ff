/* Whole text files. */
#ifndef TILE_TOOLS_FILE_H
#define TILE_TOOLS_FILE_H

#include "base/string.h"

/* Reads a file, zero-terminated, into the arena; "-" is standard input. The message names the file. */
tile_status tile_file_read(TileArena *arena, const char *path, char **text, size_t *length, TileText *error);

#endif
