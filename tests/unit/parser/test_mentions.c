/* Mentions and annotations: what editors ask of a file. The names of every kernel of the repository are bound where the
 * checker finds them bound. */
#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "parser/syntax/mentions.h"
#include "tests/unit/parser/running.h"

typedef struct File {
    TileArena *arena;
    TileContext *context;
    TileDiagnostics *diagnostics;
    TileAst *ast;
    TileMentions *mentions;
    TileAnnotations annotations;
    const char *text;
} File;

static void open_file(File *file, const char *name, const char *text, size_t length) {
    *file = (File){.arena = tile_arena_create(NULL), .context = tile_ir_context_create(), .text = text};
    file->diagnostics = tile_diagnostics_create(file->arena);
    TileImporter importer = test_importer(file->arena);
    tile_status parsed = tile_parse_file(file->arena, file->diagnostics, name, text, length, &file->ast);
    tile_status found = tile_resolve_imports(file->diagnostics, file->ast, &importer);
    cr_assert(parsed != TILE_OUT_OF_MEMORY && found != TILE_OUT_OF_MEMORY);
    file->mentions = tile_list_mentions(file->ast);
    file->annotations.arena = file->arena;
    tile_annotate_module(file->context, file->diagnostics, file->ast, &file->annotations);
}

static void close_file(File *file) {
    tile_ir_context_destroy(file->context);
    tile_arena_destroy(file->arena);
}

static bool same(TileSpan a, TileSpan b) { return a.file == b.file && a.begin == b.begin && a.end == b.end; }

static size_t compare_file(const char *path) {
    TileArena *arena = tile_arena_create(NULL);
    size_t length, compared = 0;
    const char *text = read_file(arena, path, &length);
    File file;
    open_file(&file, path, text, length);
    for (size_t i = 0; i < file.annotations.list.count; i++) {
        const TileAnnotation *found = &file.annotations.list.items[i];
        const TileMention *mention = tile_mention_at(file.mentions, found->span.begin);
        if (found->binds || !found->bound.file) continue;
        cr_assert(mention && same(mention->span, found->span), "%s:%u: not mentioned", path, found->span.begin);
        cr_assert(mention->named, "%s:%u: %s is bound nowhere", path, found->span.begin, mention->name);
        /* A tune name may be bound in several clauses, which are mentions of one name. */
        bool own = found->bound.file == file.ast->file;
        const TileMention *bound = own ? tile_mention_at(file.mentions, found->bound.end) : NULL;
        bool right = own ? bound && bound->named == mention->named : same(mention->named->span, found->bound);
        cr_assert(right, "%s:%u: %s is bound at %u, not %u", path, found->span.begin, mention->name, found->bound.begin,
                  mention->named->span.begin);
        compared++;
    }
    close_file(&file);
    tile_arena_destroy(arena);
    return compared;
}

Test(mentions, are_bound_where_the_checker_finds_them) {
    static const char *const folders[] = {"stdlib", "tests/programs", "examples/*"};
    size_t compared = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char pattern[1024];
        glob_t found;
        snprintf(pattern, sizeof pattern, "%s/%s/*.tile", source_directory(), folders[i]);
        if (glob(pattern, 0, NULL, &found)) continue;
        for (size_t k = 0; k < found.gl_pathc; k++) compared += compare_file(found.gl_pathv[k]);
        globfree(&found);
    }
    cr_assert_gt(compared, 5000, "%zu names", compared);
}

/* The mention of the n-th occurrence of a word. */
static const TileMention *nth(const File *file, const char *word, unsigned n) {
    const char *at = file->text;
    for (;; at++) {
        at = strstr(at, word);
        cr_assert(at, "%s", word);
        if (!n--) break;
    }
    return tile_mention_at(file->mentions, (uint32_t)(at - file->text));
}

/* The annotation of the text where it first follows `before`. */
static const TileAnnotation *note(const File *file, const char *before, const char *text) {
    const char *at = strstr(file->text, before);
    cr_assert(at, "%s", before);
    at += strlen(before);
    TileSpan span = {file->ast->file, (uint32_t)(at - file->text), (uint32_t)(at - file->text + strlen(text))};
    const TileAnnotation *annotation = tile_annotation_of(&file->annotations, span);
    cr_assert(annotation, "%s", text);
    return annotation;
}

static const char kernel_text[] = "kernel rows[T: f16 | f32](x: in T[M, N], y: out T[M], z: out f32[2 * K])\n"
                                  "    tune B in {4} tune gpu C in {8}\n"
                                  "{\n"
                                  "    grid m in tiles(M, B) {\n"
                                  "        var total = zeros[B](f32)\n"
                                  "        for n in tiles(N, 16) {\n"
                                  "            let v = f32(x[m, n])\n"
                                  "            let w = x[m, n]\n"
                                  "            if N > 3 { let v = 7 }\n"
                                  "            total = total + sum(exp(v), axis = 1)\n"
                                  "        }\n"
                                  "        y[m] = T(total)\n"
                                  "    }\n"
                                  "}\n"
                                  "export rows[f16, B = 2] as half\n"
                                  "test \"t\" { let q = run half(x = ones(f16, 3, 4), K = 1) }\n";

Test(mentions, scopes) {
    File file;
    open_file(&file, "k.tile", kernel_text, sizeof kernel_text - 1);
    const TileMention *inner = nth(&file, "v = 7", 0), *used = nth(&file, "v), axis", 0), *outer = nth(&file, "v = f32", 0);
    cr_assert(inner->named && used->named && outer->named);
    cr_assert_neq(inner->named, used->named);
    cr_assert_eq(outer->named, used->named);
    cr_assert_eq(nth(&file, "K])", 0)->named, nth(&file, "K = 1)", 0)->named, "a dimension in a run");
    cr_assert_eq(nth(&file, "K])", 0)->named->kind, TILE_NAME_DIMENSION);
    cr_assert_eq(nth(&file, "B in {4}", 0)->named, nth(&file, "B = 2", 0)->named, "a tune name in an export");
    cr_assert_eq(nth(&file, "half", 0)->named, nth(&file, "half(", 0)->named, "an export in a run");
    cr_assert_eq(nth(&file, "x = ones", 0)->named, nth(&file, "x: in", 0)->named);
    cr_assert_null(nth(&file, "f32](", 0)->named, "a type");
    cr_assert_null(nth(&file, "zeros", 0)->named, "a built-in function");
    cr_assert(tile_named_reaches(outer->named, file.ast->file, used->span.begin));
    cr_assert_not(tile_named_reaches(inner->named, file.ast->file, used->span.begin));
    close_file(&file);
}

Test(annotations, types_extents_validity_cost) {
    File file;
    open_file(&file, "k.tile", kernel_text, sizeof kernel_text - 1);
    const TileAnnotation *load = note(&file, "f32(", "x[m, n]"), *v = note(&file, "let ", "v");
    cr_assert_str_eq(load->generic, "T");
    cr_assert_str_eq(load->type, "T");
    cr_assert_str_eq(load->shape, "[B, 16]");
    cr_assert_str_eq(load->instance, "B = 4");
    cr_assert_str_eq(load->cost, "reads at most 256 bytes");
    cr_assert_eq(load->invalid.count, 2);
    cr_assert_str_eq(load->invalid.items[0], "the lanes of `m` past M (axis 0), since `x[m, n]`");
    cr_assert(v->binds && !v->generic);
    const TileAnnotation *total = note(&file, "var ", "total");
    cr_assert(total->binds && total->is_var);
    cr_assert_str_eq(total->type, "f32");
    cr_assert_str_eq(total->shape, "[B]");
    cr_assert_str_eq(note(&file, "grid ", "m")->type, "range");
    close_file(&file);
}

/* Texts that are not right yet: names are found, whatever is missing. */
Test(mentions, of_broken_texts) {
    size_t length = sizeof kernel_text - 1;
    for (size_t cut = 0; cut < length; cut += 3) {
        File file;
        TileArena *arena = tile_arena_create(NULL);
        const char *text = tile_arena_string(arena, kernel_text, cut);
        open_file(&file, "cut.tile", text, cut);
        for (size_t i = 0; i < file.mentions->list.count; i++)
            cr_assert_leq(file.mentions->list.items[i].span.end, cut);
        close_file(&file);
        tile_arena_destroy(arena);
    }
}

/* Files in which a line is missing, or a word: what is left of broken items is annotated. */
Test(annotations, of_files_with_holes) {
    char pattern[1024];
    glob_t found;
    unsigned random = 1, broken = 0;
    snprintf(pattern, sizeof pattern, "%s/stdlib/*.tile", source_directory());
    cr_assert_eq(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        for (int hole = 0; hole < 8; hole++) {
            TileArena *arena = tile_arena_create(NULL);
            size_t length;
            char *text = read_file(arena, found.gl_pathv[i], &length);
            random = random * 1664525 + 1013904223;
            size_t begin = (random >> 8) % length, end = begin;
            while (end < length && text[end] != '\n' && (hole % 2 || text[end] != ' ')) end++;
            memset(text + begin, ' ', end - begin);
            File file;
            open_file(&file, found.gl_pathv[i], text, length);
            broken += file.diagnostics->error_count != 0;
            for (size_t k = 0; k < file.annotations.list.count; k++)
                cr_assert(file.annotations.list.items[k].type && file.annotations.list.items[k].shape);
            close_file(&file);
            tile_arena_destroy(arena);
        }
    globfree(&found);
    cr_assert_gt(broken, 20);
}
