/* Items: of a file and of its imports by name, and which names of a kernel are bound for each instance. */
#ifndef TILE_PARSER_CHECK_ITEM_H
#define TILE_PARSER_CHECK_ITEM_H

#include "parser/check/check.h"

const TileItem *tile_find_item(const TileAst *ast, const char *name, bool imports, const TileAst **where);

/* A kernel by its name, in a file and, if that has nothing of the name, in its imports; or in one `module` (NULL: none
 * is named). `exports`: the name may be that of an export. */
typedef struct TileFoundKernel {
    const TileItem *item; /* NULL: there is none */
    const TileAst *ast;   /* the file that has it, or was searched */
    const TileExport *export;
    const char *module; /* the name of the import, or NULL */
    bool reported;      /* several imports have it: there is a message */
} TileFoundKernel;
TileFoundKernel tile_find_kernel(TileChecker *c, const TileAst *ast, const char *module, TileNameRef name,
                                 bool exports);
enum { TILE_MAX_CANDIDATES = 8 };
typedef struct TileCandidate {
    const TileItem *item;
    const TileAst *ast;
    const char *module; /* NULL: imported by path */
} TileCandidate;
/* The items of this name in imports of the frame's file, at most TILE_MAX_CANDIDATES. */
unsigned tile_find_candidates(const TileChecker *c, const char *name, TileCandidate *found);
static inline bool tile_is_ambiguous(const TileChecker *c, const char *name) {
    TileCandidate found[TILE_MAX_CANDIDATES];
    return tile_find_candidates(c, name, found) > 1;
}
/* Reports an ambiguous name with these candidates; `reasons`, unless it is NULL, tells for each why it does not fit, or
 * NULL if it does. */
void tile_fail_candidates(TileChecker *c, const char *name, TileSpan span, const TileCandidate *found, unsigned count,
                          const char *const *reasons);
/* A static dimension or scalar of this name. */
bool tile_is_static(const TileItem *kernel, const char *name);
/* Is the name bound per instance: a generic, static, const or tune name? */
bool tile_names_setting(const TileItem *kernel, const char *name);

#endif
