/* Calls: of functions, types and built-ins. A function is checked and emitted where it is called, in a frame of its
 * own that sees its parameters, its generics and its file. */
#ifndef TILE_PARSER_CHECK_CALL_H
#define TILE_PARSER_CHECK_CALL_H

#include "parser/check/check.h"

/* In a lifted function: a scalar as a tile of the shape that the arguments have. */
TileMeaning tile_lift(TileChecker *c, TileMeaning m);
TileMeaning tile_check_call(TileChecker *c, const TileExpr *expr);
/* May the parameter be one of a function? False when reported. */
bool tile_check_parameter(TileChecker *c, const TileParam *param);
/* The name under which the extra parameters of a function generic are bound. */
const char *tile_spread_name(TileChecker *c, const char *name);
/* `exprs` may be NULL, for a call that stands nowhere in the text. */
TileMeaning tile_call_function(TileChecker *c, const TileMeaning *function, TileMeaning *arguments,
                               const TileExpr *const *exprs, unsigned count, TileSpan span);
TileMeaning tile_check_function_call(TileChecker *c, const TileExpr *call, const TileMeaning *function,
                                     const TileExpr *index);

#endif
