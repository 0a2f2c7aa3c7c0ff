/* Search for imports: in the importing file's folder, in the compiler's folders, then in the built-in standard
 * library. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "driver/compile/unit.h"
#include "parser/syntax/syntax.h"

enum { LARGEST_IMPORT = 64 << 20 };

static bool read_all(TileArena *arena, FILE *file, const char **text, size_t *length) {
    size_t capacity = 1 << 16;
    char *data = tile_arena_alloc(arena, capacity);
    *length = 0;
    for (;;) {
        *length += fread(data + *length, 1, capacity - *length, file);
        if (*length < capacity) break;
        if (capacity >= LARGEST_IMPORT) return false;
        data = tile_arena_grow(arena, data, capacity, capacity * 2);
        capacity *= 2;
    }
    *text = data;
    return !ferror(file);
}

static bool read_file(TileArena *arena, const char *path, const char **name, const char **text, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    bool good = read_all(arena, file, text, length);
    fclose(file);
    *name = path;
    return good;
}

static bool read_standard(const char *path, TileArena *arena, const char **name, const char **text, size_t *length) {
    for (const TileStandardFile *file = tile_standard_library; file->name; file++) {
        if (strcmp(file->name, path)) continue;
        *name = tile_arena_format(arena, "<stdlib>/%s", path);
        *text = file->text;
        *length = file->length;
        return true;
    }
    return false;
}

static bool read_import(void *state, const char *from, const char *path, bool is_path, const char **name,
                        const char **text, size_t *length) {
    TileUnit *unit = state;
    const TileCompiler *compiler = unit->input->compiler;
    TileArena *arena = unit->arena;
    const char *file = is_path ? path : tile_arena_format(arena, "%s.tile", path);
    const char *slash = strrchr(from, '/');
    if (*file == '/') return read_file(arena, file, name, text, length);
    if (strncmp(from, "<stdlib>/", 9) == 0) return read_standard(file, arena, name, text, length);
    const char *beside = tile_arena_format(arena, "%.*s%s", slash ? (int)(slash - from + 1) : 0, from, file);
    if (read_file(arena, beside, name, text, length)) return true;
    for (size_t i = 0; i < compiler->import_path_count; i++) {
        const char *there = tile_arena_format(arena, "%s/%s", compiler->import_paths[i], file);
        if (read_file(arena, there, name, text, length)) return true;
    }
    return read_standard(file, arena, name, text, length);
}

TileImporter tile_unit_importer(TileUnit *unit) { return (TileImporter){.read = read_import, .state = unit}; }
