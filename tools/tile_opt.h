/* tile-opt: reads IR text, runs passes, prints IR text. As a function, so that one process can run many tests. */
#ifndef TILE_TOOLS_TILE_OPT_H
#define TILE_TOOLS_TILE_OPT_H

#include "base/string.h"

/* The arguments are those of the command line, without the program's name. Returns the exit status of cli.md. */
int tile_opt(int count, const char *const *arguments, TileText *output, TileText *errors);

/* Reads the whole file, or standard input for "-". False, with a reason in `errors`, if it cannot be read. */
bool tile_opt_read_file(const char *path, TileText *text, TileText *errors);

#endif
