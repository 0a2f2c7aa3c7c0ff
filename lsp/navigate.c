/* Where names are bound and used: definition, references, highlights. */
#include "lsp/navigate.h"

#include <string.h>

#include "lsp/uri.h"

bool tile_named_is_shared(const TileNamed *named) {
    switch (named->kind) {
    case TILE_NAME_CONSTANT:
    case TILE_NAME_FUNCTION:
    case TILE_NAME_KERNEL: return true;
    case TILE_NAME_GENERIC: /* arguments of `run` */
    case TILE_NAME_TUNE:
    case TILE_NAME_PARAMETER:
    case TILE_NAME_DIMENSION: return named->item && named->item->kind == TILE_ITEM_KERNEL;
    case TILE_NAME_MODULE:
    case TILE_NAME_EXPORT:
    case TILE_NAME_LET:
    case TILE_NAME_VAR:
    case TILE_NAME_LOOP:
    case TILE_NAME_TEMP: return false;
    }
    return false;
}

/* The same binding, seen from this file or from another: its file and place. */
typedef struct Target {
    const char *path;
    uint32_t begin;
} Target;

static const char *path_in(const TileAnalysis *analysis, TileArena *arena, TileSpan span) {
    return tile_path_normal(arena, analysis->diagnostics->files.items[span.file].name);
}

static bool is_target(const TileAnalysis *analysis, TileArena *arena, const TileNamed *named, const Target *target) {
    if (!named || !tile_named_is_shared(named) || named->span.begin != target->begin) return false;
    return strcmp(path_in(analysis, arena, named->span), target->path) == 0;
}

static bool visit_file(TileRequest *request, TileAnalysis *analysis, const Target *target, TileMentionVisit visit,
                       void *state) {
    const TileMentions *mentions = tile_analysis_mentions(analysis);
    if (!mentions) return false;
    for (size_t i = 0; i < mentions->list.count; i++) {
        const TileMention *mention = &mentions->list.items[i];
        if (is_target(analysis, request->arena, mention->named, target)) visit(request, state, analysis, mention);
    }
    return true;
}

static bool visit_workspace(TileRequest *request, const TileNamed *named, TileMentionVisit visit, void *state) {
    Target target = {path_in(request->analysis, request->arena, named->span), named->span.begin};
    TilePathList paths = {0};
    bool good = true, seen = false;
    tile_workspace_list(request->workspace, request->arena, &paths);
    for (size_t i = 0; i < paths.count; i++) seen = seen || strcmp(paths.items[i], target.path) == 0;
    if (!seen) tile_list_push(request->arena, &paths, target.path); /* it lies outside of the folders */
    for (size_t i = 0; i < paths.count && good; i++) {
        TileDocument *document = tile_workspace_at(request->workspace, paths.items[i]);
        TileAnalysis *analysis = document ? tile_document_analysis(request->workspace, document)
                                          : tile_workspace_analyse(request->workspace, paths.items[i]);
        if (analysis) good = visit_file(request, analysis, &target, visit, state);
        if (!document) tile_analysis_destroy(analysis);
    }
    return good;
}

bool tile_visit_mentions(TileRequest *request, const TileMention *mention, TileMentionVisit visit, void *state) {
    const TileNamed *named = mention->named;
    const TileMentions *mentions = tile_analysis_mentions(request->analysis);
    if (!named || !mentions) return mentions != NULL;
    if (tile_named_is_shared(named)) return visit_workspace(request, named, visit, state);
    for (size_t i = 0; i < mentions->list.count; i++)
        if (mentions->list.items[i].named == named) visit(request, state, request->analysis, &mentions->list.items[i]);
    return true;
}

/* ---- definition ---- */

/* The file that `import "path"` or `import module` names. */
static const TileAst *imported(const TileAnalysis *analysis, uint32_t offset) {
    size_t next = 0;
    for (size_t i = 0; i < analysis->ast->items.count; i++) {
        const TileItem *item = analysis->ast->items.items[i];
        if (item->kind != TILE_ITEM_IMPORT) continue;
        const TileAst *file = next < analysis->ast->imports.count ? analysis->ast->imports.items[next] : NULL;
        next++;
        if (item->name_span.begin <= offset && offset <= item->name_span.end) return file;
    }
    return NULL;
}

json_t *tile_answer_definition(TileRequest *request) {
    const TileMention *mention = tile_request_mention(request);
    if (!mention) return request->error ? NULL : json_null();
    const TileNamed *named = mention->named;
    const TileAst *file = named && named->kind == TILE_NAME_MODULE ? named->module : imported(request->analysis, request->offset);
    if (file)
        return tile_location_json(request->workspace, request->analysis, request->arena, (TileSpan){file->file, 0, 0});
    if (!named) return json_null();
    return tile_location_json(request->workspace, request->analysis, request->arena, named->span);
}

/* ---- references ---- */

typedef struct References {
    json_t *list;
    bool declaration;
} References;

static void add_reference(TileRequest *request, void *state, TileAnalysis *analysis, const TileMention *mention) {
    References *references = state;
    const TileSpan *bound = &mention->named->span;
    bool declares = bound->file == mention->span.file && bound->begin == mention->span.begin;
    if (declares && !references->declaration) return;
    tile_json_add(references->list,
                  tile_location_json(request->workspace, analysis, request->arena, mention->span));
}

json_t *tile_answer_references(TileRequest *request) {
    const TileMention *mention = tile_request_mention(request);
    if (!mention) return request->error ? NULL : json_null();
    References references = {json_array(), true};
    const json_t *declaration = tile_json_at(request->params, "context.includeDeclaration");
    if (declaration) references.declaration = json_is_true(declaration);
    if (tile_visit_mentions(request, mention, add_reference, &references)) return references.list;
    json_decref(references.list);
    return tile_request_no_memory(request);
}

json_t *tile_answer_highlight(TileRequest *request) {
    const TileMention *mention = tile_request_mention(request);
    if (!mention) return request->error ? NULL : json_null();
    const TileMentions *mentions = tile_analysis_mentions(request->analysis);
    json_t *list = json_array();
    for (size_t i = 0; i < mentions->list.count; i++) {
        const TileMention *other = &mentions->list.items[i];
        if (other->named != mention->named || (!mention->named && strcmp(other->name, mention->name) != 0)) continue;
        json_t *highlight = json_object();
        tile_json_set(highlight, "range", tile_range_json(request->workspace, request->analysis, other->span));
        tile_json_add(list, highlight);
    }
    return list;
}
