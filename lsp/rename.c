/* Renaming. The edits are tried on copies of the texts: every other name has to mean what it meant before. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lsp/navigate.h"
#include "lsp/uri.h"

/* A file with edits. */
typedef struct Changed {
    const char *path, *uri;
    const char *text; /* before */
    size_t length;
    json_t *edits;
    TILE_LIST(TileSpan) spans;
    const char *after; /* the whole text */
    size_t after_length;
} Changed;

typedef struct Renaming {
    const char *old, *name;
    TILE_LIST(Changed) files;
} Renaming;

/* ---- what may be renamed ---- */

static bool is_keyword(const char *name) {
#define SAME(id, text)                                                                                                 \
    if (strcmp(name, text) == 0) return true;
    TILE_KEYWORD_LIST(SAME)
#undef SAME
    return false;
}

static bool is_name(const char *name) {
    if (!name || (!isalpha((unsigned char)*name) && *name != '_') || strcmp(name, "_") == 0) return false;
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_') return false;
    return !is_keyword(name);
}

/* Why what is mentioned keeps its name; NULL if it need not. */
static const char *obstacle(TileRequest *request, const TileMention *mention) {
    if (!mention) return "there is no name here";
    if (!mention->named) return "only names that a text binds can be changed";
    if (mention->named->kind == TILE_NAME_MODULE) return "a module has the name of its file";
    if (tile_analysis_is_standard(request->analysis, mention->named->span.file))
        return "the standard library is part of tilec";
    return NULL;
}

json_t *tile_answer_prepare_rename(TileRequest *request) {
    const TileMention *mention = tile_request_mention(request);
    if (request->error) return NULL;
    const char *why = obstacle(request, mention);
    if (why) return tile_request_fail(request, TILE_LSP_FAILED, "%s", why);
    return tile_range_json(request->workspace, request->analysis, mention->span);
}

/* ---- the edits ---- */

static Changed *changed_file(TileRequest *request, Renaming *renaming, const TileAnalysis *analysis, uint32_t file) {
    const TileSourceFile *source = &analysis->diagnostics->files.items[file];
    const char *path = tile_path_normal(request->arena, source->name);
    for (size_t i = 0; i < renaming->files.count; i++)
        if (strcmp(renaming->files.items[i].path, path) == 0) return &renaming->files.items[i];
    const char *text = tile_arena_string(request->arena, source->text, source->length);
    const char *uri = tile_file_uri(request->workspace, analysis, request->arena, file);
    tile_list_push(request->arena, &renaming->files,
                   (Changed){.path = path,
                             .uri = tile_arena_string(request->arena, uri, strlen(uri)),
                             .text = text,
                             .length = source->length,
                             .edits = json_array()});
    return &renaming->files.items[renaming->files.count - 1];
}

static void add_edit(TileRequest *request, void *state, TileAnalysis *analysis, const TileMention *mention) {
    Renaming *renaming = state;
    Changed *file = changed_file(request, renaming, analysis, mention->span.file);
    json_t *edit = json_object();
    tile_json_set(edit, "range", tile_range_json(request->workspace, analysis, mention->span));
    tile_json_set(edit, "newText", tile_json_string(renaming->name));
    tile_json_add(file->edits, edit);
    tile_list_push(request->arena, &file->spans, mention->span);
}

static void apply(TileRequest *request, Renaming *renaming, Changed *file) {
    TileText text = {.arena = request->arena};
    size_t at = 0;
    for (size_t i = 0; i < file->spans.count; i++) {
        tile_text_add_bytes(&text, file->text + at, file->spans.items[i].begin - at);
        tile_text_add(&text, renaming->name);
        at = file->spans.items[i].end;
    }
    tile_text_add_bytes(&text, file->text + at, file->length - at);
    file->after = tile_text_get(&text);
    file->after_length = text.length;
}

/* ---- the trial ---- */

typedef struct Overlay {
    const TileWorkspace *workspace;
    const Renaming *renaming;
    bool after; /* the texts with the edits */
} Overlay;

static bool read_overlay(void *state, TileArena *arena, const char *path, const char **text, size_t *length) {
    const Overlay *overlay = state;
    const char *normal = tile_path_normal(arena, path);
    for (size_t i = 0; i < overlay->renaming->files.count; i++) {
        const Changed *file = &overlay->renaming->files.items[i];
        if (strcmp(file->path, normal) != 0) continue;
        *text = overlay->after ? file->after : file->text;
        *length = overlay->after ? file->after_length : file->length;
        return true;
    }
    const TileDocument *document = tile_workspace_at(overlay->workspace, normal);
    if (!document) return false;
    *text = document->text;
    *length = document->length;
    return true;
}

/* Each binding that is mentioned, with the number of its first mention. */
static void list_first(TileMap *first, const TileMentions *mentions) {
    for (size_t i = mentions->list.count; i-- > 0;)
        if (mentions->list.items[i].named) tile_map_set(first, mentions->list.items[i].named, (void *)(uintptr_t)i);
}

/* Do both bindings have their first mention at the same place, and the same name but for the new one? */
static bool same_binding(const Renaming *renaming, const TileMap *first, const TileNamed *x, const TileNamed *y) {
    if (!x || !y) return x == y;
    bool same_name = strcmp(x->name, y->name) == 0;
    bool renamed = strcmp(x->name, renaming->old) == 0 && strcmp(y->name, renaming->name) == 0;
    return tile_map_get(&first[0], x) == tile_map_get(&first[1], y) && x->kind == y->kind && (same_name || renamed);
}

/* The first name of the file whose meaning changes; NULL if none does. */
static const char *first_change(TileRequest *request, const Renaming *renaming, const TileMentions *a,
                                const TileMentions *b) {
    TileMap first[2];
    if (a->list.count != b->list.count) return renaming->name;
    for (int i = 0; i < 2; i++) tile_map_init(&first[i], request->arena);
    list_first(&first[0], a);
    list_first(&first[1], b);
    for (size_t i = 0; i < a->list.count; i++)
        if (!same_binding(renaming, first, a->list.items[i].named, b->list.items[i].named))
            return tile_arena_format(request->arena, "%s", a->list.items[i].name);
    return NULL;
}

/* The first error that the text has now, if it has more than before, such as a name that is bound twice; else NULL. */
static const char *new_error(TileRequest *request, TileAnalysis *before, TileAnalysis *after) {
    if (!tile_analysis_check(before) || !tile_analysis_check(after)) return "out of memory";
    if (after->diagnostics->error_count <= before->diagnostics->error_count) return NULL;
    for (size_t i = 0; i < after->diagnostics->list.count; i++)
        if (after->diagnostics->list.items[i]->severity == TILE_SEVERITY_ERROR)
            return tile_arena_format(request->arena, "%s", after->diagnostics->list.items[i]->message);
    return "there are more errors";
}

/* Why the edits of a file cannot be made, NULL if they can. Both texts are parsed and checked with their imports, as they
 * are and as they would be. */
static const char *try_file(TileRequest *request, const Renaming *renaming, const Changed *file) {
    Overlay overlays[2] = {{request->workspace, renaming, false}, {request->workspace, renaming, true}};
    TileAnalysis *analyses[2] = {NULL, NULL};
    const TileMentions *mentions[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        TileImportSearch search = {.compiler = request->workspace->compiler, .open = read_overlay, .state = &overlays[i]};
        const char *text = i ? file->after : file->text;
        analyses[i] = tile_analysis_create(&search, file->path, text, i ? file->after_length : file->length);
        if (analyses[i]) mentions[i] = tile_analysis_mentions(analyses[i]);
    }
    const char *why = mentions[0] && mentions[1] ? NULL : "out of memory";
    const char *change = why ? NULL : first_change(request, renaming, mentions[0], mentions[1]);
    if (change) why = tile_arena_format(request->arena, "`%s` would mean something else", change);
    if (!why) why = new_error(request, analyses[0], analyses[1]);
    for (int i = 0; i < 2; i++) tile_analysis_destroy(analyses[i]);
    return why;
}

/* ---- the answer ---- */

static void drop_edits(Renaming *renaming) {
    for (size_t i = 0; i < renaming->files.count; i++) json_decref(renaming->files.items[i].edits);
}

static bool try_all(TileRequest *request, Renaming *renaming) {
    for (size_t i = 0; i < renaming->files.count; i++) apply(request, renaming, &renaming->files.items[i]);
    for (size_t i = 0; i < renaming->files.count; i++) {
        const char *why = try_file(request, renaming, &renaming->files.items[i]);
        if (!why) continue;
        tile_request_fail(request, TILE_LSP_FAILED, "if `%s` were `%s` in %s: %s", renaming->old, renaming->name,
                          renaming->files.items[i].path, why);
        return false;
    }
    return true;
}

json_t *tile_answer_rename(TileRequest *request) {
    const TileMention *mention = tile_request_mention(request);
    if (request->error) return NULL;
    const char *name = tile_json_text_at(request->params, "newName"), *why = obstacle(request, mention);
    if (why) return tile_request_fail(request, TILE_LSP_FAILED, "%s", why);
    if (!is_name(name)) return tile_request_fail(request, TILE_LSP_INVALID_PARAMS, "`%s` is no name", name ? name : "");
    Renaming renaming = {.old = tile_arena_format(request->arena, "%s", mention->name), .name = name};
    bool good = tile_visit_mentions(request, mention, add_edit, &renaming);
    if (!good) tile_request_no_memory(request);
    if (!good || !try_all(request, &renaming)) return drop_edits(&renaming), NULL;
    json_t *changes = json_object(), *answer = json_object();
    for (size_t i = 0; i < renaming.files.count; i++)
        tile_json_set(changes, renaming.files.items[i].uri, renaming.files.items[i].edits);
    tile_json_set(answer, "changes", changes);
    return answer;
}
