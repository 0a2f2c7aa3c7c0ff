#include "tools/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { CHUNK = 64 * 1024 };
static const size_t largest_file = (size_t)1 << 30;

static tile_status fail(const char *path, TileText *error) {
    tile_text_format(error, "%s: %s", path, strerror(errno));
    return errno == ENOENT ? TILE_NOT_FOUND : TILE_IO;
}

tile_status tile_file_read(TileArena *arena, const char *path, char **text, size_t *length, TileText *error) {
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file) return fail(path, error);
    struct stat info;
    if (fstat(fileno(file), &info) == 0 && S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        tile_status status = fail(path, error);
        fclose(file);
        return status;
    }
    TileText contents = {.arena = arena};
    char chunk[CHUNK];
    size_t count;
    while ((count = fread(chunk, 1, sizeof chunk, file)) > 0 && contents.length < largest_file)
        tile_text_add_bytes(&contents, chunk, count);
    tile_status status = ferror(file) ? fail(path, error) : TILE_OK;
    if (status == TILE_OK && count) {
        tile_text_format(error, "%s: is larger than 1 GiB", path);
        status = TILE_IO;
    }
    if (file != stdin) fclose(file);
    tile_text_add_bytes(&contents, "", 0);
    *text = contents.text;
    *length = contents.length;
    return status;
}
