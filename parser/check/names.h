/* Name lookup, and assignment to variables. */
#ifndef TILE_PARSER_CHECK_NAMES_H
#define TILE_PARSER_CHECK_NAMES_H

#include "parser/check/check.h"

TileMeaning tile_scope_meaning(TileChecker *c, const char *name, TileSpan span);
/* A `const` of the file, or of an import, that can be an extent: other names may be those of dimensions. */
bool tile_is_constant(TileChecker *c, const TileAst *ast, const char *name);
/* Assigns, and checks that the variable may get the value's atoms. */
void tile_var_assign(TileChecker *c, TileVar *var, TileMeaning value, TileSpan span);
/* Reports `tl.exp`, `np.maximum` and other members of libraries of other languages. */
bool tile_check_foreign_member(TileChecker *c, const TileExpr *field);
/* Is it an assignment to an undeclared name? Reports it once: later uses of the name are not reported. */
bool tile_check_undeclared(TileChecker *c, const TileExpr *target);
/* The most similar name in scope, or of the file. */
void tile_propose_visible(TileChecker *c, TileDiagnostic *d, const char *name, TileSpan span);

#endif
