/* Names of other languages: what is written instead. */
#ifndef TILE_PARSER_CHECK_FOREIGN_H
#define TILE_PARSER_CHECK_FOREIGN_H

#include "parser/check/check.h"

/* Proposes what is written for `name`, at `span`; false where no other language is known to have it. */
bool tile_propose_foreign(TileChecker *c, TileDiagnostic *d, const char *name, TileSpan span);
/* What the argument `name` of other languages is called here, or why there is none, as a note; NULL if it is unknown.
 */
const char *tile_foreign_argument(TileChecker *c, TileDiagnostic *d, const char *name);
/* Does `name`, in `name.member`, stand for the library of another language, whose member has a name here? */
bool tile_is_foreign_module(const char *name);
/* The text of a type's name, without a module of another language before it, and by its name here. */
const char *tile_type_text(TileChecker *c, const TileExpr *expr);
/* Proposes `x[n]` for `load(x + n)`, and `y[n] = v` for `store(y + n, v)`, of which `d` has reported the name. */
void tile_propose_access(TileChecker *c, TileDiagnostic *d, const TileExpr *call);
/* Proposes what is written for the method call `value.name(..)`, which `d` has reported. */
void tile_propose_call_of_method(TileChecker *c, TileDiagnostic *d, const TileExpr *call);

#endif
