/* tilec doc: reference pages in Markdown, from the `///` comments of files. Only the syntax is used: a page shows
 * headers as written, so that it can be made of files whose imports are missing. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "parser/check/program.h"
#include "parser/syntax/syntax.h"
#include "tools/file.h"
#include "tools/replace.h"
#include "tools/session.h"

typedef struct DocFile {
    const char *name; /* softmax.tile */
    const char *text, *about;
    TileAst *ast;
} DocFile;

typedef struct DocOptions {
    const char *output, *title; /* NULL where not given */
    TILE_LIST(const char *) paths;
} DocOptions;

/* A page under construction; its headings' anchors are those that GitHub and most others make. */
typedef struct Page {
    TileArena *arena;
    TileText text;
    TILE_LIST(const char *) anchors;
} Page;

/* ---- reading ---- */

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    if (strcmp(path, "-") == 0) return "<stdin>";
    return slash ? slash + 1 : path;
}

/* The first `///` lines of a file describe the file if a blank line follows them. */
static const char *read_about(TileArena *arena, const char *text) {
    TileText about = {.arena = arena};
    while (isspace((unsigned char)*text)) text++;
    for (; strncmp(text, "///", 3) == 0; text += strspn(text, "\r\n") ? 1 : 0) {
        const char *words = text + 3 + (text[3] == ' ');
        size_t length = strcspn(words, "\r\n");
        if (about.length) tile_text_add_char(&about, '\n');
        tile_text_add_bytes(&about, words, length);
        text = words + length;
        if (*text == '\r') text++;
    }
    return *text == '\n' || *text == '\r' || !*text ? tile_text_get(&about) : "";
}

static int read_file(TileSession *session, const char *path, DocFile *file) {
    TileArena *arena = session->arena;
    TileText error = {.arena = arena};
    TileDiagnostics *diagnostics = tile_diagnostics_create(arena);
    diagnostics->limits = &session->limits;
    char *text;
    size_t length;
    tile_status status = tile_file_read(arena, path, &text, &length, &error);
    if (status != TILE_OK) return tile_session_fail(session, status, "%s", tile_text_get(&error));
    *file = (DocFile){.name = file_name(path), .text = text, .about = read_about(arena, text)};
    const char *shown = strcmp(path, "-") == 0 ? "<stdin>" : path;
    status = tile_parse_file(arena, diagnostics, shown, text, length, &file->ast);
    return status == TILE_OK ? 0 : tile_session_diagnostics(session, status, arena, diagnostics);
}

/* ---- small texts ---- */

static const char *span_text(Page *page, const DocFile *file, TileSpan span) {
    uint32_t end = span.end;
    while (end > span.begin && isspace((unsigned char)file->text[end - 1])) end--;
    return tile_arena_string(page->arena, file->text + span.begin, end - span.begin);
}

static bool is_documented(const TileItem *item) {
    return item->kind == TILE_ITEM_KERNEL || item->kind == TILE_ITEM_FN || item->kind == TILE_ITEM_CONST;
}

static const char *kind_word(const TileItem *item) {
    if (item->kind == TILE_ITEM_KERNEL) return "kernel";
    return item->kind == TILE_ITEM_FN ? "function" : "constant";
}

/* The source text before the body. */
static const char *header_text(Page *page, const DocFile *file, const TileItem *item) {
    TileSpan span = item->span;
    if (item->body) span.end = item->body->span.begin;
    return span_text(page, file, span);
}

/* Up to the first full stop that ends a sentence, on one line. */
static void add_sentence(TileText *text, const char *doc) {
    for (const char *c = doc; *c && !(c[0] == '\n' && c[1] == '\n'); c++) {
        tile_text_add_char(text, *c == '\n' ? ' ' : *c);
        if (*c == '.' && (!c[1] || c[1] == '\n' || (c[1] == ' ' && !islower((unsigned char)c[2])))) break;
    }
}

static const char *make_anchor(Page *page, const char *heading) {
    TileText slug = {.arena = page->arena};
    for (const char *c = heading; *c; c++) {
        if (isalnum((unsigned char)*c) || *c == '_' || *c == '-' || (*c & 0x80))
            tile_text_add_char(&slug, (char)tolower((unsigned char)*c));
        else if (*c == ' ')
            tile_text_add_char(&slug, '-');
    }
    unsigned same = 0;
    for (size_t i = 0; i < page->anchors.count; i++) same += strcmp(page->anchors.items[i], tile_text_get(&slug)) == 0;
    tile_list_push(page->arena, &page->anchors, tile_text_get(&slug));
    return same ? tile_arena_format(page->arena, "%s-%u", tile_text_get(&slug), same) : tile_text_get(&slug);
}

/* ---- headers as lists ---- */

static void add_generic(Page *page, const DocFile *file, const TileGeneric *generic) {
    TileText *text = &page->text;
    static const char *const words[] = {
        [TILE_GENERIC_TYPE] = "type", [TILE_GENERIC_CONST] = "constant", [TILE_GENERIC_FN] = "function"};
    tile_text_format(text, "- %s `%s`", words[generic->kind], generic->name);
    for (size_t i = 0; i < generic->classes.count; i++)
        tile_text_format(text, "%s`%s`", i ? ", " : ": ", generic->classes.items[i].name);
    if (generic->type) tile_text_format(text, ": `%s`", span_text(page, file, generic->type->span));
    if (generic->value) tile_text_format(text, ", `%s` if not given", span_text(page, file, generic->value->span));
    tile_text_add(text, "\n");
}

static bool is_listed(const TileItem *item, const char *name) {
    for (size_t i = 0; i < item->generics.count; i++)
        if (item->generics.items[i].name == name) return true;
    for (size_t i = 0; i < item->statics.count; i++)
        if (item->statics.items[i].name == name) return true;
    return false;
}

/* Names of extents that the arguments bind. */
static void add_dimensions(Page *page, const DocFile *file, const TileItem *item) {
    TILE_LIST(const char *) names = {0};
    for (size_t p = 0; p < item->params.count; p++) {
        const TileTypeExpr *type = item->params.items[p].type;
        for (size_t e = 0; type && type->kind == TILE_TYPE_EXPR_NAME && e < type->extents.count; e++) {
            const TileExpr *extent = type->extents.items[e];
            if (extent->kind != TILE_EXPR_NAME || is_listed(item, extent->name)) continue;
            bool known = tile_map_get(&file->ast->named, extent->name) != NULL;
            for (size_t i = 0; i < names.count; i++) known |= names.items[i] == extent->name;
            if (!known) tile_list_push(page->arena, &names, extent->name);
        }
    }
    for (size_t i = 0; i < names.count; i++)
        tile_text_format(&page->text, "%s`%s`",
                         i                 ? ", "
                         : names.count > 1 ? "- dimensions "
                                           : "- dimension ",
                         names.items[i]);
    if (names.count) tile_text_add(&page->text, ", bound by the arguments\n");
    for (size_t i = 0; i < item->statics.count; i++)
        tile_text_format(&page->text, "%s`%s`",
                         i                         ? ", "
                         : item->statics.count > 1 ? "- dimensions "
                                                   : "- dimension ",
                         item->statics.items[i].name);
    if (item->statics.count) tile_text_add(&page->text, ", compiled for each value\n");
}

static void add_requirements(Page *page, const DocFile *file, const TileItem *item) {
    for (size_t r = 0; r < item->requires.count; r++) {
        const TileRequire *require = &item->requires.items[r];
        for (size_t c = 0; c < require->conditions.count; c++)
            tile_text_format(&page->text, "%s`%s`", c ? ", " : "- requires ",
                             span_text(page, file, require->conditions.items[c]->span));
        if (require->text) tile_text_format(&page->text, ": %s", require->text);
        tile_text_add(&page->text, "\n");
    }
    for (size_t i = 0; i < item->overlaps.count; i++)
        tile_text_format(&page->text, "%s`%s`", i ? ", " : "- programs may write the same elements of ",
                         item->overlaps.items[i].name);
    if (item->overlaps.count) tile_text_add(&page->text, "\n");
}

static void add_tunes(Page *page, const DocFile *file, const TileItem *item) {
    for (size_t t = 0; t < item->tunes.count; t++) {
        const TileTune *tune = &item->tunes.items[t];
        tile_text_add(&page->text, "- tuned");
        if (tune->target) tile_text_format(&page->text, " (%s)", tune->target);
        for (size_t n = 0; n < tune->names.count; n++) {
            const TileTuneName *name = &tune->names.items[n];
            tile_text_format(&page->text, "%s`%s`:", n ? "; " : " ", name->name);
            for (size_t c = 0; c < name->candidates.count; c++)
                tile_text_format(&page->text, "%s `%s`", c ? "," : "",
                                 span_text(page, file, name->candidates.items[c]->span));
        }
        if (tune->where) tile_text_format(&page->text, ", where `%s`", span_text(page, file, tune->where->span));
        tile_text_add(&page->text, "\n");
    }
}

static void add_exports(Page *page, const DocFile *file, const TileItem *item) {
    unsigned count = 0;
    for (size_t i = 0; i < file->ast->items.count; i++) {
        const TileItem *other = file->ast->items.items[i];
        for (size_t e = 0; e < other->exports.count; e++) {
            const TileExport *export = &other->exports.items[e];
            if (export->module.name || export->kernel.name != item->name) continue;
            tile_text_format(&page->text, "%s`%s`",
                             count++ ? ", " : "- exported: ", span_text(page, file, export->span));
        }
    }
    if (count) tile_text_add(&page->text, "\n");
}

/* ---- pages ---- */

static void add_item(Page *page, const DocFile *file, const TileItem *item, const char *level) {
    TileText *text = &page->text;
    tile_text_format(text, "\n%s %s\n\n```\n%s\n```\n\n", level, item->name, header_text(page, file, item));
    if (item->doc && *item->doc) tile_text_format(text, "%s\n\n", item->doc);
    size_t before = text->length;
    for (size_t i = 0; i < item->generics.count; i++) add_generic(page, file, &item->generics.items[i]);
    add_dimensions(page, file, item);
    add_requirements(page, file, item);
    add_tunes(page, file, item);
    if (item->kind == TILE_ITEM_KERNEL) add_exports(page, file, item);
    if (text->length == before) text->length--, text->text[text->length] = 0; /* one of the newlines before a list */
}

static void add_items(Page *page, const DocFile *file, const char *level) {
    for (size_t i = 0; i < file->ast->items.count; i++)
        if (is_documented(file->ast->items.items[i])) add_item(page, file, file->ast->items.items[i], level);
}

/* One line for each item. `where` stands before `#`. */
static void add_index(Page *page, const DocFile *file, const char *indent, const char *where) {
    for (size_t i = 0; i < file->ast->items.count; i++) {
        const TileItem *item = file->ast->items.items[i];
        if (!is_documented(item)) continue;
        tile_text_format(&page->text, "%s- [%s](%s#%s), %s", indent, item->name, where, make_anchor(page, item->name),
                         kind_word(item));
        if (item->doc && *item->doc) {
            tile_text_add(&page->text, ": ");
            add_sentence(&page->text, item->doc);
        }
        tile_text_add(&page->text, "\n");
    }
}

static void add_index_of_file(Page *page, const DocFile *file, const char *link) {
    tile_text_format(&page->text, "- [%s](%s)", file->name, link);
    if (*file->about) {
        tile_text_add(&page->text, ": ");
        add_sentence(&page->text, file->about);
    }
    tile_text_add(&page->text, "\n");
}

static const char made_by[] = "Made by `tilec doc` from the comments of the source.\n";

/* All files on one page: the index, then a section for each. */
static void write_page(Page *page, const DocFile *files, size_t count, const char *title) {
    tile_text_format(&page->text, "# %s\n\n%s\n", title, made_by);
    make_anchor(page, title);
    for (size_t i = 0; i < count; i++) {
        add_index_of_file(page, &files[i], tile_arena_format(page->arena, "#%s", make_anchor(page, files[i].name)));
        add_index(page, &files[i], "  ", "");
    }
    for (size_t i = 0; i < count; i++) {
        tile_text_format(&page->text, "\n## %s\n", files[i].name);
        if (*files[i].about) tile_text_format(&page->text, "\n%s\n", files[i].about);
        add_items(page, &files[i], "###");
    }
}

static const char *page_name(TileArena *arena, const DocFile *file) {
    const char *ending = strstr(file->name, ".tile");
    int length = ending && !ending[5] ? (int)(ending - file->name) : (int)strlen(file->name);
    return tile_arena_format(arena, "%.*s.md", length, file->name);
}

static void write_file_page(Page *page, const DocFile *file) {
    tile_text_format(&page->text, "# %s\n\n", file->name);
    make_anchor(page, file->name);
    if (*file->about) tile_text_format(&page->text, "%s\n\n", file->about);
    tile_text_format(&page->text, "%s\n", made_by);
    add_index(page, file, "", "");
    add_items(page, file, "##");
}

static int save(TileSession *session, const char *path, const TileText *text) {
    TileText error = {.arena = session->arena};
    tile_status status = tile_file_write(path, tile_text_get(text), text->length, &error);
    if (status != TILE_OK) return tile_session_fail(session, status, "%s", tile_text_get(&error));
    if (session->verbose) printf("%s\n", path);
    return 0;
}

/* A page for each file, and index.md. */
static int write_folder(TileSession *session, const DocFile *files, size_t count, const DocOptions *options) {
    const char *folder = options->output;
    const char *between = folder[strlen(folder) - 1] == '/' ? "" : "/";
    Page index = {.arena = session->arena, .text = {.arena = session->arena}};
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k <= i; k++)
            if (k < i ? strcmp(files[k].name, files[i].name) == 0
                      : strcmp(page_name(session->arena, &files[i]), "index.md") == 0)
                return tile_session_fail(session, TILE_INVALID_ARGUMENT, "two pages would be %s%s%s", folder, between,
                                         page_name(session->arena, &files[i]));
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return tile_session_fail(session, TILE_IO, "%s: %s", folder, strerror(errno));
    tile_text_format(&index.text, "# %s\n\n%s\n", options->title ? options->title : "Reference", made_by);
    for (size_t i = 0; i < count; i++) {
        Page page = {.arena = session->arena, .text = {.arena = session->arena}}, links = page;
        const char *name = page_name(session->arena, &files[i]);
        write_file_page(&page, &files[i]);
        int failed = save(session, tile_arena_format(session->arena, "%s%s%s", folder, between, name), &page.text);
        if (failed) return failed;
        add_index_of_file(&index, &files[i], name);
        make_anchor(&links, files[i].name);
        add_index(&links, &files[i], "  ", name);
        tile_text_add(&index.text, tile_text_get(&links.text));
    }
    return save(session, tile_arena_format(session->arena, "%s%sindex.md", folder, between), &index.text);
}

static bool is_folder(const char *path) {
    struct stat info;
    return path[strlen(path) - 1] == '/' || (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

static int write_all(TileSession *session, const DocFile *files, size_t count, const DocOptions *options) {
    if (options->output && is_folder(options->output)) return write_folder(session, files, count, options);
    Page page = {.arena = session->arena, .text = {.arena = session->arena}};
    if (count == 1 && !options->title)
        write_file_page(&page, files);
    else
        write_page(&page, files, count, options->title ? options->title : "Reference");
    if (options->output) return save(session, options->output, &page.text);
    fputs(tile_text_get(&page.text), stdout);
    return 0;
}

static int read_words(TileSession *session, DocOptions *options, char **words, int count) {
    for (int i = 0; i < count; i++) {
        const char *title = tile_option_value(words[i], "--title");
        if (title)
            options->title = title;
        else if (strcmp(words[i], "-o") == 0 && i + 1 < count && *words[i + 1])
            options->output = words[++i];
        else if (*words[i] == '-' && words[i][1])
            return tile_session_unknown(session, words[i]);
        else
            tile_list_push(session->arena, &options->paths, words[i]);
    }
    if (options->paths.count) return 0;
    return tile_session_fail(session, TILE_INVALID_ARGUMENT, "no file; see `tilec help doc`");
}

int tile_command_doc(TileSession *session, char **words, int count) {
    DocOptions options = {0};
    int worst = read_words(session, &options, words, count);
    if (worst) return worst;
    DocFile *files = TILE_NEW_ARRAY(session->arena, DocFile, options.paths.count);
    for (size_t i = 0; i < options.paths.count; i++) {
        int failed = read_file(session, options.paths.items[i], &files[i]);
        if (failed > worst) worst = failed;
    }
    if (worst) return worst;
    worst = write_all(session, files, options.paths.count, &options);
    int result = tile_session_finish(session);
    return worst ? worst : result;
}
