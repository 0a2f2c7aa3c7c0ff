#include "tools/tune_update.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/replace.h"
#include "tools/unfinished.h"

/* Is the lock still the file of this name? Its previous owner removed it. */
static bool is_named(int lock, const char *name) {
    struct stat own, named;
    return fstat(lock, &own) == 0 && stat(name, &named) == 0 && own.st_ino == named.st_ino &&
           own.st_dev == named.st_dev;
}

/* The lock is a file of its own, since each change replaces the tuning file; it is removed after the change. Returns
 * with signals blocked, so that the lock is not left behind; while another process has it they are not blocked. */
static int take_lock(const char *name) {
    for (;;) {
        tile_unfinished_hold(true);
        int lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        bool taken = lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0, gone = taken && !is_named(lock, name);
        if (taken && !gone) return lock;
        int reason = errno;
        tile_unfinished_hold(false);
        bool busy = lock >= 0 && !taken && reason == EWOULDBLOCK;
        if (busy && flock(lock, LOCK_EX) != 0 && errno != EINTR) busy = false;
        if (lock >= 0) close(lock);
        if (busy || gone) continue;
        errno = reason;
        return -1;
    }
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
    const char *name = tile_arena_format(arena, "%s.lock", path);
    int lock = take_lock(name);
    if (lock < 0) {
        tile_text_format(error, "%s: cannot lock: %s", name, strerror(errno));
        return TILE_IO;
    }
    tile_status status = update(arena, path, change, state, error);
    unlink(name);
    close(lock);
    tile_unfinished_hold(false);
    return status;
}
