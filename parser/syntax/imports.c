/* Imports: the trees of the files that a tree imports, each parsed once; cycles are reported. */
#include <stdlib.h>
#include <string.h>

#include "parser/syntax/parse.h"
#include "parser/syntax/syntax.h"

static TileAst *find_loaded(TileAst *const *loaded, size_t count, const TileDiagnostics *diagnostics,
                            const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(diagnostics->files.items[loaded[i]->file].name, name) == 0) return loaded[i];
    return NULL;
}

typedef struct Loaded {
    TILE_LIST(TileAst *) list;
} Loaded;

static tile_status load_import(TileDiagnostics *diagnostics, TileAst *ast, const TileItem *item,
                               const TileImporter *importer, Loaded *loaded) {
    const char *name = NULL, *text = NULL, *from = diagnostics->files.items[ast->file].name;
    size_t length = 0;
    TileAst *module = NULL;
    uint64_t most = diagnostics->limits->most[TILE_LIMIT_FILES];
    if (loaded->list.count > most) { /* checked before reading more files */
        TileDiagnostic *d =
            tile_diagnose(diagnostics, TILE_DIAGNOSTIC_MANY_FILES, item->name_span, (unsigned long long)most);
        tile_diagnostic_note_limit(diagnostics, d, TILE_LIMIT_FILES);
        tile_list_push(ast->arena, &ast->imports, NULL);
        return TILE_INVALID_SOURCE;
    }
    if (!importer || !importer->read(importer->state, from, item->name, item->is_path, &name, &text, &length)) {
        TileDiagnostic *d = tile_diagnose(diagnostics, TILE_DIAGNOSTIC_NO_IMPORT, item->name_span, item->name);
        bool module = item->is_path && !strpbrk(item->name, "./");
        if (module && importer && importer->read(importer->state, from, item->name, false, &name, &text, &length))
            tile_diagnostic_edit(diagnostics, d, item->name_span, "%s", item->name);
        tile_list_push(ast->arena, &ast->imports, NULL);
        return TILE_INVALID_SOURCE;
    }
    tile_status status = TILE_OK;
    module = find_loaded(loaded->list.items, loaded->list.count, diagnostics, name);
    if (!module) {
        status = tile_parse_program_file(ast->arena, diagnostics, ast->names, name, text, length, &module);
        tile_list_push(ast->arena, &loaded->list, module);
    }
    tile_list_push(ast->arena, &ast->imports, module);
    return status;
}

/* A file that is imported twice is parsed once. */
static tile_status load_imports(TileDiagnostics *diagnostics, TileAst *file, const TileImporter *importer,
                                Loaded *loaded) {
    TileMap known[2]; /* modules, paths */
    tile_status result = TILE_OK;
    for (int i = 0; i < 2; i++) tile_map_init(&known[i], file->arena);
    file->imports.count = 0;
    for (size_t i = 0; i < file->items.count; i++) {
        const TileItem *item = file->items.items[i];
        if (item->kind != TILE_ITEM_IMPORT) continue;
        const char *name = item->name ? tile_intern_string(file->names, item->name) : NULL;
        TileAst *module = name ? tile_map_get(&known[item->is_path], name) : NULL;
        if (module || item->broken) {
            tile_list_push(file->arena, &file->imports, module);
            continue;
        }
        tile_status status = load_import(diagnostics, file, item, importer, loaded);
        if (status != TILE_OK) result = status;
        if (name) tile_map_set(&known[item->is_path], name, file->imports.items[file->imports.count - 1]);
    }
    return result;
}

/* A file on the current path from the main file. */
typedef struct Way {
    const struct Way *back;
    const TileAst *file;
} Way;

static bool report_cycle(TileDiagnostics *diagnostics, const TileItem *item, const TileAst *target, const Way *way) {
    for (const Way *at = way; at; at = at->back) {
        if (at->file != target) continue;
        TileDiagnostic *d = tile_diagnose(diagnostics, TILE_DIAGNOSTIC_IMPORT_CYCLE, item->name_span,
                                          diagnostics->files.items[target->file].name);
        for (const Way *by = way; by != at; by = by->back)
            tile_diagnostic_note(diagnostics, d, (TileSpan){0}, "by way of %s",
                                 diagnostics->files.items[by->file->file].name);
        return true;
    }
    return false;
}

/* Reports import cycles. A depth-first search that visits each file once. */
static bool find_cycles(TileDiagnostics *diagnostics, const TileAst *file, const Way *back, TileMap *done) {
    Way way = {back, file};
    bool found = false;
    size_t next = 0;
    tile_map_set(done, file, (void *)file);
    for (size_t i = 0; i < file->items.count && next < file->imports.count; i++) {
        const TileItem *item = file->items.items[i];
        if (item->kind != TILE_ITEM_IMPORT) continue;
        const TileAst *target = file->imports.items[next++];
        if (!target) continue;
        if (report_cycle(diagnostics, item, target, &way))
            found = true;
        else if (!tile_map_get(done, target))
            found = find_cycles(diagnostics, target, &way, done) || found;
    }
    return found;
}

tile_status tile_resolve_imports(TileDiagnostics *diagnostics, TileAst *ast, const TileImporter *importer) {
    tile_status result = TILE_OK;
    Loaded loaded = {0};
    tile_list_push(ast->arena, &loaded.list, ast);
    for (size_t next = 0; next < loaded.list.count; next++) {
        tile_status status = load_imports(diagnostics, loaded.list.items[next], importer, &loaded);
        if (status != TILE_OK) result = status;
    }
    TileMap done;
    tile_map_init(&done, ast->arena);
    return find_cycles(diagnostics, ast, NULL, &done) ? TILE_INVALID_SOURCE : result;
}
