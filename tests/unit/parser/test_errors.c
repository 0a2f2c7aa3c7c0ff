/* tests/errors: one wrong program in each file, with what has to be reported written on the offending line:
 *
 *     let a = b   //! error[unknown-name]: nothing is named `b`   //! at: b
 *                 //! edit: ..            the edit that this diagnostic proposes, \n being a new line; without, it has
 * none
 *                 //! note: ..            words of one of its notes
 *     //! error(+1)[code]: text           the same for the line below (-1: above)
 *     //! lower: kernel T=f32 BM=128      lowers this instance instead of checking the file
 *
 * `at` is the text that the mark underlines, up to the end of its line; a directive ends before the next one. What is
 * reported has to be exactly what is expected. Each proposed edit is then made, alone: its diagnostic has to be gone,
 * and nothing may be reported that was not before. So the program compiles where it has but one mistake. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "running.h"
#include "parser/syntax/syntax.h"

typedef struct Expected {
    uint32_t line;
    const char *kind, *code, *text, *at, *edit, *note;
    bool met;
} Expected;

typedef struct Case {
    TileArena *arena;
    const char *name, *text;
    size_t length;
    TileDiagnostics *diagnostics;
    TILE_LIST(Expected) expected;
    const char *lower; /* "kernel A=1 B=2", or NULL */
    unsigned failures;
} Case;

static void complain(Case *test, uint32_t line, const char *what, const char *text) {
    test->failures++;
    fprintf(stderr, "%s:%u: %s: %s\n", test->name, line, what, text);
}

/* `at: ..`, `edit: ..` and `note: ..` belong to the preceding diagnostic. */
static bool read_detail(Case *test, const char *c) {
    Expected *last = test->expected.count ? &test->expected.items[test->expected.count - 1] : NULL;
    if (!last) return false;
    if (strncmp(c, "at:", 3) == 0)
        last->at = c + 3 + (c[3] == ' ');
    else if (strncmp(c, "edit:", 5) == 0)
        last->edit = c + 5 + (c[5] == ' ');
    else if (strncmp(c, "note: ", 6) == 0)
        last->note = c + 6;
    else
        return false;
    return true;
}

static void read_directive(Case *test, uint32_t line, const char *text, size_t length) {
    while (length && text[length - 1] == ' ') length--;
    char *copy = tile_arena_string(test->arena, text, length), *c = copy;
    if (strncmp(c, "lower: ", 7) == 0) {
        test->lower = c + 7;
        return;
    }
    if (read_detail(test, c)) return;
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
    TileText written = {.arena = test->arena};
    for (const char *c = d->has_edit ? d->replacement : "(none)"; *c; c++)
        *c == '\n' ? tile_text_add(&written, "\\n") : tile_text_add_char(&written, *c);
    const char *edit = tile_text_get(&written);
    if (strcmp(edit, expected->edit ? expected->edit : "(none)") != 0)
        complain(test, expected->line, "the edit is", edit);
}

static void check_place(Case *test, const Expected *expected, const TileDiagnostic *d) {
    const TileSourceFile *file = &test->diagnostics->files.items[d->span.file];
    size_t length = strcspn(file->text + d->span.begin, "\n");
    if (length > d->span.end - d->span.begin) length = d->span.end - d->span.begin;
    char *at = tile_arena_string(test->arena, file->text + d->span.begin, length);
    char *directive = strstr(at, "   //! ");
    if (directive) *directive = 0;
    if (!expected->at || strcmp(at, expected->at) != 0) complain(test, expected->line, "the mark is at", at);
}

static void check_note(Case *test, const Expected *expected, const TileDiagnostic *d) {
    if (!expected->note) return;
    for (size_t i = 0; i < d->notes.count; i++)
        if (strstr(d->notes.items[i].message, expected->note)) return;
    complain(test, expected->line, "no note says", expected->note);
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
        check_place(test, expected, d);
        check_note(test, expected, d);
        check_edit(test, expected, d);
        return;
    }
    TileText text = {.arena = test->arena};
    tile_diagnostic_render(test->diagnostics, d, &text, false);
    complain(test, line, "not expected", tile_text_get(&text));
}

static tile_status lower_instance(const Case *test, TileContext *context, TileDiagnostics *diagnostics, TileAst *ast) {
    char *words = tile_arena_string(test->arena, test->lower, strlen(test->lower)), *rest = words + strcspn(words, " ");
    TileBinding bindings[16];
    TileModule *module = NULL;
    if (*rest) *rest++ = 0;
    for (char *c = rest; *c; c++)
        if (*c == ' ') *c = ',';
    unsigned count = read_bindings(test->arena, rest, bindings);
    tile_status status = tile_lower_kernel(context, diagnostics, ast, words, bindings, count, &module);
    tile_module_destroy(module);
    return status;
}

/* The diagnostics of a text, which the result borrows. */
static TileDiagnostics *diagnose(const Case *test, const char *text, size_t length) {
    TileDiagnostics *diagnostics = tile_diagnostics_create(test->arena);
    TileContext *context = tile_ir_context_create();
    TileImporter importer = test_importer(test->arena);
    TileAst *ast;
    tile_status status = tile_parse_file(test->arena, diagnostics, test->name, text, length, &ast);
    tile_status imported = tile_resolve_imports(diagnostics, ast, &importer);
    if (status == TILE_OK && imported == TILE_OK && test->lower)
        status = lower_instance(test, context, diagnostics, ast);
    else if (imported == TILE_OK) /* only items without syntax errors are checked */
        status = tile_check_module(context, diagnostics, ast, true, NULL, NULL);
    cr_expect_neq(status, TILE_INTERNAL, "%s", test->name);
    tile_ir_context_destroy(context);
    return diagnostics;
}

/* Is `d` one of the diagnostics of the case, other than the edited one? Each is matched at most once. */
static bool was_there(const Case *test, const TileDiagnostic *edited, const TileDiagnostic *d, bool *counted) {
    for (size_t i = 0; i < test->diagnostics->list.count; i++) {
        const TileDiagnostic *old = test->diagnostics->list.items[i];
        if (old == edited || counted[i] || old->code != d->code || strcmp(old->message, d->message) != 0) continue;
        return counted[i] = true;
    }
    return false;
}

static void apply_edit(Case *test, const TileDiagnostic *edited) {
    uint32_t line, column;
    TileText text = {.arena = test->arena};
    tile_text_format(&text, "%.*s%s%s", (int)edited->edit.begin, test->text, edited->replacement,
                     test->text + edited->edit.end);
    const char *result = tile_text_get(&text);
    TileDiagnostics *diagnostics = diagnose(test, result, strlen(result));
    bool *counted = TILE_NEW_ARRAY(test->arena, bool, test->diagnostics->list.count);
    tile_source_position(test->diagnostics, edited->edit.file, edited->edit.begin, &line, &column);
    for (size_t i = 0; i < diagnostics->list.count; i++) {
        const TileDiagnostic *d = diagnostics->list.items[i];
        if (was_there(test, edited, d, counted)) continue;
        TileText left = {.arena = test->arena};
        tile_diagnostic_render(diagnostics, d, &left, false);
        complain(test, line, "the edit leads to", tile_text_get(&left));
    }
}

static unsigned run_case(const char *path, const char *name, bool *codes, unsigned *edits) {
    TileArena *arena = tile_arena_create(NULL);
    Case test = {.arena = arena, .name = name};
    test.text = read_file(arena, path, &test.length);
    read_directives(&test, test.text);
    test.diagnostics = diagnose(&test, test.text, test.length);
    for (size_t i = 0; i < test.diagnostics->list.count; i++) {
        const TileDiagnostic *d = test.diagnostics->list.items[i];
        codes[d->code] = true;
        match(&test, d);
        if (!d->has_edit || d->edit.file != 1) continue;
        apply_edit(&test, d);
        ++*edits;
    }
    for (size_t i = 0; i < test.expected.count; i++)
        if (!test.expected.items[i].met)
            complain(&test, test.expected.items[i].line, "not reported", test.expected.items[i].code);
    if (!test.expected.count) complain(&test, 1, "expects nothing", name);
    unsigned failures = test.failures;
    tile_arena_destroy(arena);
    return failures;
}

/* Codes that no text of tests/errors can have, with the test that has them. */
static bool tested_elsewhere(TileDiagnosticCode code) {
    return code == TILE_DIAGNOSTIC_INTERNAL ||    /* a bug of the compiler */
           code == TILE_DIAGNOSTIC_BAD_UTF8 ||    /* test_text.c: such bytes cannot be in a file of the repository */
           code == TILE_DIAGNOSTIC_TOO_LARGE ||   /* test_text.c */
           code == TILE_DIAGNOSTIC_EXPORT_OPEN || /* tests/cli/build.sh: a check does not report it */
           code == TILE_DIAGNOSTIC_IR_SYNTAX ||   /* tests/unit/driver/test_ir.c, also the next one */
           code == TILE_DIAGNOSTIC_IR_INVALID ||
           code == TILE_DIAGNOSTIC_TOO_MUCH_CODE || /* tests/cli/limits.sh, also the next ones */
           code == TILE_DIAGNOSTIC_LONG_HEADER || code == TILE_DIAGNOSTIC_MANY_PARAMETERS ||
           code == TILE_DIAGNOSTIC_MANY_FILES ||
           code == TILE_DIAGNOSTIC_TUNE_POINTS || code == TILE_DIAGNOSTIC_TILE_TOO_LARGE ||
           code == TILE_DIAGNOSTIC_TEST_FAILED || /* tests/cli/test.sh, also the next one */
           code == TILE_DIAGNOSTIC_TEST_STOPPED || code == TILE_DIAGNOSTIC_TOO_DEEP || /* test_text.c */
           code == TILE_DIAGNOSTIC_TOO_MANY_OPS;                                       /* test_text.c */
}

Test(errors, every_wrong_program) {
    bool codes[TILE_DIAGNOSTIC_COUNT] = {false};
    char directory[4096], path[8192];
    unsigned files = 0, failures = 0, edits = 0;
    snprintf(directory, sizeof directory, "%s/tests/errors", source_directory());
    DIR *handle = opendir(directory);
    cr_assert_not_null(handle, "%s", directory);
    for (struct dirent *entry; (entry = readdir(handle));) {
        size_t length = strlen(entry->d_name);
        if (length < 6 || strcmp(entry->d_name + length - 5, ".tile") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        failures += run_case(path, entry->d_name, codes, &edits);
        files++;
    }
    closedir(handle);
    cr_expect_geq(files, 950, "%u wrong programs", files);
    cr_expect_geq(edits, 500, "%u edits made", edits);
    cr_expect_eq(failures, 0, "%u of the expectations of %u files failed", failures, files);
    for (int code = 0; code < TILE_DIAGNOSTIC_COUNT; code++)
        cr_expect(codes[code] || tested_elsewhere((TileDiagnosticCode)code), "no wrong program for [%s]",
                  tile_diagnostic_name((TileDiagnosticCode)code));
}
