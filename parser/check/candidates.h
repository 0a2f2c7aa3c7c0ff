/* What a call could have meant: the forms of a built-in function, and the functions of one name that several imports
 * bring. Each is listed with the reason why it does not fit. */
#ifndef TILE_PARSER_CHECK_CANDIDATES_H
#define TILE_PARSER_CHECK_CANDIDATES_H

#include "parser/check/check.h"
#include "parser/check/propose.h"

/* Notes with the forms of a built-in function and, where there are several, why each does not fit. */
void tile_note_forms(TileChecker *c, TileDiagnostic *d, const TileExpr *call, const char *name);
/* Tries the names of their arguments. */
void tile_nearest_form(TileChecker *c, TileNearest *nearest, const char *name);
enum { TILE_MAX_CANDIDATES = 8 };
typedef struct TileCandidate {
    const TileItem *item;
    const TileAst *ast;
    const char *module; /* NULL: imported by a path */
} TileCandidate;
/* The items of this name that imports of the frame's file bring, TILE_MAX_CANDIDATES at most. */
unsigned tile_find_candidates(const TileChecker *c, const char *name, TileCandidate *found);
static inline bool tile_is_ambiguous(const TileChecker *c, const char *name) {
    TileCandidate found[TILE_MAX_CANDIDATES];
    return tile_find_candidates(c, name, found) > 1;
}
/* Reports a name that several imports bring. `call`, which may be NULL, is tried with each of them; `index` are the
 * brackets before its arguments, or NULL. */
void tile_fail_ambiguous(TileChecker *c, const char *name, TileSpan span, const TileExpr *call, const TileExpr *index);

#endif
