/* The assertions of a function by number. Machine code records the number of one that fails (mlir_bridge), and the
 * launcher is told what to say of it (driver), so both number them here. */
#ifndef TILE_LANG_IR_ASSERTION_H
#define TILE_LANG_IR_ASSERTION_H

#include "base/string.h"
#include "lang/ir/ir.h"

typedef TILE_LIST(const TileOp *) TileAssertions;

/* In the order of tile_block_walk: assertion number i + 1 is items[i]. */
TileAssertions tile_func_assertions(TileFunc *func, TileArena *arena);
/* Likewise its print_items. Machine code calls what it finds in its scratch (TILE_SCRATCH_..) with the number. */
TileAssertions tile_func_prints(TileFunc *func, TileArena *arena);
/* The templates of those, by number less 1. */
const char **tile_func_templates(TileFunc *func, TileArena *arena, size_t *count);
/* file:line:column: assertion failed: text, where values; no more than the text where `values` is "". */
void tile_assertion_describe(TileText *text, const TileOp *op, const char *values);

#endif
