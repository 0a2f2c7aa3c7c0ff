/* Functions as values: with generics filled in, from text, as text, and whether they are of the type that a generic
 * declares. */
#ifndef TILE_PARSER_CHECK_FUNCTION_H
#define TILE_PARSER_CHECK_FUNCTION_H

#include "parser/check/check.h"

/* `f[3, g]`: the function with these generics, behind those that it was given before. */
TileMeaning tile_check_filled(TileChecker *c, const TileExpr *expr, const TileMeaning *function);
/* "gelu", "nn.leaky_relu[0.3]": what a setting of this name means; `span` is for what is wrong with a plain name. */
TileMeaning tile_function_from_text(TileChecker *c, const char *setting, const char *text, TileSpan span);
/* The other way. False where something in it is not known at compile time. */
bool tile_function_print(TileChecker *c, TileText *text, const TileMeaning *function);
/* Is the meaning a function of the type that the generic declares? False when reported. */
bool tile_check_function_type(TileChecker *c, const TileGeneric *generic, const TileMeaning *m, TileSpan span);

#endif
