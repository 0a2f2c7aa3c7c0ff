/* tilec fmt: the house style of .tile files. */
#include <stdio.h>
#include <string.h>

#include "parser/syntax/format.h"
#include "tools/file.h"
#include "tools/folder.h"
#include "tools/replace.h"
#include "tools/session.h"

/* `-`: the result is printed; a file is replaced if it changed. */
static int deliver(TileSession *session, const char *path, bool check, bool changed, const TileText *formatted) {
    TileText error = {.arena = formatted->arena};
    const char *shown = strcmp(path, "-") == 0 ? "<stdin>" : path;
    if (check) {
        if (changed) printf("%s\n", shown);
        return changed ? tile_status_exit_code(TILE_INVALID_SOURCE) : 0;
    }
    if (shown != path) {
        fwrite(tile_text_get(formatted), 1, formatted->length, stdout);
        return 0;
    }
    if (!changed) return 0;
    tile_status status = tile_file_write(path, tile_text_get(formatted), formatted->length, &error);
    if (status != TILE_OK) return tile_session_fail(session, status, "%s", tile_text_get(&error));
    if (session->verbose) printf("%s\n", path);
    return 0;
}

static int format_file(TileSession *session, TileArena *arena, const char *path, bool check) {
    TileText error = {.arena = arena}, formatted = {.arena = arena};
    TileDiagnostics *diagnostics = tile_diagnostics_create(arena);
    diagnostics->limits = &session->limits;
    char *text;
    size_t length;
    tile_status status = tile_file_read(arena, path, &text, &length, &error);
    if (status != TILE_OK) return tile_session_fail(session, status, "%s", tile_text_get(&error));
    status = tile_format(arena, diagnostics, strcmp(path, "-") == 0 ? "<stdin>" : path, text, length, &formatted);
    if (status == TILE_INVALID_SOURCE) return tile_session_diagnostics(session, status, arena, diagnostics);
    if (status != TILE_OK)
        return tile_session_fail(session, status,
                                 "%s: formatted, it would mean something else, so it is left as it is; please report "
                                 "this with the file",
                                 path);
    bool changed = formatted.length != length || memcmp(tile_text_get(&formatted), text, length) != 0;
    return deliver(session, path, check, changed, &formatted);
}

/* Each file has an arena of its own. */
static int format_path(TileSession *session, const char *path, bool check) {
    TileArena *arena = tile_arena_create(NULL);
    jmp_buf guard;
    if (!arena || setjmp(guard)) {
        tile_arena_destroy(arena);
        return tile_session_fail(session, TILE_OUT_OF_MEMORY, "%s: %s", path, tile_status_text(TILE_OUT_OF_MEMORY));
    }
    tile_arena_set_guard(arena, &guard);
    int result = format_file(session, arena, path, check);
    tile_arena_destroy(arena);
    return result;
}

int tile_command_fmt(TileSession *session, char **words, int count) {
    bool check = false;
    int files = 0, worst = tile_folder_expand(session, &words, &count);
    if (worst) return worst;
    for (int i = 0; i < count; i++) {
        bool option = *words[i] == '-' && words[i][1];
        if (option && strcmp(words[i], "--check") != 0) return tile_session_unknown(session, words[i]);
        check |= option;
        files += !option;
    }
    if (!files) return tile_session_fail(session, TILE_INVALID_ARGUMENT, "no file; see `tilec help fmt`");
    for (int i = 0; i < count; i++) {
        if (*words[i] == '-' && words[i][1]) continue;
        int result = format_path(session, words[i], check);
        if (result > worst) worst = result;
    }
    int result = tile_session_finish(session);
    return result > worst ? result : worst;
}
