/* Any text gives diagnostics or verified tile form: never a crash, an internal error, or a hang.
 *
 * With libFuzzer (clang -fsanitize=fuzzer -DTILE_LIBFUZZER) this is its target. Without it, it is a program:
 *    fuzz_parser FILE|FOLDER..
 * which replays the files and then tries MUTATIONS mutations of them, or mutations for TILE_SOAK_SECONDS seconds, with
 * the seed TILE_SOAK_SEED. A text with an internal error is printed and ends the program. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "parser/check/program.h"
#include "parser/syntax/syntax.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tile_status check(TileArena *arena, TileContext *context, TileDiagnostics *diagnostics, const char *text,
                         size_t size) {
    TileAst *ast;
    TileProgramInfo info;
    TILE_TRY(tile_parse_file(arena, diagnostics, "fuzz.tile", text, size, &ast));
    TILE_TRY(tile_resolve_imports(diagnostics, ast, NULL));
    TILE_TRY(tile_list_kernels(diagnostics, ast, &info));
    return tile_check_module(context, diagnostics, ast, true, NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    TileArena *arena = tile_arena_create(NULL);
    TileContext *context = tile_ir_context_create();
    TileDiagnostics *diagnostics = tile_diagnostics_create(arena);
    TileText text = {.arena = arena};
    tile_status status = check(arena, context, diagnostics, (const char *)data, size);
    tile_diagnostics_render(diagnostics, &text, size % 2);
    tile_diagnostics_render_json(diagnostics, &text);
    bool silent = status == TILE_INVALID_SOURCE && !diagnostics->error_count;
    if (status == TILE_INTERNAL || silent) {
        fprintf(stderr, "%s\n---- the text:\n", tile_text_get(&text));
        fwrite(data, 1, size, stderr);
        abort();
    }
    tile_ir_context_destroy(context);
    tile_arena_destroy(arena);
    return 0;
}

#ifndef TILE_LIBFUZZER

typedef struct Text {
    uint8_t *data;
    size_t size;
} Text;

typedef struct Corpus {
    Text *items;
    size_t count;
    uint64_t random;
} Corpus;

static uint64_t next_random(Corpus *corpus) {
    corpus->random ^= corpus->random << 13;
    corpus->random ^= corpus->random >> 7;
    return corpus->random ^= corpus->random << 17;
}

static size_t below(Corpus *corpus, size_t limit) { return limit ? next_random(corpus) % limit : 0; }

static void add_file(Corpus *corpus, const char *path) {
    FILE *file = fopen(path, "rb");
    Text text = {malloc(1 << 16), 0};
    if (!file || !text.data) {
        fprintf(stderr, "fuzz_parser: cannot read %s\n", path);
        exit(2);
    }
    text.size = fread(text.data, 1, 1 << 16, file);
    fclose(file);
    corpus->items = realloc(corpus->items, (corpus->count + 1) * sizeof *corpus->items);
    corpus->items[corpus->count++] = text;
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void add_path(Corpus *corpus, const char *path) {
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        add_file(corpus, path);
        return;
    }
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, compare_names);
    for (int i = 0; i < count; i++) {
        char name[8192];
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (strstr(entries[i]->d_name, ".tile")) add_file(corpus, name);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

static bool is_word(uint8_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The bounds of the word or other character at a random position. */
static void pick_word(Corpus *corpus, const Text *text, size_t *begin, size_t *end) {
    *begin = *end = below(corpus, text->size);
    if (!text->size) return;
    while (*begin > 0 && is_word(text->data[*begin]) && is_word(text->data[*begin - 1])) --*begin;
    ++*end;
    while (*end < text->size && is_word(text->data[*end - 1]) && is_word(text->data[*end])) ++*end;
}

/* Replaces begin .. end of the text, whose buffer has more than twice its original size. */
static void splice(Text *text, size_t capacity, size_t begin, size_t end, const uint8_t *with, size_t size) {
    if (text->size - (end - begin) + size > capacity) return;
    memmove(text->data + begin + size, text->data + end, text->size - end);
    memmove(text->data + begin, with, size);
    text->size += size - (end - begin);
}

static void mutate(Corpus *corpus, Text *text, size_t capacity) {
    static const char *const pieces[] = {"else 0",
                                         "-1",
                                         "0",
                                         "(",
                                         ")",
                                         "[",
                                         "]",
                                         "{",
                                         "}",
                                         "\n",
                                         "tiles(N, 4)",
                                         " + 1",
                                         " else skip",
                                         "var a = ",
                                         "N",
                                         "static",
                                         "9223372036854775807",
                                         ".T",
                                         "[_, :]",
                                         "inf",
                                         "if n.start > 0 { break }",
                                         "\xff",
                                         "\"",
                                         "/*",
                                         "return",
                                         "f32",
                                         "while true {"};
    const Text *other = &corpus->items[below(corpus, corpus->count)];
    size_t begin, end, from, to;
    uint8_t copy[1024];
    pick_word(corpus, text, &begin, &end);
    pick_word(corpus, other, &from, &to);
    const char *piece = pieces[below(corpus, sizeof pieces / sizeof *pieces)];
    switch (below(corpus, 6)) {
    case 0: splice(text, capacity, begin, end, (const uint8_t *)"", 0); break;
    case 1: splice(text, capacity, begin, end, other->data + from, to - from); break;
    case 2: splice(text, capacity, begin, begin, (const uint8_t *)piece, strlen(piece)); break;
    case 3: splice(text, capacity, begin, end, (const uint8_t *)piece, strlen(piece)); break;
    case 4:
        if (text->size) text->data[below(corpus, text->size)] = (uint8_t)next_random(corpus);
        break;
    default:
        to = from + below(corpus, sizeof copy);
        if (to > other->size) to = other->size;
        memcpy(copy, other->data + from, to - from);
        splice(text, capacity, begin, begin, copy, to - from);
        break;
    }
}

static void try_mutation(Corpus *corpus) {
    enum { CAPACITY = 1 << 17 };
    const Text *seed = &corpus->items[below(corpus, corpus->count)];
    Text text = {malloc(CAPACITY), seed->size};
    memcpy(text.data, seed->data, seed->size);
    for (size_t n = 1 + below(corpus, 4); n > 0; n--) mutate(corpus, &text, CAPACITY);
    LLVMFuzzerTestOneInput(text.data, text.size);
    free(text.data);
}

enum { MUTATIONS = 15000 };

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    Corpus corpus = {.random = 0x9e3779b97f4a7c15u};
    const char *seconds = getenv("TILE_SOAK_SECONDS"), *seed = getenv("TILE_SOAK_SEED");
    if (seed) corpus.random ^= strtoull(seed, NULL, 10) * 2 + 1;
    for (int i = 1; i < argc; i++) add_path(&corpus, argv[i]);
    for (size_t i = 0; i < corpus.count; i++) LLVMFuzzerTestOneInput(corpus.items[i].data, corpus.items[i].size);
    unsigned long tried = 0;
    double end = seconds ? seconds_now() + atof(seconds) : 0;
    for (; corpus.count && (seconds ? seconds_now() < end : tried < MUTATIONS); tried++) try_mutation(&corpus);
    printf("fuzz_parser: %zu texts, %lu mutations\n", corpus.count, tried);
    for (size_t i = 0; i < corpus.count; i++) free(corpus.items[i].data);
    free(corpus.items);
    return 0;
}
#endif
