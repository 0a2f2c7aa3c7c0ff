/* A file that appears whole or not at all: it is written under a temporary name in the same folder, then renamed. */
#ifndef TILE_TOOLS_REPLACE_H
#define TILE_TOOLS_REPLACE_H

#include "base/string.h"

/* A file under way. */
typedef struct TileReplacement {
    char *path, *temporary; /* in the text's arena */
} TileReplacement;

/* Opens a file for the contents; -1, and errno, on failure. An existing file keeps its permissions; of a link, its
 * target is replaced; a signal that ends the program removes what is not committed. A device or pipe, which a rename
 * would replace, is opened itself. */
int tile_replacement_open(TileReplacement *file, const char *path, TileArena *arena);
/* Renames the file to its name; on failure, and when abandoned, the temporary file is removed. */
tile_status tile_replacement_commit(TileReplacement *file, TileText *error);
void tile_replacement_abandon(TileReplacement *file);
/* Does all of it: the file at `path` has these contents, flushed to the disk, or is unchanged. */
tile_status tile_file_write(const char *path, const char *text, size_t length, TileText *error);

#endif
