/* What the server of one client knows: the documents that are open, and the folders of the workspace. */
#include "lsp/workspace.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lsp/uri.h"

/* ---- documents ---- */

static void free_document(TileDocument *document) {
    if (!document) return;
    tile_analysis_destroy(document->analysis);
    free(document->uri);
    free(document->path);
    free(document->text);
    free(document->lines.starts);
    free(document);
}

void tile_workspace_release(TileWorkspace *workspace) {
    for (size_t i = 0; i < workspace->count; i++) free_document(workspace->documents[i]);
    for (size_t i = 0; i < workspace->folder_count; i++) free(workspace->folders[i]);
    free(workspace->documents);
    free(workspace->folders);
    *workspace = (TileWorkspace){.compiler = workspace->compiler};
}

bool tile_workspace_add_folder(TileWorkspace *workspace, const char *path) {
    char **folders = realloc(workspace->folders, (workspace->folder_count + 1) * sizeof *folders);
    if (!folders) return false;
    workspace->folders = folders;
    folders[workspace->folder_count] = strdup(path);
    if (!folders[workspace->folder_count]) return false;
    workspace->folder_count++;
    return true;
}

TileDocument *tile_workspace_find(const TileWorkspace *workspace, const char *uri) {
    for (size_t i = 0; uri && i < workspace->count; i++)
        if (strcmp(workspace->documents[i]->uri, uri) == 0) return workspace->documents[i];
    return NULL;
}

TileDocument *tile_workspace_at(const TileWorkspace *workspace, const char *path) {
    for (size_t i = 0; i < workspace->count; i++)
        if (strcmp(workspace->documents[i]->path, path) == 0) return workspace->documents[i];
    return NULL;
}

static void forget(TileDocument *document) {
    tile_analysis_destroy(document->analysis);
    document->analysis = NULL;
    document->unpublished = true;
}

void tile_workspace_touch(TileWorkspace *workspace, const char *path) {
    for (size_t i = 0; i < workspace->count; i++) {
        TileDocument *document = workspace->documents[i];
        bool itself = strcmp(document->path, path) == 0;
        if (itself || (document->analysis && tile_analysis_reads(document->analysis, path))) forget(document);
    }
}

/* Takes over the text. */
static bool set_text(TileDocument *document, char *text, size_t length) {
    size_t *starts = text ? malloc(tile_lines_count(text, length) * sizeof *starts) : NULL;
    if (!starts) return free(text), false;
    free(document->text);
    free(document->lines.starts);
    document->text = text;
    document->length = length;
    tile_lines_find(&document->lines, text, length, starts);
    return true;
}

static char *copy_of(const char *text, size_t length) {
    char *copy = malloc(length + 1);
    if (copy) memcpy(copy, text, length);
    if (copy) copy[length] = 0;
    return copy;
}

static char *copy_path(TileArena *arena, const char *uri) {
    jmp_buf guard;
    if (setjmp(guard)) return NULL;
    tile_arena_set_guard(arena, &guard);
    return strdup(tile_path_of_uri(arena, uri));
}

static char *path_of(const char *uri) {
    TileArena *arena = tile_arena_create(NULL);
    char *path = arena ? copy_path(arena, uri) : NULL;
    tile_arena_destroy(arena);
    return path;
}

static TileDocument *add_document(TileWorkspace *workspace, const char *uri) {
    if (workspace->count == workspace->capacity) {
        size_t capacity = workspace->capacity ? 2 * workspace->capacity : 16;
        TileDocument **documents = realloc(workspace->documents, capacity * sizeof *documents);
        if (!documents) return NULL;
        workspace->documents = documents;
        workspace->capacity = capacity;
    }
    TileDocument *document = calloc(1, sizeof *document);
    if (document) document->uri = strdup(uri);
    if (document) document->path = path_of(uri);
    if (document && document->uri && document->path) return document;
    free_document(document);
    return NULL;
}

bool tile_workspace_open(TileWorkspace *workspace, const char *uri, const char *text, size_t length, int64_t version) {
    TileDocument *known = tile_workspace_find(workspace, uri), *document = known ? known : add_document(workspace, uri);
    if (!document) return false;
    if (!set_text(document, copy_of(text, length), length)) {
        if (!known) free_document(document);
        return false;
    }
    document->version = version;
    if (!known) workspace->documents[workspace->count++] = document;
    tile_workspace_touch(workspace, document->path);
    return true;
}

void tile_workspace_close(TileWorkspace *workspace, TileDocument *document) {
    for (size_t i = 0; i < workspace->count; i++) {
        if (workspace->documents[i] != document) continue;
        memmove(workspace->documents + i, workspace->documents + i + 1,
                (workspace->count - i - 1) * sizeof *workspace->documents);
        workspace->count--;
        tile_workspace_touch(workspace, document->path); /* importers read the file again */
        free_document(document);
        return;
    }
}

bool tile_document_replace(TileWorkspace *workspace, TileDocument *document, size_t begin, size_t end, const char *text,
                           size_t length) {
    if (end > document->length) end = document->length;
    if (begin > end) begin = end;
    size_t behind = document->length - end, whole = begin + length + behind;
    char *changed = malloc(whole + 1);
    if (!changed) return false;
    memcpy(changed, document->text, begin);
    memcpy(changed + begin, text, length);
    memcpy(changed + begin + length, document->text + end, behind);
    changed[whole] = 0;
    if (!set_text(document, changed, whole)) return false;
    tile_workspace_touch(workspace, document->path);
    return true;
}

/* ---- analyses ---- */

/* An import whose file is open: the text as it is in the editor. */
static bool read_open(void *state, TileArena *arena, const char *path, const char **text, size_t *length) {
    const TileWorkspace *workspace = state;
    const TileDocument *document = tile_workspace_at(workspace, tile_path_normal(arena, path));
    if (!document) return false;
    *text = document->text;
    *length = document->length;
    return true;
}

static TileImportSearch search_of(TileWorkspace *workspace) {
    return (TileImportSearch){.compiler = workspace->compiler, .open = read_open, .state = workspace};
}

TileAnalysis *tile_document_analysis(TileWorkspace *workspace, TileDocument *document) {
    TileImportSearch search = search_of(workspace);
    if (!document->analysis)
        document->analysis = tile_analysis_create(&search, document->path, document->text, document->length);
    return document->analysis;
}

static char *read_path(const char *path, size_t *length) {
    enum { LARGEST = 4 << 20 };
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(LARGEST) : NULL;
    if (text) *length = fread(text, 1, LARGEST, file);
    bool good = text && !ferror(file) && *length < LARGEST;
    if (file) fclose(file);
    if (good) return text;
    free(text);
    return NULL;
}

TileAnalysis *tile_workspace_analyse(TileWorkspace *workspace, const char *path) {
    TileImportSearch search = search_of(workspace);
    size_t length = 0;
    char *text = read_path(path, &length);
    TileAnalysis *analysis = text ? tile_analysis_create(&search, path, text, length) : NULL;
    free(text);
    return analysis;
}

/* ---- files ---- */

static void add_path(TileArena *arena, TilePathList *paths, const char *path) {
    for (size_t i = 0; i < paths->count; i++)
        if (strcmp(paths->items[i], path) == 0) return;
    tile_list_push(arena, paths, path);
}

/* Hidden folders, and those that links lead to, are left out. */
static void list_folder(TileArena *arena, TilePathList *paths, const char *folder, unsigned depth) {
    enum { DEEPEST = 16 };
    DIR *directory = depth < DEEPEST ? opendir(folder) : NULL;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        struct stat status;
        if (entry->d_name[0] == '.' || paths->count >= TILE_MOST_WORKSPACE_FILES) continue;
        const char *path = tile_arena_format(arena, "%s/%s", folder, entry->d_name);
        size_t length = strlen(path);
        if (lstat(path, &status) != 0) continue;
        if (S_ISDIR(status.st_mode)) list_folder(arena, paths, path, depth + 1);
        if (S_ISREG(status.st_mode) && length > 5 && strcmp(path + length - 5, ".tile") == 0) add_path(arena, paths, path);
    }
    if (directory) closedir(directory);
}

void tile_workspace_list(const TileWorkspace *workspace, TileArena *arena, TilePathList *paths) {
    for (size_t i = 0; i < workspace->count; i++) add_path(arena, paths, workspace->documents[i]->path);
    for (size_t i = 0; i < workspace->folder_count; i++)
        list_folder(arena, paths, tile_path_normal(arena, workspace->folders[i]), 0);
}
