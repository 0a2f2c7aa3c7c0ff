/* Candidates for a wrong call: the overloads of a built-in function, and the functions of the same name in several
 * imports. Notes list each with the reason why it does not match. */
#ifndef TILE_PARSER_CHECK_CANDIDATES_H
#define TILE_PARSER_CHECK_CANDIDATES_H

#include "parser/check/check.h"
#include "parser/check/propose.h"

/* Adds notes with the overloads of a built-in function and, if there are several, why each does not match. */
void tile_note_forms(TileChecker *c, TileDiagnostic *d, const TileExpr *call, const char *name);
/* Tries the names of the overloads' arguments. */
void tile_nearest_form(TileChecker *c, TileNearest *nearest, const char *name);
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
/* Reports an ambiguous name of several imports. `call`, which may be NULL, is checked with each of them; `index` are
 * the brackets before its arguments, or NULL. */
void tile_fail_ambiguous(TileChecker *c, const char *name, TileSpan span, const TileExpr *call, const TileExpr *index);

#endif
