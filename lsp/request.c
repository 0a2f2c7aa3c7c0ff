/* A request of the client, and what answers share: places, ranges, locations. */
#include "lsp/request.h"

#include <stdarg.h>
#include <string.h>

#include "lsp/uri.h"

json_t *tile_request_fail(TileRequest *request, int error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    request->error = error;
    request->message = tile_arena_format_list(request->arena, format, arguments);
    va_end(arguments);
    return NULL;
}

json_t *tile_request_no_memory(TileRequest *request) {
    return tile_request_fail(request, TILE_LSP_INTERNAL, "out of memory");
}

static TilePosition position_at(const json_t *params, const char *path, TileArena *arena) {
    TilePosition position;
    position.line = tile_json_integer_at(params, tile_arena_format(arena, "%s.line", path), -1, INT64_MAX, 0);
    position.unit = tile_json_integer_at(params, tile_arena_format(arena, "%s.character", path), -1, INT64_MAX, 0);
    return position;
}

bool tile_request_open(TileRequest *request) {
    const char *uri = tile_json_text_at(request->params, "textDocument.uri");
    if (!uri) return tile_request_fail(request, TILE_LSP_INVALID_PARAMS, "there is no textDocument.uri"), false;
    request->document = tile_workspace_find(request->workspace, uri);
    if (!request->document) return tile_request_fail(request, TILE_LSP_INVALID_PARAMS, "%s is not open", uri), false;
    request->analysis = tile_document_analysis(request->workspace, request->document);
    if (!request->analysis) tile_request_no_memory(request);
    return request->analysis != NULL;
}

bool tile_request_place(TileRequest *request) {
    if (!tile_request_open(request)) return false;
    if (!json_is_integer(tile_json_at(request->params, "position.line")))
        return tile_request_fail(request, TILE_LSP_INVALID_PARAMS, "there is no position"), false;
    TilePosition position = position_at(request->params, "position", request->arena);
    request->offset =
        (uint32_t)tile_lines_offset(&request->document->lines, position, request->workspace->encoding);
    return true;
}

void tile_request_range(const TileRequest *request, const char *path, size_t *begin, size_t *end) {
    const json_t *range = tile_json_at(request->params, path);
    const TileLines *lines = &request->document->lines;
    TilePosition first = position_at(range, "start", request->arena), last = position_at(range, "end", request->arena);
    *begin = tile_lines_offset(lines, first, request->workspace->encoding);
    *end = tile_lines_offset(lines, last, request->workspace->encoding);
}

const TileMention *tile_request_mention(TileRequest *request) {
    if (!tile_request_place(request)) return NULL;
    const TileMentions *mentions = tile_analysis_mentions(request->analysis);
    if (!mentions) return tile_request_no_memory(request), NULL;
    return tile_mention_at(mentions, request->offset);
}

/* ---- places as the client counts ---- */

static json_t *position_json(TilePosition position) {
    json_t *value = json_object();
    tile_json_set(value, "line", json_integer(position.line));
    tile_json_set(value, "character", json_integer(position.unit));
    return value;
}

json_t *tile_lines_json(const TileWorkspace *workspace, const TileLines *lines, size_t begin, size_t end) {
    json_t *range = json_object();
    tile_json_set(range, "start", position_json(tile_lines_position(lines, begin, workspace->encoding)));
    tile_json_set(range, "end", position_json(tile_lines_position(lines, end, workspace->encoding)));
    return range;
}

json_t *tile_range_json(const TileWorkspace *workspace, TileAnalysis *analysis, TileSpan span) {
    static size_t start = 0;
    static const TileLines nothing = {.text = "", .starts = &start, .count = 1};
    const TileLines *lines = tile_analysis_lines(analysis, span.file);
    return lines ? tile_lines_json(workspace, lines, span.begin, span.end) : tile_lines_json(workspace, &nothing, 0, 0);
}

const char *tile_file_uri(const TileWorkspace *workspace, const TileAnalysis *analysis, TileArena *arena, uint32_t file) {
    const char *name = analysis->diagnostics->files.items[file].name;
    const TileDocument *document = tile_workspace_at(workspace, name);
    if (!document) document = tile_workspace_at(workspace, tile_path_normal(arena, name));
    return document ? document->uri : tile_uri_of_path(arena, name);
}

json_t *tile_location_json(const TileWorkspace *workspace, TileAnalysis *analysis, TileArena *arena, TileSpan span) {
    json_t *location = json_object();
    tile_json_set(location, "uri", tile_json_string(tile_file_uri(workspace, analysis, arena, span.file)));
    tile_json_set(location, "range", tile_range_json(workspace, analysis, span));
    return location;
}
