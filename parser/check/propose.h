/* Edits that more than one rule proposes. Each finds the place in the text; where the text is written in a way that
 * it does not know, it proposes nothing. */
#ifndef TILE_PARSER_CHECK_PROPOSE_H
#define TILE_PARSER_CHECK_PROPOSE_H

#include "parser/check/check.h"

/* The candidate that is written most like `name`. */
typedef struct TileNearest {
    const char *name, *best; /* best: NULL while none is near */
    unsigned distance;
} TileNearest;
TileNearest tile_nearest(const char *name);
void tile_nearest_try(TileNearest *nearest, const char *candidate); /* which may be NULL */
void tile_propose_nearest(TileChecker *c, TileDiagnostic *d, TileSpan span, const TileNearest *nearest);
/* The clause `static NAME`, where the kernel's dimension or parameter of this name is not constant yet. */
void tile_propose_static(TileChecker *c, TileDiagnostic *d, const char *name);
/* What would make an integer known at compile time: `static for` of the loop that counts it, or `static NAME`. */
void tile_propose_constant(TileChecker *c, TileDiagnostic *d, const TileExpr *expr);
/* `inout` instead of the word, `in` or `out`, that stands behind the parameter's name. */
void tile_propose_inout(TileChecker *c, TileDiagnostic *d, TileSpan name, const char *word);
/* `var` instead of the `let` before the name. */
void tile_propose_var(TileChecker *c, TileDiagnostic *d, TileSpan name);
/* `v[_, :]` or `v[:, _]`, where only one of them gives a vector the shape of the matrix. */
void tile_propose_axis(TileChecker *c, TileDiagnostic *d, const TileMeaning *vector, const TileExpr *expr,
                       const TileMeaning *matrix);
/* The text of an expression, without parentheses around the whole. */
const char *tile_bare_text(TileChecker *c, TileSpan span);
/* The text of an operand, in parentheses where an operator behind it would take only a part of it. */
const char *tile_operand_text(TileChecker *c, const TileExpr *expr);
TileMeaning tile_fail_no_kernel(TileChecker *c, const TileAst *ast, TileSpan span, const char *name);
TileMeaning tile_fail_not_bool(TileChecker *c, const TileExpr *expr, const TileMeaning *m);

#endif
