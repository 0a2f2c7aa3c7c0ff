/* tests/errors: one wrong program in each file, with what has to be reported written on the offending line:
 *
 *     let a = b   //! error[unknown-name]: nothing is named `b`
 *                 //! edit: ..            the edit that this line's diagnostic proposes
 *     //! error(+1)[code]: text           the same for the line below (-1: above)
 *     //! lower: kernel T=f32 BM=128      lowers this instance instead of checking the file
 *
 * What is reported has to be exactly what is expected. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "running.h"

typedef struct Expected {
    uint32_t line;
    const char *kind, *code, *text, *edit;
    bool met;
} Expected;

typedef struct Case {
    TileArena *arena;
    const char *name;
    TileDiagnostics *diagnostics;
    TILE_LIST(Expected) expected;
    const char *lower; /* "kernel A=1 B=2", or NULL */
    unsigned failures;
} Case;

static void complain(Case *test, uint32_t line, const char *what, const char *text) {
    test->failures++;
    fprintf(stderr, "%s:%u: %s: %s\n", test->name, line, what, text);
}

static void read_directive(Case *test, uint32_t line, const char *text, size_t length) {
    char *copy = tile_arena_string(test->arena, text, length), *c = copy;
    if (strncmp(c, "lower: ", 7) == 0) {
        test->lower = c + 7;
        return;
    }
    if (strncmp(c, "edit: ", 6) == 0) {
        if (test->expected.count) test->expected.items[test->expected.count - 1].edit = c + 6;
        return;
    }
    Expected expected = {.line = line, .kind = c};
    c += strcspn(c, "([");
    if (*c == '(') {
        *c++ = 0;
        expected.line = (uint32_t)((long)line + strtol(c, &c, 10));
        c += *c == ')';
    }
    if (*c != '[') {
        complain(test, line, "no such directive", copy);
        return;
    }
    *c++ = 0;
    expected.code = c;
    c += strcspn(c, "]");
    *c++ = 0;
    expected.text = c + (c[0] == ':') + (c[0] == ':' && c[1] == ' ');
    tile_list_push(test->arena, &test->expected, expected);
}

static void read_directives(Case *test, const char *text) {
    uint32_t line = 1;
    for (const char *c = text; *c; line++) {
        size_t length = strcspn(c, "\n");
        for (const char *at = c; (at = strstr(at, "//! ")) && at < c + length;) {
            const char *end = strstr(at + 4, " //! ");
            if (!end || end > c + length) end = c + length;
            read_directive(test, line, at + 4, (size_t)(end - at - 4));
            at = end;
        }
        c += length + (c[length] == '\n');
    }
}

static void check_edit(Case *test, const Expected *expected, const TileDiagnostic *d) {
    if (!expected->edit) return;
    const char *edit = d->has_edit ? d->replacement : "(none)";
    if (strcmp(edit, expected->edit) != 0) complain(test, expected->line, "the edit is", edit);
}

static void match(Case *test, const TileDiagnostic *d) {
    uint32_t line, column;
    tile_source_position(test->diagnostics, d->span.file, d->span.begin, &line, &column);
    const char *kind = d->severity == TILE_SEVERITY_ERROR ? "error" : "warning";
    for (size_t i = 0; i < test->expected.count; i++) {
        Expected *expected = &test->expected.items[i];
        bool same = !expected->met && expected->line == line && strcmp(expected->kind, kind) == 0 &&
                    strcmp(expected->code, tile_diagnostic_name(d->code)) == 0 && strstr(d->message, expected->text);
        if (!same) continue;
        expected->met = true;
        check_edit(test, expected, d);
        return;
    }
    TileText text = {.arena = test->arena};
    tile_diagnostic_render(test->diagnostics, d, &text, false);
    complain(test, line, "not expected", tile_text_get(&text));
}

static void lower_instance(Case *test, TileContext *context, TileAst *ast) {
    char *words = tile_arena_string(test->arena, test->lower, strlen(test->lower)), *rest = words + strcspn(words, " ");
    TileBinding bindings[16];
    TileModule *module = NULL;
    if (*rest) *rest++ = 0;
    for (char *c = rest; *c; c++)
        if (*c == ' ') *c = ',';
    unsigned count = read_bindings(test->arena, rest, bindings);
    tile_status status = tile_lower_kernel(context, test->diagnostics, ast, words, bindings, count, &module);
    cr_expect_neq(status, TILE_INTERNAL);
    tile_module_destroy(module);
}

static unsigned run_case(const char *path, const char *name, bool *codes) {
    TileArena *arena = tile_arena_create(NULL);
    Case test = {.arena = arena, .name = name, .diagnostics = tile_diagnostics_create(arena)};
    TileContext *context = tile_ir_context_create();
    TileImporter importer = test_importer(arena);
    size_t length;
    const char *text = read_file(arena, path, &length);
    TileAst *ast;
    read_directives(&test, text);
    tile_status status = tile_parse_file(arena, test.diagnostics, name, text, length, &ast);
    tile_status imported = tile_resolve_imports(test.diagnostics, ast, &importer);
    if (status == TILE_OK && imported == TILE_OK && test.lower)
        lower_instance(&test, context, ast);
    else if (imported == TILE_OK) /* items without syntax errors are checked */
        status = tile_check_module(context, test.diagnostics, ast);
    cr_expect_neq(status, TILE_INTERNAL, "%s", name);
    for (size_t i = 0; i < test.diagnostics->list.count; i++) {
        codes[test.diagnostics->list.items[i]->code] = true;
        match(&test, test.diagnostics->list.items[i]);
    }
    for (size_t i = 0; i < test.expected.count; i++)
        if (!test.expected.items[i].met)
            complain(&test, test.expected.items[i].line, "not reported", test.expected.items[i].code);
    if (!test.expected.count) complain(&test, 1, "expects nothing", name);
    unsigned failures = test.failures;
    tile_ir_context_destroy(context);
    tile_arena_destroy(arena);
    return failures;
}

/* Codes that no text of tests/errors can bring about, with the test that does. */
static bool tested_elsewhere(TileDiagnosticCode code) {
    return code == TILE_DIAGNOSTIC_INTERNAL ||    /* a bug of the compiler */
           code == TILE_DIAGNOSTIC_BAD_UTF8 ||    /* test_text.c: such bytes do not belong into a repository */
           code == TILE_DIAGNOSTIC_TOO_LARGE ||   /* test_text.c */
           code == TILE_DIAGNOSTIC_EXPORT_OPEN || /* tests/cli/build.sh: a check leaves it open */
           code == TILE_DIAGNOSTIC_TEST_FAILED || /* tests/cli/test.sh, and so the next */
           code == TILE_DIAGNOSTIC_TEST_STOPPED || code == TILE_DIAGNOSTIC_TOO_DEEP || /* test_text.c */
           code == TILE_DIAGNOSTIC_TOO_MANY_OPS;                                       /* test_text.c */
}

Test(errors, every_wrong_program) {
    bool codes[TILE_DIAGNOSTIC_COUNT] = {false};
    char directory[4096], path[8192];
    unsigned files = 0, failures = 0;
    snprintf(directory, sizeof directory, "%s/tests/errors", source_directory());
    DIR *handle = opendir(directory);
    cr_assert_not_null(handle, "%s", directory);
    for (struct dirent *entry; (entry = readdir(handle));) {
        size_t length = strlen(entry->d_name);
        if (length < 6 || strcmp(entry->d_name + length - 5, ".tile") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        failures += run_case(path, entry->d_name, codes);
        files++;
    }
    closedir(handle);
    cr_expect_eq(failures, 0, "%u of the expectations of %u files failed", failures, files);
    for (int code = 0; code < TILE_DIAGNOSTIC_COUNT; code++)
        cr_expect(codes[code] || tested_elsewhere((TileDiagnosticCode)code), "no wrong program for [%s]",
                  tile_diagnostic_name((TileDiagnosticCode)code));
}
