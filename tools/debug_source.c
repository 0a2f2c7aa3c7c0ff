/* tilec debug: lines of the source. */
#include <string.h>

#include "tools/debug.h"
#include "tools/file.h"

bool tile_debug_list(TileArena *arena, const char *file, uint32_t from, uint32_t to, uint32_t at) {
    TileText error = {.arena = arena};
    char *text;
    size_t length;
    if (tile_file_read(arena, file, &text, &length, &error) != TILE_OK) return false;
    for (uint32_t line = 1; *text && line <= to; line++) {
        size_t end = strcspn(text, "\n");
        if (line >= from) printf("%c%5u  %.*s\n", line == at ? '>' : ' ', line, (int)end, text);
        text += end + (text[end] != 0);
    }
    return true;
}
