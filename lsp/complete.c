/* Completion: what may stand at a place, as far as scopes tell. */
#include <ctype.h>
#include <string.h>

#include "lang/scalar/scalar.h"
#include "lsp/help.h"
#include "lsp/request.h"
#include "parser/check/builtin.h"
#include "parser/check/type.h"

/* CompletionItemKind of the protocol. */
enum { FUNCTION = 3, FIELD = 5, VARIABLE = 6, CLASS = 7, MODULE = 9, PROPERTY = 10, KEYWORD = 14, CONSTANT = 21, TYPE = 25 };

typedef struct Completion {
    TileRequest *request;
    const TileMentions *mentions;
    json_t *list;
    TileMap seen;        /* interned labels */
    TileInterner *names; /* of the labels */
    const char *text;
    size_t begin, end; /* of the word that is being written */
} Completion;

static void add_item(Completion *c, const char *label, int kind, const char *detail, const char *doc) {
    const char *name = tile_intern_string(c->names, label);
    if (!*label || tile_map_find(&c->seen, name)) return;
    tile_map_set(&c->seen, name, (void *)name);
    json_t *item = json_object();
    tile_json_set(item, "label", tile_json_string(label));
    tile_json_set(item, "kind", json_integer(kind));
    if (detail && *detail) tile_json_set(item, "detail", tile_json_string(detail));
    if (doc && *doc) tile_json_set(item, "documentation", tile_json_string(doc));
    tile_json_add(c->list, item);
}

static void add_file_item(Completion *c, const TileItem *item) {
    const TileAnalysis *analysis = c->request->analysis;
    TileArena *arena = c->request->arena;
    if (!item->name) return;
    if (item->kind == TILE_ITEM_CONST) add_item(c, item->name, CONSTANT, tile_analysis_text(analysis, arena, item->span), item->doc);
    if (item->kind == TILE_ITEM_FN || item->kind == TILE_ITEM_KERNEL)
        add_item(c, item->name, FUNCTION, tile_analysis_text(analysis, arena, item->signature), item->doc);
}

/* ---- the text before the place ---- */

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* The word that ends at `end`; its beginning. */
static size_t word_begin(const char *text, size_t end) {
    while (end && is_word(text[end - 1])) end--;
    return end;
}

static size_t skip_blanks(const char *text, size_t end) {
    while (end && (text[end - 1] == ' ' || text[end - 1] == '\t')) end--;
    return end;
}

static bool word_is(const Completion *c, size_t begin, size_t end, const char *word) {
    return end - begin == strlen(word) && memcmp(c->text + begin, word, end - begin) == 0;
}

/* ---- behind a point ---- */

/* The innermost binding that the name has at the place. */
static const TileNamed *visible(const Completion *c, const char *name, size_t length) {
    const TileNamed *best = NULL;
    for (size_t i = 0; i < c->mentions->named.count; i++) {
        const TileNamed *named = c->mentions->named.items[i];
        if (strlen(named->name) != length || memcmp(named->name, name, length) != 0) continue;
        if (!tile_named_reaches(named, c->request->analysis->ast->file, (uint32_t)c->begin)) continue;
        if (named->kind == TILE_NAME_KERNEL) continue; /* it is no value, and has no members */
        bool inner = !best || !best->scope.file || (named->scope.file && named->scope.begin >= best->scope.begin);
        if (inner) best = named;
    }
    return best;
}

static void add_module(Completion *c, const TileAst *module, bool kernels) {
    for (size_t i = 0; module && i < module->items.count; i++)
        if (kernels || module->items.items[i]->kind != TILE_ITEM_KERNEL) add_file_item(c, module->items.items[i]);
}

static void add_fields(Completion *c, const TileNamed *named) {
    static const char *const fields[][2] = {{"start", "the first index"}, {"size", "how many indices"},
                                            {"end", "behind the last index"}, {"idx", "the indices as a tile"}};
    const TileAnnotations *annotations = tile_analysis_annotations(c->request->analysis);
    const TileAnnotation *found = annotations ? tile_annotation_of(annotations, named->span) : NULL;
    if (!found) return;
    if (strcmp(found->type, "range") == 0)
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) add_item(c, fields[i][0], FIELD, fields[i][1], NULL);
    else if (found->is_value)
        add_item(c, "T", FIELD, "the transpose of a tile of rank 2", NULL);
}

static void complete_member(Completion *c, size_t point) {
    size_t begin = word_begin(c->text, point);
    const TileNamed *named = visible(c, c->text + begin, point - begin);
    size_t last = skip_blanks(c->text, begin), word = word_begin(c->text, last);
    if (!named) return;
    if (named->kind == TILE_NAME_MODULE)
        add_module(c, named->module, word_is(c, word, last, "run") || word_is(c, word, last, "export"));
    else
        add_fields(c, named);
}

/* ---- names of a kernel: run k(..), export k[..] ---- */

/* The bracket around the place that is not closed before it; 0 if there is none. */
static size_t open_bracket(const Completion *c) {
    enum { FARTHEST = 4096 };
    unsigned depth = 0;
    for (size_t at = c->begin; at && c->begin - at < FARTHEST; at--) {
        char last = c->text[at - 1];
        if (last == ')' || last == ']') depth++;
        if (last == '{' || last == '}' || last == ';') return 0;
        if ((last == '(' || last == '[') && !depth--) return at;
    }
    return 0;
}

/* The kernel that a name is of in a file: itself, or by an export. */
static const TileItem *kernel_in(const Completion *c, const TileAst *ast, size_t begin, size_t end) {
    const TileItem *found = NULL;
    for (size_t i = 0; ast && i < ast->items.count && !found; i++) {
        const TileItem *item = ast->items.items[i];
        if (item->kind == TILE_ITEM_KERNEL && word_is(c, begin, end, item->name)) found = item;
        for (size_t k = 0; item->kind == TILE_ITEM_EXPORT && k < item->exports.count && !found; k++)
            if (item->exports.items[k].name && !item->exports.items[k].module.name &&
                word_is(c, begin, end, item->exports.items[k].name))
                found = tile_map_get(&ast->named, item->exports.items[k].kernel.name);
    }
    return found;
}

/* Behind `run`, or behind `run module.`: in the file, else in its imports. */
static const TileItem *kernel_named(const Completion *c, size_t begin, size_t end) {
    const TileAst *ast = c->request->analysis->ast;
    const TileItem *found = kernel_in(c, ast, begin, end);
    for (size_t i = 0; i < ast->imports.count && !found; i++) found = kernel_in(c, ast->imports.items[i], begin, end);
    return found;
}

static void add_header(Completion *c, const TileItem *kernel, bool parameters) {
    for (size_t i = 0; i < kernel->params.count && parameters; i++) {
        const TileParam *param = &kernel->params.items[i];
        if (param->spread || !param->type) continue;
        add_item(c, param->name, PROPERTY,
                 tile_analysis_text(c->request->analysis, c->request->arena, param->type->span), NULL);
    }
    for (size_t i = 0; i < kernel->generics.count; i++)
        add_item(c, kernel->generics.items[i].name, PROPERTY, "a generic", NULL);
    for (size_t i = 0; i < kernel->statics.count; i++)
        add_item(c, kernel->statics.items[i].name, PROPERTY, "static", NULL);
    for (size_t i = 0; i < kernel->tunes.count; i++)
        for (size_t k = 0; k < kernel->tunes.items[i].names.count; k++)
            add_item(c, kernel->tunes.items[i].names.items[k].name, PROPERTY, "tune", NULL);
}

/* The names of its header as arguments. False if the place is in no such list. */
static bool complete_arguments(Completion *c) {
    size_t bracket = open_bracket(c);
    size_t end = bracket ? bracket - 1 : 0, begin = word_begin(c->text, end), first = begin;
    if (first && c->text[first - 1] == '.') first = word_begin(c->text, first - 1); /* module.kernel */
    size_t last = skip_blanks(c->text, first), word = word_begin(c->text, last);
    bool runs = word_is(c, word, last, "run"), exports = word_is(c, word, last, "export");
    const TileItem *kernel = bracket && (runs || exports) ? kernel_named(c, begin, end) : NULL;
    if (kernel) add_header(c, kernel, runs);
    return kernel != NULL;
}

/* ---- anywhere ---- */

static void add_scope(Completion *c) {
    const TileAnnotations *annotations = tile_analysis_annotations(c->request->analysis);
    for (size_t i = c->mentions->named.count; i-- > 0;) {
        const TileNamed *named = c->mentions->named.items[i];
        if (!named->scope.file || !tile_named_reaches(named, c->request->analysis->ast->file, (uint32_t)c->begin)) continue;
        const TileAnnotation *found = annotations ? tile_annotation_of(annotations, named->span) : NULL;
        const char *detail = found ? tile_arena_format(c->request->arena, "%s%s", found->type, found->shape) : NULL;
        add_item(c, named->name, named->kind == TILE_NAME_GENERIC ? TYPE : VARIABLE, detail, NULL);
    }
}

static void add_items(Completion *c, bool kernels) {
    const TileAst *ast = c->request->analysis->ast;
    for (size_t i = 0; i < ast->items.count; i++) {
        const TileItem *item = ast->items.items[i];
        if (item->kind == TILE_ITEM_IMPORT && !item->is_path && item->name) add_item(c, item->name, MODULE, NULL, NULL);
        if (item->kind != TILE_ITEM_KERNEL || kernels) add_file_item(c, item);
    }
    for (size_t i = 0; i < ast->imports.count; i++) add_module(c, ast->imports.items[i], kernels);
}

static void add_language(Completion *c) {
    for (size_t i = 0; tile_builtin_at(i); i++) {
        const TileBuiltin *builtin = tile_builtin_at(i);
        add_item(c, builtin->name, FUNCTION, tile_help_form(builtin->name), tile_help_words(builtin->name));
    }
    for (int s = 0; s < TILE_SCALAR_COUNT; s++) add_item(c, tile_scalar_name((TileScalar)s), CLASS, "a type", NULL);
    for (size_t i = 0; tile_class_at(i); i++) add_item(c, tile_class_at(i), CLASS, "a class of types", NULL);
#define ADD_KEYWORD(id, text) add_item(c, text, KEYWORD, NULL, NULL);
    TILE_KEYWORD_LIST(ADD_KEYWORD)
#undef ADD_KEYWORD
}

static void add_modules(Completion *c) {
    for (size_t i = 0; tile_import_standard_at(i); i++) {
        const char *file = tile_import_standard_at(i);
        add_item(c, tile_arena_string(c->request->arena, file, strcspn(file, ".")), MODULE, "the standard library", NULL);
    }
}

static void complete(Completion *c) {
    size_t before = skip_blanks(c->text, c->begin), word = word_begin(c->text, before);
    if (c->begin && c->text[c->begin - 1] == '.' && !(c->begin > 1 && c->text[c->begin - 2] == '.'))
        return complete_member(c, c->begin - 1);
    if (word_is(c, word, before, "import")) return add_modules(c);
    bool kernel = word_is(c, word, before, "run") || word_is(c, word, before, "export");
    if (complete_arguments(c)) kernel = false;
    add_scope(c);
    add_items(c, kernel);
    if (!kernel) add_language(c);
}

json_t *tile_answer_completion(TileRequest *request) {
    if (!tile_request_place(request)) return NULL;
    Completion completion = {.request = request,
                             .mentions = tile_analysis_mentions(request->analysis),
                             .names = tile_interner_create(request->arena),
                             .text = request->document->text,
                             .end = request->offset};
    if (!completion.mentions) return tile_request_no_memory(request);
    tile_map_init(&completion.seen, request->arena);
    completion.list = json_array();
    completion.begin = word_begin(completion.text, request->offset);
    complete(&completion);
    return completion.list;
}
