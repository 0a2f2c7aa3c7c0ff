/* What the server of one client knows: the documents that are open, and the folders of the workspace. */
#ifndef TILE_LSP_WORKSPACE_H
#define TILE_LSP_WORKSPACE_H

#include "lsp/analysis.h"
#include "lsp/json.h"

typedef struct TileDocument {
    char *uri, *path, *text;
    size_t length;
    int64_t version;
    TileLines lines;        /* of the text, allocated */
    TileAnalysis *analysis; /* NULL: none, or that of a text that has changed */
    bool unpublished;       /* its diagnostics are to be sent */
} TileDocument;

typedef struct TileWorkspace {
    const TileCompiler *compiler;
    TileEncoding encoding;
    bool literal_actions; /* the client takes code actions, and not only commands */
    TileDocument **documents;
    size_t count, capacity;
    char **folders;
    size_t folder_count;
} TileWorkspace;

void tile_workspace_release(TileWorkspace *workspace);
bool tile_workspace_add_folder(TileWorkspace *workspace, const char *path);

/* Functions that return false ran out of memory; then nothing has changed. */
bool tile_workspace_open(TileWorkspace *workspace, const char *uri, const char *text, size_t length, int64_t version);
void tile_workspace_close(TileWorkspace *workspace, TileDocument *document);
/* Replaces the bytes begin .. end. */
bool tile_document_replace(TileWorkspace *workspace, TileDocument *document, size_t begin, size_t end, const char *text,
                           size_t length);
/* The file at this path has another text now: all that has read it is checked anew. */
void tile_workspace_touch(TileWorkspace *workspace, const char *path);

TileDocument *tile_workspace_find(const TileWorkspace *workspace, const char *uri);
TileDocument *tile_workspace_at(const TileWorkspace *workspace, const char *path);
/* NULL if memory ran out. */
TileAnalysis *tile_document_analysis(TileWorkspace *workspace, TileDocument *document);
/* Of a file that is not open; to be destroyed. NULL if it cannot be read. */
TileAnalysis *tile_workspace_analyse(TileWorkspace *workspace, const char *path);
/* Paths of the .tile files in the folders, the open ones among them, at most TILE_MOST_WORKSPACE_FILES; in the arena. */
enum { TILE_MOST_WORKSPACE_FILES = 4096 };
typedef TILE_LIST(const char *) TilePathList;
void tile_workspace_list(const TileWorkspace *workspace, TileArena *arena, TilePathList *paths);

#endif
