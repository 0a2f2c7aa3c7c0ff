/* The program tile-check: tile-check TEST [--prefix=WORD] <INPUT */
#include <stdio.h>
#include <string.h>

#include "tools/tile_check.h"
#include "tools/tile_opt.h"

int main(int argc, char **argv) {
    const char *path = NULL, *prefix = "CHECK";
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--prefix=", strlen("--prefix=")) == 0)
            prefix = argv[i] + strlen("--prefix=");
        else
            path = argv[i];
    }
    TileArena *arena = tile_arena_create(NULL);
    if (!path || !arena) {
        fputs("usage: tile-check TEST [--prefix=WORD] <INPUT\n", stderr);
        return 1;
    }
    TileText test = {.arena = arena}, input = {.arena = arena}, errors = {.arena = arena};
    bool good = tile_opt_read_file(path, &test, &errors) && tile_opt_read_file("-", &input, &errors) &&
                tile_check(tile_text_get(&test), tile_text_get(&input), prefix, &errors);
    fputs(tile_text_get(&errors), stderr);
    tile_arena_destroy(arena);
    return good ? 0 : 1;
}
