/* What a name means. */
#ifndef TILE_PARSER_CHECK_NAMES_H
#define TILE_PARSER_CHECK_NAMES_H

#include "parser/check/check.h"

TileMeaning tile_scope_meaning(TileChecker *c, const char *name, TileSpan span);
const TileItem *tile_find_item(const TileAst *ast, const char *name, bool imports, const TileAst **where);
/* A `const` of the file, or one of its imports that can be an extent: other names may be those of dimensions. */
bool tile_is_constant(TileChecker *c, const TileAst *ast, const char *name);
/* Assigns, checking that the variable may take on the value's atoms. */
void tile_var_assign(TileChecker *c, TileVar *var, TileMeaning value, TileSpan span);
/* Is a name assigned to that nothing declares? Reports it once: what uses it later stays silent. */
bool tile_check_undeclared(TileChecker *c, const TileExpr *target);
/* The name in scope, or of the file, that is written most like this one. */
void tile_propose_visible(TileChecker *c, TileDiagnostic *d, const char *name, TileSpan span);

#endif
