/* Search for imports: in the importing file's folder, in the compiler's folders, then in the built-in standard
 * library. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "driver/compile/import.h"
#include "driver/compile/unit.h"

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

static bool read_file(const TileImportSearch *search, const char *path, const char **name, const char **text,
                      size_t *length) {
    *name = path;
    if (search->open && search->open(search->state, search->arena, path, text, length)) {
        *text = tile_arena_string(search->arena, *text, *length); /* it may change while the tree lives */
        return true;
    }
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    bool good = read_all(search->arena, file, text, length);
    fclose(file);
    return good;
}

static const char standard_folder[] = "<stdlib>/";

bool tile_import_standard(const char *name, const char **text, size_t *length) {
    size_t folder = sizeof standard_folder - 1;
    if (strncmp(name, standard_folder, folder) != 0) return false;
    for (const TileStandardFile *file = tile_standard_library; file->name; file++) {
        if (strcmp(file->name, name + folder)) continue;
        *text = file->text;
        *length = file->length;
        return true;
    }
    return false;
}

const char *tile_import_standard_at(size_t index) {
    for (size_t i = 0; i < index; i++)
        if (!tile_standard_library[i].name) return NULL;
    return tile_standard_library[index].name;
}

static bool read_standard(TileArena *arena, const char *path, const char **name, const char **text, size_t *length) {
    *name = tile_arena_format(arena, "%s%s", standard_folder, path);
    return tile_import_standard(*name, text, length);
}

static bool read_import(void *state, const char *from, const char *path, bool is_path, const char **name,
                        const char **text, size_t *length) {
    const TileImportSearch *search = state;
    const TileCompiler *compiler = search->compiler;
    TileArena *arena = search->arena;
    const char *file = is_path ? path : tile_arena_format(arena, "%s.tile", path);
    const char *slash = strrchr(from, '/');
    if (*file == '/') return read_file(search, file, name, text, length);
    if (strncmp(from, standard_folder, sizeof standard_folder - 1) == 0)
        return read_standard(arena, file, name, text, length);
    const char *beside = tile_arena_format(arena, "%.*s%s", slash ? (int)(slash - from + 1) : 0, from, file);
    if (read_file(search, beside, name, text, length)) return true;
    for (size_t i = 0; i < compiler->import_path_count; i++) {
        const char *there = tile_arena_format(arena, "%s/%s", compiler->import_paths[i], file);
        if (read_file(search, there, name, text, length)) return true;
    }
    return read_standard(arena, file, name, text, length);
}

TileImporter tile_import_search(TileImportSearch *search) {
    return (TileImporter){.read = read_import, .state = search};
}

const TileLimits *tile_compiler_limits(const TileCompiler *compiler) { return &compiler->limits; }

TileImporter tile_unit_importer(TileUnit *unit) {
    TileImportSearch *search = TILE_NEW(unit->arena, TileImportSearch);
    *search = (TileImportSearch){.compiler = unit->input->compiler, .arena = unit->arena};
    return tile_import_search(search);
}
