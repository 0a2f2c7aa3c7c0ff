/* What is known at a place: of a name its declaration and documentation; type, extents and constants; where a value is
 * not valid, with the reasons; what it costs. */
#include <string.h>

#include "lang/scalar/scalar.h"
#include "lsp/help.h"
#include "lsp/request.h"

typedef struct Page {
    TileRequest *request;
    TileText text;
    TileSpan span; /* of what is described */
} Page;

static void add_code(Page *page, const char *code) {
    tile_text_format(&page->text, "%s```tile\n%s\n```\n", page->text.length ? "\n" : "", code);
}

static void add_line(Page *page, const char *line) { tile_text_format(&page->text, "\n%s\n", line); }

/* ---- what the checker found ---- */

static void add_findings(Page *page, const TileAnnotation *found) {
    TileArena *arena = page->request->arena;
    for (size_t i = 0; i < found->invalid.count; i++)
        tile_text_format(&page->text, "%snot valid: %s\n", i ? "- " : "\n- ", found->invalid.items[i]);
    bool tile = found->is_value && *found->shape && strcmp(found->type, "range") != 0;
    if (tile && !found->invalid.count) add_line(page, "valid everywhere");
    if (found->cost)
        add_line(page, tile_arena_format(arena, "cost: %s%s%s", found->cost, found->instance ? " with " : "",
                                         found->instance ? found->instance : ""));
    else if (found->instance)
        add_line(page, tile_arena_format(arena, "with %s", found->instance));
}

static const char *type_of(Page *page, const TileAnnotation *found) {
    return tile_arena_format(page->request->arena, "%s%s%s%s", found->type, found->shape, found->value ? " = " : "",
                             found->value ? found->value : "");
}

/* The smallest expression around the place. */
static const TileAnnotation *around(const TileAnnotations *annotations, uint32_t offset) {
    const TileAnnotation *best = NULL;
    for (size_t i = 0; i < annotations->list.count; i++) {
        const TileAnnotation *found = &annotations->list.items[i];
        if (found->binds || found->span.begin > offset || found->span.end <= offset) continue;
        if (!best || found->span.end - found->span.begin < best->span.end - best->span.begin) best = found;
    }
    return best;
}

/* ---- names ---- */

static const char *item_text(Page *page, const TileItem *item) {
    TileArena *arena = page->request->arena;
    const TileAnalysis *analysis = page->request->analysis;
    if (item->kind == TILE_ITEM_CONST) return tile_analysis_text(analysis, arena, item->span);
    const char *signature = tile_analysis_text(analysis, arena, item->signature);
    const char *result = item->type ? tile_analysis_text(analysis, arena, item->type->span) : NULL;
    return tile_arena_format(arena, "%s %s%s%s", item->kind == TILE_ITEM_KERNEL ? "kernel" : "fn", signature,
                             result ? " -> " : "", result ? result : "");
}

static TileSpan candidates_of(const TileNamed *named) {
    for (size_t i = 0; named->item && i < named->item->tunes.count; i++)
        for (size_t k = 0; k < named->item->tunes.items[i].names.count; k++) {
            const TileTuneName *tune = &named->item->tunes.items[i].names.items[k];
            if (tune->name == named->name && tune->candidates.count)
                return (TileSpan){tune->span.file, tune->candidates.items[0]->span.begin,
                                  tune->candidates.items[tune->candidates.count - 1]->span.end};
        }
    return (TileSpan){0};
}

/* "let v: f32[BM]" and the like, with what the checker found. */
static const char *declaration(Page *page, const TileNamed *named, const TileAnnotation *found) {
    static const char *const words[] = {[TILE_NAME_MODULE] = "import", [TILE_NAME_TUNE] = "tune",
                                        [TILE_NAME_LET] = "let",       [TILE_NAME_VAR] = "var",
                                        [TILE_NAME_LOOP] = "for",      [TILE_NAME_TEMP] = "temp"};
    TileArena *arena = page->request->arena;
    const TileAnalysis *analysis = page->request->analysis;
    switch (named->kind) {
    case TILE_NAME_MODULE: return tile_arena_format(arena, "import %s", named->name);
    case TILE_NAME_CONSTANT:
    case TILE_NAME_FUNCTION:
    case TILE_NAME_KERNEL: return item_text(page, named->item);
    case TILE_NAME_EXPORT:
        return named->item ? tile_arena_format(arena, "export %s as %s", named->item->name, named->name) : named->name;
    case TILE_NAME_GENERIC:
    case TILE_NAME_PARAMETER: break;
    case TILE_NAME_DIMENSION: return tile_arena_format(arena, "%s: a dimension of `%s`", named->name, named->item->name);
    case TILE_NAME_TUNE:
        return tile_arena_format(arena, "tune %s in {%s}", named->name,
                                 tile_analysis_text(analysis, arena, candidates_of(named)));
    case TILE_NAME_LET:
    case TILE_NAME_VAR:
    case TILE_NAME_LOOP:
    case TILE_NAME_TEMP:
        if (!found) return tile_arena_format(arena, "%s %s", words[named->kind], named->name);
        return tile_arena_format(arena, "%s %s: %s", words[named->kind], named->name, type_of(page, found));
    }
    if (named->param && named->param->type)
        return tile_arena_format(arena, "%s: %s", named->name, tile_analysis_text(analysis, arena, named->param->type->span));
    const TileGeneric *generic = named->generic;
    uint32_t end = generic && generic->value ? generic->value->span.end : generic && generic->type ? generic->type->span.end : 0;
    if (generic && generic->classes.count) end = generic->classes.items[generic->classes.count - 1].span.end;
    TileSpan whole = {named->span.file, named->span.begin, end > named->span.end ? end : named->span.end};
    return tile_analysis_text(analysis, arena, whole);
}

static void describe_named(Page *page, const TileNamed *named, const TileAnnotation *here, const TileAnnotation *bound) {
    const TileAnnotation *found = here ? here : bound;
    add_code(page, declaration(page, named, bound && named->kind != TILE_NAME_LOOP ? bound : found));
    bool item = named->kind == TILE_NAME_CONSTANT || named->kind == TILE_NAME_FUNCTION || named->kind == TILE_NAME_KERNEL;
    if (item && named->item->doc) add_line(page, named->item->doc);
    if (named->kind == TILE_NAME_TUNE && found && found->value)
        add_line(page, tile_arena_format(page->request->arena, "checked here with %s", found->value));
    bool value = named->kind >= TILE_NAME_LET || named->kind == TILE_NAME_PARAMETER;
    if (value && found) add_findings(page, found);
}

/* ---- the answer ---- */

static void describe(Page *page, const TileMention *mention, const TileAnnotations *annotations) {
    if (mention && mention->span.end <= page->request->offset) mention = NULL; /* it ends before the character */
    const TileAnnotation *here = mention ? tile_annotation_of(annotations, mention->span) : NULL;
    if (mention) page->span = mention->span;
    if (mention && mention->named) {
        describe_named(page, mention->named, here, tile_annotation_of(annotations, mention->named->span));
        return;
    }
    const char *help = mention ? tile_help_markdown(page->request->arena, mention->name) : NULL;
    if (help) {
        tile_text_add(&page->text, help);
        return;
    }
    const TileAnnotation *found = here ? here : around(annotations, page->request->offset);
    if (!found) return;
    page->span = found->span;
    add_code(page, type_of(page, found));
    add_findings(page, found);
}

json_t *tile_answer_hover(TileRequest *request) {
    const TileMention *mention = tile_request_mention(request);
    if (request->error) return NULL;
    const TileAnnotations *annotations = tile_analysis_annotations(request->analysis);
    if (!annotations) return tile_request_no_memory(request);
    Page page = {.request = request, .text = {.arena = request->arena}};
    describe(&page, mention, annotations);
    if (!page.text.length) return json_null();
    json_t *hover = json_object(), *contents = json_object();
    tile_json_set(contents, "kind", json_string("markdown"));
    tile_json_set(contents, "value", tile_json_string(tile_text_get(&page.text)));
    tile_json_set(hover, "contents", contents);
    tile_json_set(hover, "range", tile_range_json(request->workspace, request->analysis, page.span));
    return hover;
}
