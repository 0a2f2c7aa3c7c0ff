#include "tools/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/unfinished.h"

/* From now on, a signal that ends the program removes the file. */
static int create(char *pattern) {
    tile_unfinished_hold(true);
    int descriptor = mkstemp(pattern);
    if (descriptor >= 0 && !tile_unfinished_add(pattern)) {
        close(descriptor);
        unlink(pattern);
        descriptor = -1;
        errno = ENOMEM;
    }
    tile_unfinished_hold(false);
    return descriptor;
}

int tile_replacement_open(TileReplacement *file, const char *path, TileArena *arena) {
    struct stat info;
    *file = (TileReplacement){0};
    bool exists = stat(path, &info) == 0;
    if (exists && !S_ISREG(info.st_mode)) return open(path, O_WRONLY | O_CLOEXEC);
    if (exists && access(path, W_OK) != 0) return -1; /* the rename would not ask */
    char *target = exists ? realpath(path, NULL) : NULL;
    file->path = tile_arena_format(arena, "%s", target ? target : path);
    free(target);
    file->temporary = tile_arena_format(arena, "%s.XXXXXX", file->path);
    int descriptor = create(file->temporary);
    if (descriptor < 0) {
        file->temporary = NULL;
        return -1;
    }
    mode_t mask = umask(0);
    umask(mask);
    if (fchmod(descriptor, exists ? info.st_mode & 0777 : 0666 & ~mask) == 0) return descriptor;
    close(descriptor);
    return -1;
}

static tile_status fail(const char *path, int reason, TileText *error) {
    tile_text_format(error, "%s: cannot write: %s", path, strerror(reason));
    return TILE_IO;
}

tile_status tile_replacement_commit(TileReplacement *file, TileText *error) {
    if (!file->temporary) return TILE_OK; /* a device or pipe has been written to directly */
    if (rename(file->temporary, file->path) == 0) {
        tile_unfinished_forget(file->temporary);
        file->temporary = NULL;
        return TILE_OK;
    }
    int reason = errno;
    tile_replacement_abandon(file);
    return fail(file->path, reason, error);
}

void tile_replacement_abandon(TileReplacement *file) {
    if (file->temporary) {
        unlink(file->temporary);
        tile_unfinished_forget(file->temporary);
    }
    file->temporary = NULL;
}

tile_status tile_file_write(const char *path, const char *text, size_t length, TileText *error) {
    TileReplacement file;
    errno = 0;
    int descriptor = tile_replacement_open(&file, path, error->arena);
    FILE *stream = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    bool good = stream && fwrite(text, 1, length, stream) == length && fflush(stream) == 0 &&
                (fsync(descriptor) == 0 || errno == EINVAL);
    int reason = errno;
    if (stream && fclose(stream) != 0 && good) {
        good = false;
        reason = errno;
    }
    if (good) return tile_replacement_commit(&file, error);
    tile_replacement_abandon(&file);
    return fail(path, reason, error);
}
