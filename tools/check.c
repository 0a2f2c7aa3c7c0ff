/* tilec check: diagnostics only; of instances too, where settings are given. */
#include <stdio.h>
#include <string.h>

#include "driver/compile/image.h"
#include "driver/compile/unit.h"
#include "launch/report.h"
#include "parser/check/program.h"
#include "tools/file.h"
#include "tools/folder.h"
#include "tools/session.h"

typedef struct Checking {
    TileSession *session;
    TileCompiler *compiler;
    TILE_LIST(TileSetting) settings;
    TILE_LIST(const char *) paths;
    TileReport *all; /* with --error-format=json */
} Checking;

/* Refuses a name that is no setting and no dimension. */
static tile_status check_names(TileUnit *unit, const TileProgramInfo *program) {
    for (size_t i = 0; i < unit->input->binding_count; i++) {
        const char *name = unit->input->bindings[i].name;
        bool known = tile_unit_names_setting(program, name);
        for (size_t k = 0; k < program->kernels.count && !known; k++)
            known = tile_kernel_has_dimension(&program->kernels.items[k], name);
        if (!known) return tile_unit_check_settings(unit, program);
    }
    return TILE_OK;
}

/* The files, and the instances that the settings make of their kernels. */
static tile_status check_unit(TileUnit *unit, void *state) {
    TileProgramInfo program = {0};
    uint32_t count;
    TILE_TRY(tile_unit_check(unit, &program));
    TILE_TRY(tile_signatures_create(unit, &program, false, &count)); /* what a launcher cannot take is an error, too */
    if (!unit->input->binding_count) return TILE_OK;
    if (!unit->ast) return tile_unit_check_settings(unit, &program); /* text of the IR has no settings */
    TILE_TRY(check_names(unit, &program));
    return tile_check_instances(unit->context, unit->diagnostics, unit->ast, unit->verify, unit->input->bindings,
                                unit->input->binding_count);
}

static tile_status check_path(Checking *checking, const char *path, TileReport **report) {
    TileText error = {.arena = checking->session->arena};
    TileCompileOptions options = {.struct_size = sizeof options,
                                  .file = path,
                                  .settings = checking->settings.items,
                                  .setting_count = checking->settings.count};
    TileInput *input = NULL;
    char *text;
    size_t length;
    tile_status status = tile_file_read(checking->session->arena, path, &text, &length, &error);
    if (status != TILE_OK) {
        *report = tile_report_from_text(tile_text_get(&error));
        return status;
    }
    TILE_TRY(tile_input_create(checking->compiler, text, length, &options, &input, report));
    status = tile_unit_run(input, check_unit, NULL, report);
    tile_input_destroy(input);
    return status;
}

/* Prints the diagnostics of the file, or adds them to the others. */
static int check_file(Checking *checking, const char *path) {
    TileSession *session = checking->session;
    TileReport *report = NULL;
    tile_status status = check_path(checking, path, &report);
    if (status != TILE_OK && !report)
        report = tile_report_from_text(tile_arena_format(session->arena, "%s: %s", path, tile_status_text(status)));
    if (!session->json) return tile_session_report(session, status, report);
    checking->all = tile_report_join(checking->all, report);
    return tile_status_exit_code(status);
}

static bool is_named(const Checking *checking, const char *path) {
    for (size_t i = 0; i < checking->paths.count; i++)
        if (strcmp(checking->paths.items[i], path) == 0) return true;
    return false;
}

static int read_words(Checking *checking, char **words, int count) {
    TileSession *session = checking->session;
    for (int i = 0; i < count; i++) {
        char *equals = strchr(words[i], '=');
        if (*words[i] == '-' && words[i][1]) return tile_session_unknown(session, words[i]);
        if (!equals || strchr(words[i], '/')) {
            if (!is_named(checking, words[i])) tile_list_push(session->arena, &checking->paths, words[i]);
            continue;
        }
        *equals = 0;
        tile_list_push(session->arena, &checking->settings, (TileSetting){words[i], equals + 1});
    }
    if (checking->paths.count) return 0;
    return tile_session_fail(session, TILE_INVALID_ARGUMENT, "no file; see `tilec help check`");
}

int tile_command_check(TileSession *session, char **words, int count) {
    Checking checking = {.session = session};
    int worst = tile_folder_expand(session, &words, &count);
    if (!worst) worst = read_words(&checking, words, count);
    if (worst) return worst;
    tile_status status = tile_session_create_compiler(session, &checking.compiler);
    if (status != TILE_OK) return tile_session_report(session, status, NULL);
    for (size_t i = 0; i < checking.paths.count; i++) {
        int result = check_file(&checking, checking.paths.items[i]);
        if (result > worst) worst = result;
    }
    tile_compiler_destroy(checking.compiler);
    if (session->json) fputs(checking.all ? tile_report_json(checking.all) : "[]\n", stderr);
    tile_report_destroy(checking.all);
    return worst;
}
