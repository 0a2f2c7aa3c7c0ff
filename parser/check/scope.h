/* Scopes: bound names, and what ends with a scope. */
#ifndef TILE_PARSER_CHECK_SCOPE_H
#define TILE_PARSER_CHECK_SCOPE_H

#include "parser/check/check.h"

TileScopeMark tile_scope_open(TileChecker *c);
void tile_scope_close(TileChecker *c, TileScopeMark mark);
/* Ends a scope whose ops are in the enclosing block: cached values stay visible. */
void tile_scope_close_names(TileChecker *c, TileScopeMark mark);
/* Binds a name, without checks. */
void tile_scope_push(TileChecker *c, TileBound bound);
/* Removes all bindings but the first `count`. */
void tile_scope_cut(TileChecker *c, size_t count);
/* Binds a name in the innermost scope, or reports an error. */
void tile_scope_bind(TileChecker *c, TileNameRef name, TileMeaning meaning, bool fixed);
TileVar *tile_scope_declare(TileChecker *c, TileNameRef name, TileMeaning value);
/* An internal variable, without a name in the text. */
TileVar *tile_scope_flag(TileChecker *c, const char *name, TileMeaning value);
TileBound *tile_scope_find(TileChecker *c, const char *name);
/* Hides facts that hold in loops only: loads of ranges may be moved out of them. The result is to be given to the
 * second function. */
size_t tile_facts_hide(TileChecker *c);
void tile_facts_restore(TileChecker *c, size_t hidden);
/* The name to which the extra parameters of a function generic are bound. */
const char *tile_spread_name(TileChecker *c, const char *name);
uint32_t tile_now(TileChecker *c);

#endif
