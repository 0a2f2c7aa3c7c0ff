/* The assertions and prints of a function by number. Compiled code records the number of an assertion that fails
 * (mlir_bridge), and the launcher maps it to a message (driver); both take the numbers from here. */
#ifndef TILE_LANG_IR_ASSERTION_H
#define TILE_LANG_IR_ASSERTION_H

#include "base/string.h"
#include "lang/ir/ir.h"

typedef TILE_LIST(const TileOp *) TileAssertions;

/* In the order of tile_block_walk: assertion number i + 1 is items[i]. */
TileAssertions tile_func_assertions(TileFunc *func, TileArena *arena);
/* The same for print_items. Compiled code finds these numbers in its scratch (TILE_SCRATCH_..). */
TileAssertions tile_func_prints(TileFunc *func, TileArena *arena);
/* The templates of the print ops, by number less 1. */
const char **tile_func_templates(TileFunc *func, TileArena *arena, size_t *count);
/* "file:line:column: assertion failed: text, where values"; without "where" if `values` is "". */
void tile_assertion_describe(TileText *text, const TileOp *op, const char *values);

#endif
