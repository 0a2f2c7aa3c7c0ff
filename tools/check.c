/* tilec check: diagnostics only. */
#include "tools/session.h"

static int check_file(TileSession *session, TileCompiler *compiler, const char *path) {
    TileCompileOptions options = {.struct_size = sizeof options};
    TileLibrary *library = NULL;
    TileReport *report = NULL;
    tile_status status = tile_compile_file(compiler, path, &options, &library, &report);
    if (status != TILE_OK && !report)
        return tile_session_fail(session, status, "%s: %s", path, tile_status_text(status));
    tile_library_destroy(library);
    return tile_session_report(session, status, report);
}

int tile_command_check(TileSession *session, char **words, int count) {
    TileCompiler *compiler;
    if (count == 0) return tile_session_fail(session, TILE_INVALID_ARGUMENT, "no file; see `tilec help check`");
    tile_status status = tile_compiler_create(NULL, &compiler);
    if (status != TILE_OK) return tile_session_report(session, status, NULL);
    int worst = 0;
    for (int i = 0; i < count; i++) {
        int result = *words[i] == '-' && words[i][1] ? tile_session_unknown(session, words[i])
                                                     : check_file(session, compiler, words[i]);
        if (result > worst) worst = result;
    }
    tile_compiler_destroy(compiler);
    return worst;
}
