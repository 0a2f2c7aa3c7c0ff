/* What is known of a text. Each step that may run out of memory leads back to its caller, who then destroys all. */
#include "lsp/analysis.h"

#include <stdlib.h>
#include <string.h>

#include "lsp/uri.h"

static void parse(TileAnalysis *analysis, const char *path, const char *text, size_t length) {
    TileArena *arena = analysis->arena;
    analysis->search.arena = arena;
    analysis->diagnostics = tile_diagnostics_create(arena);
    analysis->diagnostics->limits = tile_compiler_limits(analysis->search.compiler);
    TileImporter importer = tile_import_search(&analysis->search);
    const char *copy = tile_arena_string(arena, text, length);
    tile_status status = tile_parse_file(arena, analysis->diagnostics, tile_arena_string(arena, path, strlen(path)),
                                         copy, length, &analysis->ast);
    if (status == TILE_OUT_OF_MEMORY) longjmp(analysis->guard, 1);
    analysis->imported = tile_resolve_imports(analysis->diagnostics, analysis->ast, &importer) == TILE_OK;
    analysis->files = analysis->diagnostics->files.count;
    analysis->lines = TILE_NEW_ARRAY(arena, TileLines *, analysis->files);
}

static bool parse_guarded(TileAnalysis *analysis, const char *path, const char *text, size_t length) {
    if (setjmp(analysis->guard)) return false;
    tile_arena_set_guard(analysis->arena, &analysis->guard);
    parse(analysis, path, text, length);
    return true;
}

TileAnalysis *tile_analysis_create(const TileImportSearch *search, const char *path, const char *text, size_t length) {
    TileAnalysis *analysis = calloc(1, sizeof *analysis);
    if (!analysis) return NULL;
    analysis->search = *search;
    analysis->arena = tile_arena_create(NULL);
    if (analysis->arena && parse_guarded(analysis, path, text, length)) return analysis;
    tile_analysis_destroy(analysis);
    return NULL;
}

void tile_analysis_destroy(TileAnalysis *analysis) {
    if (!analysis) return;
    tile_ir_context_destroy(analysis->context);
    tile_arena_destroy(analysis->arena);
    free(analysis);
}

static bool make_context(TileAnalysis *analysis) {
    if (!analysis->context) analysis->context = tile_ir_context_create();
    if (!analysis->context) return false;
    tile_arena_set_guard(analysis->context->arena, &analysis->guard);
    return true;
}

bool tile_analysis_check(TileAnalysis *analysis) {
    if (analysis->checked) return true;
    if (setjmp(analysis->guard)) return false;
    if (!make_context(analysis)) return false;
    tile_status status = TILE_OK;
    if (analysis->imported)
        status = tile_check_module(analysis->context, analysis->diagnostics, analysis->ast, false, NULL, NULL);
    analysis->checked = true;
    return status != TILE_OUT_OF_MEMORY;
}

const TileMentions *tile_analysis_mentions(TileAnalysis *analysis) {
    if (analysis->mentions) return analysis->mentions;
    if (setjmp(analysis->guard)) return NULL;
    return analysis->mentions = tile_list_mentions(analysis->ast);
}

/* The diagnostics of the second check are those of the first: they and its work are taken back. */
const TileAnnotations *tile_analysis_annotations(TileAnalysis *analysis) {
    if (analysis->annotations) return analysis->annotations;
    if (setjmp(analysis->guard)) return NULL;
    if (!make_context(analysis)) return NULL;
    TileAnnotations *annotations = TILE_NEW(analysis->arena, TileAnnotations);
    annotations->arena = analysis->arena;
    TileDiagnosticsMark mark = tile_diagnostics_mark(analysis->diagnostics);
    uint64_t work = analysis->diagnostics->work;
    analysis->diagnostics->work = 0;
    tile_annotate_module(analysis->context, analysis->diagnostics, analysis->ast, annotations);
    analysis->diagnostics->work = work;
    tile_diagnostics_rewind(analysis->diagnostics, mark);
    return analysis->annotations = annotations;
}

const TileLines *tile_analysis_lines(TileAnalysis *analysis, uint32_t file) {
    if (!file || file >= analysis->files) return NULL;
    if (analysis->lines[file]) return analysis->lines[file];
    if (setjmp(analysis->guard)) return NULL;
    const TileSourceFile *source = &analysis->diagnostics->files.items[file];
    TileLines *lines = TILE_NEW(analysis->arena, TileLines);
    size_t *starts = TILE_NEW_ARRAY(analysis->arena, size_t, tile_lines_count(source->text, source->length));
    tile_lines_find(lines, source->text, source->length, starts);
    return analysis->lines[file] = lines;
}

static bool reads(const TileAnalysis *analysis, const char *path, TileArena *arena) {
    jmp_buf guard;
    if (setjmp(guard)) return true;
    tile_arena_set_guard(arena, &guard);
    for (size_t i = 1; i < analysis->files; i++)
        if (strcmp(tile_path_normal(arena, analysis->diagnostics->files.items[i].name), path) == 0) return true;
    return false;
}

bool tile_analysis_reads(const TileAnalysis *analysis, const char *path) {
    if (!analysis->imported) return true; /* it may be what was missing */
    TileArena *arena = tile_arena_create(NULL);
    bool answer = !arena || reads(analysis, path, arena);
    tile_arena_destroy(arena);
    return answer;
}

const char *tile_analysis_text(const TileAnalysis *analysis, TileArena *arena, TileSpan span) {
    const TileSourceFile *file = &analysis->diagnostics->files.items[span.file];
    if (!span.file || span.end > file->length || span.begin > span.end) return "";
    return tile_arena_string(arena, file->text + span.begin, span.end - span.begin);
}

bool tile_analysis_is_standard(const TileAnalysis *analysis, uint32_t file) {
    const char *text;
    size_t length;
    return tile_import_standard(analysis->diagnostics->files.items[file].name, &text, &length);
}
