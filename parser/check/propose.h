/* Edits that several rules propose. Each finds the location in the text; if the text is not of a form that it knows, it
 * proposes nothing. */
#ifndef TILE_PARSER_CHECK_PROPOSE_H
#define TILE_PARSER_CHECK_PROPOSE_H

#include "parser/check/check.h"

/* The candidate that is most similar to `name`. */
typedef struct TileNearest {
    const char *name, *best; /* best: NULL if none is similar */
    unsigned distance;
} TileNearest;
TileNearest tile_nearest(const char *name);
void tile_nearest_try(TileNearest *nearest, const char *candidate); /* which may be NULL */
void tile_propose_nearest(TileChecker *c, TileDiagnostic *d, TileSpan span, const TileNearest *nearest);
/* The clause `static NAME`, if the kernel's dimension or parameter of this name is not a constant yet. */
void tile_propose_static(TileChecker *c, TileDiagnostic *d, const char *name);
/* Makes an integer a compile-time constant: `static for` for the loop whose induction variable it is, or `static
 * NAME`. */
void tile_propose_constant(TileChecker *c, TileDiagnostic *d, const TileExpr *expr);
/* How the parts of a tuple are named. */
void tile_note_parts(TileChecker *c, TileDiagnostic *d);
/* `inout` instead of `in` or `out` of the parameter. */
void tile_propose_inout(TileChecker *c, TileDiagnostic *d, TileSpan name, const char *word);
/* `var` instead of the `let` before the name. */
void tile_propose_var(TileChecker *c, TileDiagnostic *d, TileSpan name);
/* `v[_, :]` or `v[:, _]`, if only one of them can be broadcast to the shape of the matrix. */
void tile_propose_axis(TileChecker *c, TileDiagnostic *d, const TileMeaning *vector, const TileExpr *expr,
                       const TileMeaning *matrix);
/* The text of an expression, without enclosing parentheses. */
const char *tile_bare_text(TileChecker *c, TileSpan span);
/* The text of an operand, in parentheses if an operator after it would bind to a part of it. */
const char *tile_operand_text(TileChecker *c, const TileExpr *expr);
TileMeaning tile_fail_no_kernel(TileChecker *c, const TileAst *ast, TileSpan span, const char *name);
TileMeaning tile_fail_not_bool(TileChecker *c, const TileExpr *expr, const TileMeaning *m);

/* A call that works along one axis, and does not say which: proposes the last. */
TileMeaning tile_fail_one_axis(TileChecker *c, const TileExpr *call, const char *name);
/* Where `(.. else 0)` gives a value for what may be invalid at `where`: of an index it is the access that is filled. */
TileSpan tile_filled_place(const TileExpr *expr, TileSpan where);
/* A variable whose first value is a written number of another type than `scalar`: proposes the number of that type. */
bool tile_propose_start(TileChecker *c, TileDiagnostic *d, const TileExpr *name, TileScalar scalar);
/* A variable that began with a written number, and is assigned a tile: proposes a tile of that number. */
void tile_propose_start_tile(TileChecker *c, TileDiagnostic *d, const TileVar *var, const TileMeaning *value);
/* A tensor without an index: a note, and `x[:, :]` if all of its dimensions are known at compile time. */
void tile_propose_whole(TileChecker *c, TileDiagnostic *d, const TileTensor *tensor, TileSpan name, bool stored);

#endif
