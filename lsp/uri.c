/* Names of files as editors write them, and as the compiler does. */
#include "lsp/uri.h"

#include <ctype.h>
#include <string.h>

static const char standard_folder[] = "<stdlib>/", standard_scheme[] = "tile-stdlib:";

const char *tile_path_normal(TileArena *arena, const char *path) {
    size_t length = strlen(path), used = 0;
    char *out = tile_arena_alloc(arena, length + 2);
    bool rooted = *path == '/';
    for (const char *part = path; *part;) {
        size_t count = strcspn(part, "/");
        bool up = count == 2 && part[0] == '.' && part[1] == '.', stay = count == 0 || (count == 1 && *part == '.');
        size_t last = used;
        while (last && out[last - 1] != '/') last--;
        bool can_rise = used && !(used - last == 2 && memcmp(out + last, "..", 2) == 0);
        if (up && can_rise) {
            used = last ? last - 1 : 0;
        } else if (!stay && !(up && rooted)) {
            if (used || rooted) out[used++] = '/';
            memcpy(out + used, part, count);
            used += count;
        }
        part += count + (part[count] == '/');
    }
    if (!used && rooted) out[used++] = '/';
    out[used] = 0;
    return out;
}

static int hex(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static const char *decode(TileArena *arena, const char *text) {
    TileText out = {.arena = arena};
    for (; *text; text++) {
        bool coded = *text == '%' && hex(text[1]) >= 0 && hex(text[2]) >= 0;
        char c = coded ? (char)(hex(text[1]) * 16 + hex(text[2])) : *text;
        if (coded) text += 2;
        if (c) tile_text_add_char(&out, c);
    }
    return tile_text_get(&out);
}

const char *tile_path_of_uri(TileArena *arena, const char *uri) {
    if (strncmp(uri, standard_scheme, sizeof standard_scheme - 1) == 0) {
        const char *name = uri + sizeof standard_scheme - 1;
        while (*name == '/') name++;
        return tile_arena_format(arena, "%s%s", standard_folder, decode(arena, name));
    }
    if (strncmp(uri, "file://", 7) != 0) return uri;
    const char *path = strchr(uri + 7, '/'); /* behind the machine's name, which is empty */
    return path ? tile_path_normal(arena, decode(arena, path)) : uri;
}

const char *tile_uri_of_path(TileArena *arena, const char *path) {
    TileText out = {.arena = arena};
    bool standard = strncmp(path, standard_folder, sizeof standard_folder - 1) == 0;
    if (!standard && *path != '/') return path;
    tile_text_add(&out, standard ? "tile-stdlib:///" : "file://");
    for (const char *c = standard ? path + sizeof standard_folder - 1 : tile_path_normal(arena, path); *c; c++) {
        bool plain = isalnum((unsigned char)*c) || strchr("/-._~", *c);
        if (plain)
            tile_text_add_char(&out, *c);
        else
            tile_text_format(&out, "%%%02X", (unsigned char)*c);
    }
    return tile_text_get(&out);
}
