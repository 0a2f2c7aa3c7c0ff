/* The language server: one client, on two file descriptors, until it leaves. */
#ifndef TILE_LSP_SERVER_H
#define TILE_LSP_SERVER_H

#include "tile/tile.h"

/* Returns the exit status of the protocol: 0 after `shutdown` and `exit`, else 1. */
int tile_server_run(const TileCompiler *compiler, const char *version, int in, int out);

#endif
