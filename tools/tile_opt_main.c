/* The program tile-opt. */
#include <stdio.h>

#include "tools/tile_opt.h"

int main(int argc, char **argv) {
    TileArena *arena = tile_arena_create(NULL);
    if (!arena) return 2;
    TileText output = {.arena = arena}, errors = {.arena = arena};
    int status = tile_opt(argc - 1, (const char *const *)argv + 1, &output, &errors);
    fputs(tile_text_get(&output), stdout);
    fputs(tile_text_get(&errors), stderr);
    if (fflush(stdout) != 0) status = 2;
    tile_arena_destroy(arena);
    return status;
}
