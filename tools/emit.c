/* tilec emit: prints a stage of the compilation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "tools/file.h"
#include "tools/program.h"
#include "tools/ptxas.h"

typedef int (*Print)(TileSession *session, const char *text);

static bool find_stage(const char *name, TileStage *stage) {
    for (int i = 0; i < TILE_STAGE_COUNT; i++) {
        if (strcmp(tile_stage_name((TileStage)i), name) != 0) continue;
        *stage = (TileStage)i;
        return true;
    }
    return false;
}

static int unknown_stage(TileSession *session, const char *name) {
    TileText text = {.arena = session->arena};
    for (int i = 0; i < TILE_STAGE_COUNT; i++)
        tile_text_format(&text, "%s%s", i ? ", " : "", tile_stage_name((TileStage)i));
    return tile_session_fail(session, TILE_INVALID_ARGUMENT, "unknown kind '%s'; the kinds are %s, cubin, json", name,
                             tile_text_get(&text));
}

static int read_words(TileProgram *program, TileEmitOptions *emit, char **words, int count) {
    for (int i = 0; i < count; i++) {
        const char *after = tile_option_value(words[i], "--after");
        bool taken = true;
        if (after)
            emit->after = after;
        else if (strcmp(words[i], "--general") == 0)
            emit->general = true;
        else {
            int failed = tile_program_word(program, words[i], &taken);
            if (failed) return failed;
        }
        if (!taken) return tile_session_unknown(program->session, words[i]);
    }
    return 0;
}

static int print_text(TileSession *session, const char *text) {
    fputs(text, stdout);
    return tile_session_finish(session);
}

static int print_cubin(TileSession *session, const char *ptx) {
    TileText error = {.arena = session->arena};
    TileAssembly assembly;
    tile_status status = tile_ptxas_run(session->arena, ptx, true, &assembly, &error);
    if (status != TILE_OK) return tile_session_fail(session, status, "%s", tile_text_get(&error));
    fwrite(assembly.cubin, 1, assembly.size, stdout);
    return tile_session_finish(session);
}

static int print_stage(TileProgram *program, const TileEmitOptions *emit, Print print) {
    TileSession *session = program->session;
    TileText error = {.arena = session->arena};
    TileReport *report = NULL;
    char *text, *output = NULL;
    size_t length;
    tile_status status = tile_file_read(session->arena, program->path, &text, &length, &error);
    if (status != TILE_OK) return tile_session_fail(session, status, "%s", tile_text_get(&error));
    int exit_status = tile_program_compiler(program);
    if (exit_status) return exit_status;
    status = tile_emit_stage(program->compiler, text, length, &program->options, emit, &output, &report);
    exit_status = tile_session_report(session, status, report);
    if (exit_status) return exit_status;
    exit_status = print(session, output);
    tile_string_destroy(output);
    return exit_status;
}

int tile_command_emit(TileSession *session, char **words, int count) {
    TileProgram program = {.session = session};
    TileEmitOptions emit = {.struct_size = sizeof emit};
    if (count < 2)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT, "emit needs a kind and a file; see `tilec help emit`");
    bool describe = strcmp(words[0], "json") == 0, cubin = strcmp(words[0], "cubin") == 0;
    if (!describe && !find_stage(cubin ? "ptx" : words[0], &emit.stage)) return unknown_stage(session, words[0]);
    if (cubin && isatty(STDOUT_FILENO))
        return tile_session_fail(session, TILE_INVALID_ARGUMENT, "a cubin is no text: send it to a file with >");
    int failed = read_words(&program, &emit, words + 1, count - 1);
    if (failed) return failed;
    if (!program.path) return tile_session_fail(session, TILE_INVALID_ARGUMENT, "no file; see `tilec help emit`");
    for (size_t i = 0; i < program.given.count; i++) {
        TileNamedValue word = program.given.items[i];
        const char *name = strncmp(word.name, "const.", 6) == 0 ? word.name + 6 : word.name;
        tile_list_push(session->arena, &program.settings, (TileSetting){name, word.value});
    }
    program.options.struct_size = sizeof program.options;
    program.options.file = program.path;
    program.options.settings = program.settings.items;
    program.options.setting_count = program.settings.count;
    emit.kernel = program.kernel_name;
    failed =
        describe ? tile_program_describe(&program) : print_stage(&program, &emit, cubin ? print_cubin : print_text);
    tile_program_close(&program);
    return failed;
}
