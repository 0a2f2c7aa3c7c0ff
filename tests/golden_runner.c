/* golden_runner DIRECTORY: runs the RUN lines of every .tir file below the directory, in sorted order, in this one
 * process, and reports the files that fail.
 *
 *   // RUN: tile-opt %s --passes=dce | tile-check %s
 *   // RUN: not tile-opt %s --verify-only | tile-check %s --prefix=ERROR
 *
 * `%s` is the file. After `not` the command has to fail, and its errors are what tile-check reads. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/list.h"
#include "tools/tile_check.h"
#include "tools/tile_opt.h"

typedef TILE_LIST(const char *) Names;

enum { DEEPEST = 16 };

typedef struct Test {
    TileArena *arena;
    const char *path, *source;
    TileText errors;
} Test;

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static void collect(TileArena *arena, const char *directory, Names *files, int depth) {
    DIR *listing = depth < DEEPEST ? opendir(directory) : NULL;
    if (!listing) return;
    for (struct dirent *entry; (entry = readdir(listing));) {
        if (entry->d_name[0] == '.') continue;
        const char *path = tile_arena_format(arena, "%s/%s", directory, entry->d_name);
        struct stat status;
        if (stat(path, &status) != 0) continue;
        if (S_ISDIR(status.st_mode))
            collect(arena, path, files, depth + 1);
        else if (ends_with(path, ".tir"))
            tile_list_push(arena, files, path);
    }
    closedir(listing);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The words of a command up to `|` or the end; returns the rest. */
static const char *split(Test *test, const char *line, Names *words) {
    for (;;) {
        line += strspn(line, " \t\r");
        if (*line == 0 || *line == '\n') return NULL;
        if (*line == '|') return line + 1;
        size_t length = strcspn(line, " \t\r\n|");
        const char *word = tile_arena_string(test->arena, line, length);
        tile_list_push(test->arena, words, strcmp(word, "%s") == 0 ? test->path : word);
        line += length;
    }
}

static bool fail(Test *test, const char *reason) {
    tile_text_format(&test->errors, "%s\n", reason);
    return false;
}

static bool run_check(Test *test, const Names *words, const char *input) {
    const char *prefix = "CHECK";
    if (words->count < 2 || strcmp(words->items[0], "tile-check") != 0) return fail(test, "expected tile-check FILE");
    for (size_t i = 2; i < words->count; i++)
        if (strncmp(words->items[i], "--prefix=", strlen("--prefix=")) == 0)
            prefix = words->items[i] + strlen("--prefix=");
    return tile_check(test->source, input, prefix, &test->errors);
}

static bool run_line(Test *test, const char *line) {
    Names first = {0}, second = {0};
    const char *rest = split(test, line, &first);
    if (rest && split(test, rest, &second)) return fail(test, "more than one pipe");
    bool negated = first.count && strcmp(first.items[0], "not") == 0;
    const char *const *words = first.items + negated;
    size_t count = first.count - negated;
    if (!count || strcmp(words[0], "tile-opt") != 0) return fail(test, "expected tile-opt");
    TileText output = {.arena = test->arena}, errors = {.arena = test->arena};
    int status = tile_opt((int)count - 1, words + 1, &output, &errors);
    if ((status != 0) != negated) {
        tile_text_add(&test->errors, tile_text_get(&errors));
        return fail(test, negated ? "tile-opt succeeds" : "tile-opt fails");
    }
    if (!rest) return true;
    if (run_check(test, &second, tile_text_get(negated ? &errors : &output))) return true;
    tile_text_format(&test->errors, "---- output ----\n%s----\n", tile_text_get(negated ? &errors : &output));
    return false;
}

static bool run_file(const char *path) {
    Test test = {.arena = tile_arena_create(NULL), .path = path};
    if (!test.arena) return false;
    test.errors.arena = test.arena;
    TileText source = {.arena = test.arena};
    bool good = tile_opt_read_file(path, &source, &test.errors);
    test.source = tile_text_get(&source);
    unsigned lines = 0;
    for (const char *at = test.source; good && (at = strstr(at, "// RUN:")); lines++) {
        at += strlen("// RUN:");
        good = run_line(&test, at);
    }
    if (good && !lines) good = fail(&test, "the file has no RUN line");
    if (!good) printf("FAIL %s\n%s\n", path, tile_text_get(&test.errors));
    fflush(stdout);
    tile_arena_destroy(test.arena);
    return good;
}

int main(int argc, char **argv) {
    TileArena *arena = tile_arena_create(NULL);
    if (argc < 2 || !arena) {
        fputs("usage: golden_runner DIRECTORY\n", stderr);
        return 1;
    }
    Names files = {0};
    collect(arena, argv[1], &files, 0);
    if (files.count) qsort(files.items, files.count, sizeof *files.items, compare_names);
    size_t failed = 0;
    for (size_t i = 0; i < files.count; i++) failed += !run_file(files.items[i]);
    printf("golden: %zu files, %zu failed\n", files.count, failed);
    tile_arena_destroy(arena);
    return failed ? 1 : 0;
}
