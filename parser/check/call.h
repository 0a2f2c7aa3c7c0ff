/* Calls of functions. A function is checked and emitted at each call, in a frame that has its parameters, its generics
 * and its file in scope. */
#ifndef TILE_PARSER_CHECK_CALL_H
#define TILE_PARSER_CHECK_CALL_H

#include "parser/check/check.h"

/* `exprs` may be NULL, for a call that is not in the text. */
TileMeaning tile_call_function(TileChecker *c, const TileMeaning *function, TileMeaning *arguments,
                               const TileExpr *const *exprs, unsigned count, TileSpan span);
TileMeaning tile_check_function_call(TileChecker *c, const TileExpr *call, const TileMeaning *function,
                                     const TileExpr *index);

#endif
