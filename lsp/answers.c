/* Answers about a whole document: formatting, symbols, inlay hints, code actions; and texts of the standard library. */
#include <string.h>

#include "lsp/diagnose.h"
#include "lsp/request.h"
#include "lsp/uri.h"
#include "parser/syntax/format.h"

/* ---- formatting ---- */

/* One edit: the lines from the first to the last that differ. */
static json_t *edit_between(TileRequest *request, const char *after, size_t length) {
    const TileDocument *document = request->document;
    size_t begin = 0, behind = 0, shorter = length < document->length ? length : document->length;
    json_t *edits = json_array();
    if (length == document->length && memcmp(after, document->text, length) == 0) return edits;
    while (begin < shorter && after[begin] == document->text[begin]) begin++;
    while (begin && after[begin - 1] != '\n') begin--;
    while (behind < shorter - begin && after[length - 1 - behind] == document->text[document->length - 1 - behind]) behind++;
    while (behind && after[length - behind] != '\n') behind--;
    json_t *edit = json_object();
    tile_json_set(edit, "range", tile_lines_json(request->workspace, &document->lines, begin, document->length - behind));
    tile_json_set(edit, "newText", tile_json_text(after + begin, length - behind - begin));
    tile_json_add(edits, edit);
    return edits;
}

json_t *tile_answer_formatting(TileRequest *request) {
    if (!tile_request_open(request)) return NULL;
    const TileDocument *document = request->document;
    TileText formatted = {.arena = request->arena};
    TileDiagnostics *diagnostics = tile_diagnostics_create(request->arena);
    diagnostics->limits = tile_compiler_limits(request->workspace->compiler);
    tile_status status =
        tile_format(request->arena, diagnostics, document->path, document->text, document->length, &formatted);
    if (status == TILE_OUT_OF_MEMORY) return tile_request_no_memory(request);
    if (status != TILE_OK) return tile_request_fail(request, TILE_LSP_FAILED, "a text with errors of syntax is left as it is");
    return edit_between(request, tile_text_get(&formatted), formatted.length);
}

/* ---- symbols ---- */

static json_t *symbol_json(TileRequest *request, const TileItem *item, TileSpan name) {
    enum { METHOD = 6, FUNCTION = 12, CONSTANT = 14, EVENT = 24 };
    int kind = item->kind == TILE_ITEM_CONST ? CONSTANT : item->kind == TILE_ITEM_TEST ? EVENT : FUNCTION;
    const char *detail = item->kind == TILE_ITEM_KERNEL ? "kernel" : item->kind == TILE_ITEM_FN ? "fn"
                         : item->kind == TILE_ITEM_TEST ? "test" : "const";
    TileSpan whole = item->span;
    if (whole.end < name.end) whole.end = name.end;
    json_t *symbol = json_object();
    tile_json_set(symbol, "name", tile_json_string(item->name && *item->name ? item->name : detail));
    tile_json_set(symbol, "detail", json_string(detail));
    tile_json_set(symbol, "kind", json_integer(kind));
    tile_json_set(symbol, "range", tile_range_json(request->workspace, request->analysis, whole));
    tile_json_set(symbol, "selectionRange", tile_range_json(request->workspace, request->analysis, name));
    return symbol;
}

json_t *tile_answer_symbols(TileRequest *request) {
    if (!tile_request_open(request)) return NULL;
    const TileAst *ast = request->analysis->ast;
    json_t *list = json_array();
    for (size_t i = 0; i < ast->items.count; i++) {
        const TileItem *item = ast->items.items[i];
        switch ((TileItemKind)item->kind) {
        case TILE_ITEM_CONST:
        case TILE_ITEM_FN:
        case TILE_ITEM_KERNEL:
        case TILE_ITEM_TEST: tile_json_add(list, symbol_json(request, item, item->name_span)); break;
        case TILE_ITEM_IMPORT:
        case TILE_ITEM_EXPORT:
        case TILE_ITEM_STATIC_ASSERT: break;
        }
    }
    return list;
}

/* ---- inlay hints ---- */

static json_t *hint_json(TileRequest *request, const TileAnnotation *found) {
    TileSpan behind = {found->span.file, found->span.end, found->span.end};
    json_t *hint = json_object(), *range = tile_range_json(request->workspace, request->analysis, behind);
    const char *label = tile_arena_format(request->arena, ": %s%s", found->type, found->shape);
    tile_json_set(hint, "position", json_incref(tile_json_at(range, "start")));
    json_decref(range);
    tile_json_set(hint, "label", tile_json_string(label));
    tile_json_set(hint, "kind", json_integer(1));
    if (found->instance) tile_json_set(hint, "tooltip", tile_json_string(found->instance));
    return hint;
}

json_t *tile_answer_inlay_hints(TileRequest *request) {
    if (!tile_request_open(request)) return NULL;
    const TileMentions *mentions = tile_analysis_mentions(request->analysis);
    const TileAnnotations *annotations = mentions ? tile_analysis_annotations(request->analysis) : NULL;
    if (!annotations) return tile_request_no_memory(request);
    size_t begin, end;
    tile_request_range(request, "range", &begin, &end);
    if (!tile_json_at(request->params, "range")) end = request->document->length;
    json_t *list = json_array();
    for (size_t i = 0; i < mentions->named.count; i++) {
        const TileNamed *named = mentions->named.items[i];
        if (named->kind != TILE_NAME_LET && named->kind != TILE_NAME_VAR) continue;
        if (named->span.begin < begin || named->span.end > end) continue;
        const TileAnnotation *found = tile_annotation_of(annotations, named->span);
        if (found && found->is_value) tile_json_add(list, hint_json(request, found));
    }
    return list;
}

/* ---- code actions ---- */

static const char *edit_title(TileRequest *request, const TileDiagnostic *d) {
    bool deletes = !*d->replacement, inserts = d->edit.begin == d->edit.end;
    const char *text = deletes ? tile_analysis_text(request->analysis, request->arena, d->edit) : d->replacement;
    size_t first = strspn(text, " \n"), length = strcspn(text + first, "\n");
    bool more = text[first + length] != 0;
    return tile_arena_format(request->arena, "%s `%.*s%s`", deletes ? "Delete" : inserts ? "Insert" : "Write",
                             length > 60 ? 60 : (int)length, text + first, more || length > 60 ? " .." : "");
}

static json_t *action_json(TileRequest *request, const TileDiagnostic *d) {
    json_t *action = json_object(), *edit = json_object(), *changes = json_object(), *edits = json_array();
    json_t *about = json_array(), *text = json_object();
    tile_json_set(text, "range", tile_range_json(request->workspace, request->analysis, d->edit));
    tile_json_set(text, "newText", tile_json_string(d->replacement));
    tile_json_add(edits, text);
    tile_json_set(changes, tile_file_uri(request->workspace, request->analysis, request->arena, d->edit.file), edits);
    tile_json_set(edit, "changes", changes);
    tile_json_add(about, tile_diagnostic_json(request->workspace, request->analysis, request->arena, d));
    tile_json_set(action, "title", tile_json_string(edit_title(request, d)));
    tile_json_set(action, "kind", json_string("quickfix"));
    tile_json_set(action, "diagnostics", about);
    tile_json_set(action, "isPreferred", json_true());
    tile_json_set(action, "edit", edit);
    return action;
}

static bool wants_quick_fixes(const TileRequest *request) {
    const json_t *only = tile_json_at(request->params, "context.only");
    return !json_is_array(only) || tile_json_lists(request->params, "context.only", "quickfix") ||
           tile_json_lists(request->params, "context.only", "");
}

json_t *tile_answer_code_actions(TileRequest *request) {
    if (!tile_request_open(request)) return NULL;
    if (!tile_analysis_check(request->analysis)) return tile_request_no_memory(request);
    size_t begin, end;
    tile_request_range(request, "range", &begin, &end);
    json_t *list = json_array();
    const TileDiagnostics *diagnostics = request->analysis->diagnostics;
    for (size_t i = 0; i < diagnostics->list.count && wants_quick_fixes(request); i++) {
        const TileDiagnostic *d = diagnostics->list.items[i];
        bool here = d->span.file == request->analysis->ast->file && d->span.begin <= end && d->span.end >= begin;
        if (!here || !d->has_edit || tile_analysis_is_standard(request->analysis, d->edit.file)) continue;
        tile_json_add(list, action_json(request, d));
    }
    return list;
}

/* ---- the standard library ---- */

json_t *tile_answer_content(TileRequest *request) {
    const char *uri = tile_json_text_at(request->params, "uri"), *text;
    size_t length;
    if (!uri || !tile_import_standard(tile_path_of_uri(request->arena, uri), &text, &length))
        return tile_request_fail(request, TILE_LSP_INVALID_PARAMS, "the standard library has no such file");
    json_t *answer = json_object();
    tile_json_set(answer, "text", tile_json_text(text, length));
    return answer;
}
