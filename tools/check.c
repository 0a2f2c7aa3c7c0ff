/* tilec check: diagnostics only. */
#include <stdio.h>

#include "launch/report.h"
#include "tools/session.h"

/* Prints the diagnostics of the file, or adds them to `all`. */
static int check_file(TileSession *session, TileCompiler *compiler, const char *path, TileReport **all) {
    TileCompileOptions options = {.struct_size = sizeof options};
    TileLibrary *library = NULL;
    TileReport *report = NULL;
    tile_status status = tile_compile_file(compiler, path, &options, &library, &report);
    if (status != TILE_OK && !report)
        report = tile_report_from_text(tile_arena_format(session->arena, "%s: %s", path, tile_status_text(status)));
    tile_library_destroy(library);
    if (!session->json) return tile_session_report(session, status, report);
    *all = tile_report_join(*all, report);
    return tile_status_exit_code(status);
}

int tile_command_check(TileSession *session, char **words, int count) {
    TileCompiler *compiler;
    TileReport *all = NULL;
    if (count == 0) return tile_session_fail(session, TILE_INVALID_ARGUMENT, "no file; see `tilec help check`");
    for (int i = 0; i < count; i++)
        if (*words[i] == '-' && words[i][1]) return tile_session_unknown(session, words[i]);
    tile_status status = tile_session_create_compiler(session, &compiler);
    if (status != TILE_OK) return tile_session_report(session, status, NULL);
    int worst = 0;
    for (int i = 0; i < count; i++) {
        int result = check_file(session, compiler, words[i], &all);
        if (result > worst) worst = result;
    }
    tile_compiler_destroy(compiler);
    if (session->json) fputs(all ? tile_report_json(all) : "[]\n", stderr);
    tile_report_destroy(all);
    return worst;
}
