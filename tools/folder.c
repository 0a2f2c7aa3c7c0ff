#include "tools/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef TILE_LIST(char *) Words;

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_link(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
}

static bool is_source(const char *name) {
    size_t length = strlen(name);
    return length > 5 && strcmp(name + length - 5, ".tile") == 0;
}

static int fail(TileSession *session, const char *path) {
    return tile_session_fail(session, errno == ENOENT ? TILE_NOT_FOUND : TILE_IO, "%s: %s", path, strerror(errno));
}

static int add_folder(TileSession *session, const char *path, Words *words) {
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort), worst = 0;
    if (count < 0) return fail(session, path);
    const char *slash = path[strlen(path) - 1] == '/' ? "" : "/";
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        char *inner = tile_arena_format(session->arena, "%s%s%s", path, slash, name);
        bool folder = *name != '.' && is_folder(inner);
        if (folder && !is_link(inner) && !worst) worst = add_folder(session, inner, words);
        if (*name != '.' && !folder && is_source(name)) tile_list_push(session->arena, words, inner);
    }
    for (int i = 0; i < count; i++) free(entries[i]);
    free(entries);
    return worst;
}

int tile_folder_expand(TileSession *session, char ***words, int *count) {
    Words all = {0};
    for (int i = 0; i < *count; i++) {
        char *word = (*words)[i];
        if (!is_folder(word)) {
            tile_list_push(session->arena, &all, word);
            continue;
        }
        size_t before = all.count;
        int failed = add_folder(session, word, &all);
        if (failed) return failed;
        if (all.count == before)
            return tile_session_fail(session, TILE_NOT_FOUND, "%s: there is no .tile file in this folder", word);
    }
    *words = all.items;
    *count = (int)all.count;
    return 0;
}
