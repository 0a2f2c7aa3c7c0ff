/* Arguments of built-in functions: their number, their names, operands of a common type. */
#ifndef TILE_PARSER_CHECK_ARGUMENTS_H
#define TILE_PARSER_CHECK_ARGUMENTS_H

#include "parser/check/check.h"

/* The value of the named argument, NULL if absent. */
const TileExpr *tile_named_argument(const TileExpr *call, const char *name);
/* For messages: the name of the function that is called. */
const char *tile_callee_name(const TileExpr *call);
/* Checks the number of positional arguments (exact, or a range), and that names are in the list. False if an error was
 * reported. */
bool tile_check_arguments(TileChecker *c, const TileExpr *call, unsigned least, unsigned most,
                          const char *const *names);
/* Positional argument `index`, NULL if there are fewer. */
const TileExpr *tile_positional_argument(const TileExpr *call, unsigned index);
/* A bool that is known at compile time, false if the argument is absent. False if an error was reported. */
bool tile_check_flag(TileChecker *c, const TileExpr *call, const char *name, bool *flag);
/* A tile of rank 1 or more, of the function `name`. False if an error was reported. */
bool tile_check_tile(TileChecker *c, const TileExpr *expr, const char *name, TileMeaning *m);
/* All positional arguments as values of a common element type. */
bool tile_check_operands(TileChecker *c, const TileExpr *call, unsigned count, TileMeaning *operands);

#endif
