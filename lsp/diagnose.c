/* Diagnostics as the protocol has them. Those of imported files are shown at the import that leads to them. */
#include "lsp/diagnose.h"

#include <string.h>

#include "lsp/request.h"

/* ---- files that are imported ---- */

static bool reaches(const TileAst *from, uint32_t file, TileMap *seen) {
    if (!from || tile_map_get(seen, from)) return false;
    if (from->file == file) return true;
    tile_map_set(seen, from, (void *)from);
    for (size_t i = 0; i < from->imports.count; i++)
        if (reaches(from->imports.items[i], file, seen)) return true;
    return false;
}

/* The import item that leads to the file. */
static TileSpan import_of(const TileAnalysis *analysis, TileArena *arena, uint32_t file) {
    const TileAst *ast = analysis->ast;
    size_t next = 0;
    for (size_t i = 0; i < ast->items.count; i++) {
        const TileItem *item = ast->items.items[i];
        TileMap seen;
        if (item->kind != TILE_ITEM_IMPORT) continue;
        tile_map_init(&seen, arena);
        const TileAst *module = next < ast->imports.count ? ast->imports.items[next] : NULL;
        next++;
        if (reaches(module, file, &seen)) return item->span;
    }
    return (TileSpan){ast->file, 0, 0};
}

/* ---- one diagnostic ---- */

static json_t *related_json(const TileWorkspace *workspace, TileAnalysis *analysis, TileArena *arena, TileSpan span,
                            const char *message) {
    json_t *related = json_object();
    tile_json_set(related, "location", tile_location_json(workspace, analysis, arena, span));
    tile_json_set(related, "message", tile_json_string(message));
    return related;
}

json_t *tile_diagnostic_json(const TileWorkspace *workspace, TileAnalysis *analysis, TileArena *arena,
                             const TileDiagnostic *d) {
    const TileSourceFile *files = analysis->diagnostics->files.items;
    bool own = !d->span.file || d->span.file == analysis->ast->file;
    TileSpan span = own ? d->span : import_of(analysis, arena, d->span.file);
    if (!span.file) span = (TileSpan){analysis->ast->file, 0, 0};
    TileText message = {.arena = arena};
    json_t *value = json_object(), *related = json_array();
    if (!own) tile_text_format(&message, "in %s: ", files[d->span.file].name);
    tile_text_add(&message, d->message);
    if (!own) tile_json_add(related, related_json(workspace, analysis, arena, d->span, d->message));
    for (size_t i = 0; i < d->notes.count; i++) {
        const TileNote *note = &d->notes.items[i];
        if (note->span.file)
            tile_json_add(related, related_json(workspace, analysis, arena, note->span, note->message));
        else
            tile_text_format(&message, "\nnote: %s", note->message);
    }
    tile_json_set(value, "range", tile_range_json(workspace, analysis, span));
    tile_json_set(value, "severity", json_integer(d->severity == TILE_SEVERITY_ERROR ? 1 : 2));
    tile_json_set(value, "code", json_string(tile_diagnostic_name(d->code)));
    tile_json_set(value, "source", json_string("tilec"));
    tile_json_set(value, "message", tile_json_string(tile_text_get(&message)));
    if (d->code == TILE_DIAGNOSTIC_UNUSED_NAME) tile_json_set(value, "tags", json_pack("[i]", 1));
    if (json_array_size(related))
        tile_json_set(value, "relatedInformation", related);
    else
        json_decref(related);
    return value;
}

/* ---- a document ---- */

json_t *tile_diagnostics_json(TileWorkspace *workspace, TileDocument *document, TileArena *arena) {
    TileAnalysis *analysis = tile_document_analysis(workspace, document);
    if (analysis && !tile_analysis_check(analysis)) {
        tile_analysis_destroy(analysis);
        document->analysis = analysis = NULL;
    }
    if (!analysis) return NULL;
    json_t *params = json_object(), *list = json_array();
    for (size_t i = 0; i < analysis->diagnostics->list.count; i++)
        tile_json_add(list, tile_diagnostic_json(workspace, analysis, arena, analysis->diagnostics->list.items[i]));
    tile_json_set(params, "uri", tile_json_string(document->uri));
    tile_json_set(params, "version", json_integer(document->version));
    tile_json_set(params, "diagnostics", list);
    return params;
}
