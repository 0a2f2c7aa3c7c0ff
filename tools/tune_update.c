#include "tools/tune_update.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "tools/replace.h"

/* The lock is a file of its own: the tuning file is another one after each change. */
static int take_lock(TileArena *arena, const char *path, TileText *error) {
    const char *name = tile_arena_format(arena, "%s.lock", path);
    int lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    while (lock >= 0 && flock(lock, LOCK_EX) != 0) {
        if (errno == EINTR) continue;
        close(lock);
        lock = -1;
    }
    if (lock < 0) tile_text_format(error, "%s: cannot lock: %s", name, strerror(errno));
    return lock;
}

static tile_status update(TileArena *arena, const char *path, TileTuneChange change, void *state, TileText *error) {
    TileTuning tuning = {.arena = arena};
    TileText text = {.arena = arena};
    TILE_TRY(tile_tuning_read(&tuning, path, error));
    change(state, &tuning);
    tile_tuning_print(&tuning, &text);
    return tile_file_write(path, text.text, text.length, error);
}

tile_status tile_tune_update(TileArena *arena, const char *path, TileTuneChange change, void *state, TileText *error) {
    int lock = take_lock(arena, path, error);
    if (lock < 0) return TILE_IO;
    tile_status status = update(arena, path, change, state, error);
    close(lock);
    return status;
}
