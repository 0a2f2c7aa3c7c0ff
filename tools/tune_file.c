/* tilec tune: the files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "driver/cache/cache.h"
#include "tools/replace.h"
#include "tools/tune.h"

const char *tile_tune_path(TileArena *arena, const char *given) {
    if (given) return given;
    TileCodeCache *cache = tile_code_cache_open(NULL, NULL, 0);
    const char *path = tile_tuned_path(cache, arena);
    tile_code_cache_close(cache);
    return path;
}

const char *tile_tune_time(TileArena *arena, double seconds) {
    if (seconds < 1e-3) return tile_arena_format(arena, "%.2f us", 1e6 * seconds);
    return seconds < 1 ? tile_arena_format(arena, "%.3f ms", 1e3 * seconds)
                       : tile_arena_format(arena, "%.3f s", seconds);
}

/* ---- listing ---- */

static int fail(TileSession *session, tile_status status, const TileText *error) {
    return tile_session_fail(session, status, "%s", tile_text_get(error));
}

static int nothing_kept(TileSession *session) {
    return tile_session_fail(
        session, TILE_NOT_FOUND,
        "there is no tuning file: TILE_CACHE_DIR is empty, or its folder is not this user's alone; "
        "name one with --file");
}

static void print_row(TileArena *arena, const TileTuningRow *row) {
    printf("%s  %s  %s  %s\n  %s  %s, %.3f of the default's time; %u of %u measured%s\n", row->kernel, row->instance,
           row->shape, row->device, row->constants, tile_tune_time(arena, row->seconds),
           row->usual_seconds > 0 ? row->seconds / row->usual_seconds : 1, row->measured, row->total,
           row->pinned ? "; pinned" : "");
}

int tile_tune_list(TileSession *session, const char *path) {
    TileTuning tuning = {.arena = session->arena};
    TileText error = {.arena = session->arena};
    if (!path) return nothing_kept(session);
    tile_status status = tile_tuning_read(&tuning, path, &error);
    if (status != TILE_OK) return fail(session, status, &error);
    for (size_t i = 0; i < tuning.rows.count; i++) print_row(session->arena, &tuning.rows.items[i]);
    printf("%zu %s in %s\n", tuning.rows.count, tuning.rows.count == 1 ? "row" : "rows", path);
    if (tuning.bad_line) printf("line %u is no row, and counts for nothing\n", tuning.bad_line);
    return tile_session_finish(session);
}

/* ---- from file to file ---- */

int tile_tune_export(TileSession *session, const char *path, const char *to) {
    TileTuning tuning = {.arena = session->arena}, written = {.arena = session->arena};
    TileText error = {.arena = session->arena}, text = {.arena = session->arena};
    if (!path) return nothing_kept(session);
    tile_status status = tile_tuning_read(&tuning, path, &error);
    if (status != TILE_OK) return fail(session, status, &error);
    for (size_t i = 0; i < tuning.rows.count; i++) tile_list_push(session->arena, &written.rows, tuning.rows.items[i]);
    tile_tuning_print(&written, &text);
    status = tile_file_write(to, text.text, text.length, &error);
    if (status != TILE_OK) return fail(session, status, &error);
    if (!session->quiet) printf("%zu rows from %s to %s\n", written.rows.count, path, to);
    return tile_session_finish(session);
}

typedef struct Import {
    const TileTuning *rows;
    bool pin;
    size_t taken;
} Import;

static void import_rows(void *state, TileTuning *tuning) {
    Import *import = state;
    for (size_t i = 0; i < import->rows->rows.count; i++) {
        TileTuningRow row = import->rows->rows.items[i];
        row.pinned |= import->pin;
        import->taken += tile_tuning_put(tuning, &row);
    }
}

int tile_tune_import(TileSession *session, const char *path, const char *from, bool pin) {
    TileTuning tuning = {.arena = session->arena};
    TileText error = {.arena = session->arena};
    if (!path) return nothing_kept(session);
    if (access(from, R_OK) != 0)
        return tile_session_fail(session, errno == ENOENT ? TILE_NOT_FOUND : TILE_IO, "cannot read %s: %s", from,
                                 strerror(errno));
    tile_status status = tile_tuning_read(&tuning, from, &error);
    if (status != TILE_OK) return fail(session, status, &error);
    if (tuning.bad_line)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT, "%s: line %u is no row of a tuning file", from,
                                 tuning.bad_line);
    Import import = {&tuning, pin, 0};
    status = tile_tune_update(session->arena, path, import_rows, &import, &error);
    if (status != TILE_OK) return fail(session, status, &error);
    if (!session->quiet)
        printf("%zu of %zu rows from %s are in %s%s\n", import.taken, tuning.rows.count, from, path,
               pin ? ", pinned" : "");
    if (import.taken < tuning.rows.count && !session->quiet)
        printf("the others are pinned there, or more was measured for them\n");
    return tile_session_finish(session);
}

typedef struct Forget {
    const char *kernel;
    size_t gone;
} Forget;

static void forget_rows(void *state, TileTuning *tuning) {
    Forget *forget = state;
    size_t kept = 0;
    for (size_t i = 0; i < tuning->rows.count; i++)
        if (strcmp(tuning->rows.items[i].kernel, forget->kernel) != 0)
            tuning->rows.items[kept++] = tuning->rows.items[i];
    forget->gone = tuning->rows.count - kept;
    tuning->rows.count = kept;
}

int tile_tune_forget(TileSession *session, const char *path, const char *kernel) {
    TileText error = {.arena = session->arena};
    Forget forget = {kernel, 0};
    if (!path) return nothing_kept(session);
    tile_status status = tile_tune_update(session->arena, path, forget_rows, &forget, &error);
    if (status != TILE_OK) return fail(session, status, &error);
    if (!forget.gone) return tile_session_fail(session, TILE_NOT_FOUND, "%s has no rows of '%s'", path, kernel);
    if (!session->quiet) printf("%zu rows of %s removed from %s\n", forget.gone, kernel, path);
    return tile_session_finish(session);
}
