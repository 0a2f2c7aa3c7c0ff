/* Functions as values: partial application of generics, conversion from and to text, and comparison with the type that
 * a generic declares. */
#ifndef TILE_PARSER_CHECK_FUNCTION_H
#define TILE_PARSER_CHECK_FUNCTION_H

#include "parser/check/check.h"

/* `f[3, g]`: the function with these generics bound, after those that were bound before. */
TileMeaning tile_check_filled(TileChecker *c, const TileExpr *expr, const TileMeaning *function);
/* "gelu", "nn.leaky_relu[0.3]": the function that a setting names; `span` is the location for an unknown name. */
TileMeaning tile_function_from_text(TileChecker *c, const char *setting, const char *text, TileSpan span);
/* The inverse. False if a part of it is not a compile-time constant. */
bool tile_function_print(TileChecker *c, TileText *text, const TileMeaning *function);
/* Is the meaning a function of the declared type? False if an error was reported. */
bool tile_check_function_type(TileChecker *c, const TileGeneric *generic, const TileMeaning *m, TileSpan span);

#endif
