/* tilec test: runs the `test` blocks of files on every requested target. */
#include "tools/test.h"

#include <stdio.h>
#include <string.h>

#include "launch/clock.h"
#include "launch/report.h"
#include "tools/file.h"
#include "tools/folder.h"
#include "tools/junit.h"
#include "tools/replace.h"
#include "tools/session.h"

typedef struct Testing {
    TileSession *session;
    TileCompiler *compiler;
    const char *filter;
    const char *targets[TILE_TEST_TARGETS + 1];
    unsigned target_count;
    uint32_t flags;
    const char *path;
    unsigned run, failed;
    const char *junit_path; /* NULL: no such file is wanted */
    TileJunit junit;
    TileText json; /* objects, separated by commas */
    TileText message;
} Testing;

/* ---- what is said ---- */

/* Shows a test's diagnostics and removes them from the list, since the same assertion may fail on the next target. They
 * are added to `plain`, too. */
static bool show_failures(Testing *testing, TileDiagnostics *list, TileDiagnosticsMark mark, TileText *plain) {
    bool failed = list->list.count > mark.count;
    for (size_t i = mark.count; i < list->list.count && testing->junit_path; i++)
        tile_diagnostic_render(list, list->list.items[i], plain, false);
    for (size_t i = mark.count; i < list->list.count; i++) {
        TileText text = {.arena = testing->session->arena};
        if (testing->session->json) {
            if (testing->json.length) tile_text_add(&testing->json, ",\n ");
            tile_diagnostic_render_json(list, list->list.items[i], &testing->json);
            continue;
        }
        tile_diagnostic_render(list, list->list.items[i], &text, tile_session_colour(testing->session));
        fflush(stdout);
        fputs(tile_text_get(&text), stderr);
    }
    tile_diagnostics_rewind(list, mark);
    return failed;
}

/* "path: name: ok (interp, cpu)", with the targets that have this result. */
static void show_line(Testing *testing, const char *name, uint32_t failed) {
    if (testing->session->json || (testing->session->quiet && !failed)) return;
    printf("%s: %s: %s (", testing->path, name, failed ? "FAILED" : "ok");
    bool first = true;
    for (unsigned t = 0; t < testing->target_count; t++) {
        if (failed && !(failed >> t & 1u)) continue;
        printf("%s%s", first ? "" : ", ", testing->targets[t]);
        first = false;
    }
    puts(")");
}

/* ---- files ---- */

static tile_status run_test(Testing *testing, TileTestFile *file, const TileItem *item) {
    uint32_t failed = 0;
    for (unsigned t = 0; t < testing->target_count; t++) {
        TileDiagnosticsMark mark = tile_diagnostics_mark(file->unit->diagnostics);
        TileText plain = {.arena = testing->session->arena};
        uint64_t start = tile_clock_ns();
        TILE_TRY(tile_test_run(file, item, t, &testing->message));
        TileJunitCase result = {testing->path, item->name, testing->targets[t], NULL, 0};
        result.seconds = (double)(tile_clock_ns() - start) * 1e-9;
        if (show_failures(testing, file->unit->diagnostics, mark, &plain)) {
            failed |= 1u << t;
            result.failure = tile_text_get(&plain);
        }
        if (testing->junit_path) tile_junit_add(&testing->junit, &result);
    }
    testing->run++;
    testing->failed += failed != 0;
    show_line(testing, item->name, failed);
    return TILE_OK;
}

static tile_status run_tests(TileUnit *unit, void *state) {
    Testing *testing = state;
    TileTestFile file = {
        .unit = unit, .compiler = testing->compiler, .flags = testing->flags, .targets = testing->targets};
    tile_status status = tile_check_module(unit->context, unit->diagnostics, unit->ast, unit->verify, NULL, NULL);
    for (size_t i = 0; i < unit->ast->items.count && status == TILE_OK; i++) {
        const TileItem *item = unit->ast->items.items[i];
        bool chosen = item->kind == TILE_ITEM_TEST && (!testing->filter || strstr(item->name, testing->filter));
        if (chosen) status = run_test(testing, &file, item);
    }
    for (size_t i = 0; i < file.libraries.count; i++) tile_library_destroy(file.libraries.items[i].library);
    return status;
}

/* The file itself is wrong, or cannot be read: a result like those of its tests. */
static void note_file(Testing *testing, const char *why) {
    if (testing->junit_path)
        tile_junit_add(&testing->junit, &(TileJunitCase){testing->path, "the file", NULL, why, 0});
}

static int test_text(Testing *testing, const char *text, size_t length) {
    TileSession *session = testing->session;
    TileCompileOptions options = {
        .struct_size = sizeof options, .file = testing->path, .target = "interp", .flags = testing->flags};
    TileReport *report = NULL;
    TileInput *input = NULL;
    testing->message = (TileText){.arena = session->arena};
    tile_status status = tile_input_create(testing->compiler, text, length, &options, &input, &report);
    if (status == TILE_OK) {
        status = tile_unit_run(input, run_tests, testing, &report);
        tile_input_destroy(input);
    }
    const char *words = tile_text_get(&testing->message);
    if (status != TILE_OK)
        note_file(testing, report ? tile_report_text(report, false) : *words ? words : tile_status_text(status));
    if (status != TILE_OK && !report && *words)
        return tile_session_fail(session, status, "%s: %s", testing->path, words);
    return tile_session_report(session, status, report);
}

static int test_file(Testing *testing) {
    TileSession *session = testing->session;
    TileText error = {.arena = session->arena};
    char *text;
    size_t length;
    tile_status status = tile_file_read(session->arena, testing->path, &text, &length, &error);
    if (status == TILE_OK) return test_text(testing, text, length);
    note_file(testing, tile_text_get(&error));
    return tile_session_fail(session, status, "%s", tile_text_get(&error));
}

/* ---- the command ---- */

/* "interp,avx2". */
static int read_targets(Testing *testing, const char *list) {
    TileSession *session = testing->session;
    while (*list) {
        size_t length = strcspn(list, ",");
        const char *name = tile_arena_string(session->arena, list, length);
        TileTargetInfo info;
        size_t i = 0;
        while (tile_target_at(i, &info) && strcmp(info.name, name) != 0) i++;
        if (!tile_target_at(i, &info))
            return tile_session_fail(session, TILE_INVALID_ARGUMENT, "unknown target '%s'; see `tilec backends`", name);
        if (!info.usable && !(testing->flags & TILE_COMPILE_EMULATE))
            return tile_session_fail(session, TILE_UNAVAILABLE, "%s cannot run here: %s", name, info.why_not);
        if (testing->target_count == TILE_TEST_TARGETS)
            return tile_session_fail(session, TILE_INVALID_ARGUMENT, "at most %d targets", (int)TILE_TEST_TARGETS);
        testing->targets[testing->target_count++] = name;
        list += length + (list[length] == ',');
    }
    return testing->target_count ? 0 : tile_session_fail(session, TILE_INVALID_ARGUMENT, "--target needs a name");
}

/* Removes options and keeps files; *count is their number. */
static int read_options(Testing *testing, char **words, int *count) {
    int files = 0;
    const char *targets = "interp,cpu";
    for (int i = 0; i < *count; i++) {
        const char *target = tile_option_value(words[i], "--target"), *filter = tile_option_value(words[i], "--filter");
        const char *junit = tile_option_value(words[i], "--junit");
        if (target)
            targets = target;
        else if (filter)
            testing->filter = filter;
        else if (junit && *junit)
            testing->junit_path = junit;
        else if (strcmp(words[i], "--emulate") == 0)
            testing->flags |= TILE_COMPILE_EMULATE;
        else if (strcmp(words[i], "--debug") == 0)
            testing->flags |= TILE_COMPILE_DEBUG;
        else if (strcmp(words[i], "--no-contract") == 0)
            testing->flags |= TILE_COMPILE_NO_CONTRACT;
        else if (*words[i] == '-' && words[i][1])
            return tile_session_unknown(testing->session, words[i]);
        else
            words[files++] = words[i];
    }
    *count = files;
    if (!files) return tile_session_fail(testing->session, TILE_INVALID_ARGUMENT, "no file; see `tilec help test`");
    return read_targets(testing, targets);
}

static int write_junit(Testing *testing) {
    TileText text = {.arena = testing->session->arena}, error = {.arena = testing->session->arena};
    if (!testing->junit_path) return 0;
    tile_junit_print(&testing->junit, &text);
    tile_status status = tile_file_write(testing->junit_path, tile_text_get(&text), text.length, &error);
    return status == TILE_OK ? 0 : tile_session_fail(testing->session, status, "%s", tile_text_get(&error));
}

/* A filter that matches nothing is misspelt, or the test is gone: not all is well. */
static int check_filter(Testing *testing, int worst) {
    if (worst || testing->run || !testing->filter) return worst;
    return tile_session_fail(testing->session, TILE_INVALID_ARGUMENT, "no test's name contains '%s'", testing->filter);
}

static int finish(Testing *testing, int worst) {
    if (testing->session->json && testing->json.length)
        fprintf(stderr, "[%s]\n", tile_text_get(&testing->json));
    else if (!testing->session->json)
        printf("%u test%s, %u failed\n", testing->run, testing->run == 1 ? "" : "s", testing->failed);
    if (testing->failed && worst < 1) worst = 1;
    int written = write_junit(testing);
    if (written > worst) worst = written;
    worst = check_filter(testing, worst);
    int finished = tile_session_finish(testing->session);
    return finished > worst ? finished : worst;
}

int tile_command_test(TileSession *session, char **words, int count) {
    Testing testing = {
        .session = session, .json = {.arena = session->arena}, .junit = {.arena = session->arena}};
    int worst = tile_folder_expand(session, &words, &count);
    if (!worst) worst = read_options(&testing, words, &count);
    if (worst) return worst;
    worst = tile_session_compiler(session, NULL, 0, &testing.compiler);
    if (worst) return worst;
    for (int i = 0; i < count; i++) {
        testing.path = words[i];
        int result = test_file(&testing);
        if (result > worst) worst = result;
    }
    tile_compiler_destroy(testing.compiler);
    return finish(&testing, worst);
}
