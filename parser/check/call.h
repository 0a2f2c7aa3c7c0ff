/* Calls: of functions, types and built-ins. A function is checked and emitted at each call, in a frame that has its
 * parameters, its generics and its file in scope. */
#ifndef TILE_PARSER_CHECK_CALL_H
#define TILE_PARSER_CHECK_CALL_H

#include "parser/check/check.h"

/* In a lifted function: broadcasts a scalar to the common shape of the arguments. */
TileMeaning tile_lift(TileChecker *c, TileMeaning m);
TileMeaning tile_check_call(TileChecker *c, const TileExpr *expr);
/* Is this parameter type allowed for a function? False if an error was reported. */
bool tile_check_parameter(TileChecker *c, const TileParam *param);
/* The name to which the extra parameters of a function generic are bound. */
const char *tile_spread_name(TileChecker *c, const char *name);
/* `exprs` may be NULL, for a call that is not in the text. */
TileMeaning tile_call_function(TileChecker *c, const TileMeaning *function, TileMeaning *arguments,
                               const TileExpr *const *exprs, unsigned count, TileSpan span);
TileMeaning tile_check_function_call(TileChecker *c, const TileExpr *call, const TileMeaning *function,
                                     const TileExpr *index);

#endif
