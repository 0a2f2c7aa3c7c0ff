/* tilec lsp: the language server, on standard input and output. */
#include <string.h>
#include <unistd.h>

#include "lsp/server.h"
#include "tools/session.h"

int tile_command_lsp(TileSession *session, char **words, int count) {
    TileCompiler *compiler = NULL;
    for (int i = 0; i < count; i++)
        if (strcmp(words[i], "--stdio") != 0) return tile_session_unknown(session, words[i]); /* clients say it */
    tile_status status = tile_session_create_compiler(session, &compiler);
    if (status != TILE_OK) return tile_session_report(session, status, NULL);
    int result = tile_server_run(compiler, tile_version(), STDIN_FILENO, STDOUT_FILENO);
    tile_compiler_destroy(compiler);
    return result;
}
