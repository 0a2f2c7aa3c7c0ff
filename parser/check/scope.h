/* Scopes: which names are bound, and what ends with the block that binds them. */
#ifndef TILE_PARSER_CHECK_SCOPE_H
#define TILE_PARSER_CHECK_SCOPE_H

#include "parser/check/check.h"

TileScopeMark tile_scope_open(TileChecker *c);
void tile_scope_close(TileChecker *c, TileScopeMark mark);
/* Of a scope whose ops stand in the block around it: what was emitted stays known. */
void tile_scope_close_names(TileChecker *c, TileScopeMark mark);
/* Binds a name, unasked. */
void tile_scope_push(TileChecker *c, TileBound bound);
/* Forgets all bindings but the first `count`. */
void tile_scope_cut(TileChecker *c, size_t count);
/* Binds a name in the innermost scope, or reports why not. */
void tile_scope_bind(TileChecker *c, TileNameRef name, TileMeaning meaning, bool fixed);
TileVar *tile_scope_declare(TileChecker *c, TileNameRef name, TileMeaning value);
/* A variable of the compiler's own, without a name in the text. */
TileVar *tile_scope_flag(TileChecker *c, const char *name, TileMeaning value);
TileBound *tile_scope_find(TileChecker *c, const char *name);
/* Hides what holds in loops only: ranges loaded in them may be loaded before them. The result goes to the other. */
size_t tile_facts_hide(TileChecker *c);
void tile_facts_restore(TileChecker *c, size_t hidden);
uint32_t tile_now(TileChecker *c);

#endif
