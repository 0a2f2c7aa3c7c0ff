/* Folders among the words of a command. */
#ifndef TILE_TOOLS_FOLDER_H
#define TILE_TOOLS_FOLDER_H

#include "tools/session.h"

/* Puts in place of each folder among the words the .tile files in it and in its folders, in the order of their names.
 * What begins with a dot, and links to folders, are left out. Returns the exit status: a folder without such a file is an
 * error. */
int tile_folder_expand(TileSession *session, char ***words, int *count);

#endif
