/* Built-in functions: their table, and elementwise and shape functions. Reductions: reduce.c. */
#ifndef TILE_PARSER_CHECK_BUILTIN_H
#define TILE_PARSER_CHECK_BUILTIN_H

#include "parser/check/check.h"
#include "parser/check/propose.h"

void tile_nearest_builtin(TileNearest *nearest); /* tries the built-in functions with the same first letter */
struct TileBuiltin {
    const char *name;
    TileMeaning (*check)(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);
    TileOpId op;
    uint8_t arity;
    uint8_t types; /* allowed element types: TILE_TAKES_.. */
    uint8_t kind;  /* reductions: TileName */
};
const TileBuiltin *tile_find_builtin(const char *name);
TileMeaning tile_check_approximate(TileChecker *c, const TileExpr *call);
/* The value of the named argument, NULL if absent. */
const TileExpr *tile_named_argument(const TileExpr *call, const char *name);
/* Checks the number of positional arguments (exact, or a range), and that names are in the list. False if an error was
 * reported. */
bool tile_check_arguments(TileChecker *c, const TileExpr *call, unsigned least, unsigned most,
                          const char *const *names);
TileMeaning tile_transpose(TileChecker *c, TileMeaning m, const int64_t *axes);
/* Another shape with the same elements; map gives the new index of each old axis. */
TileMeaning tile_reshape_to(TileChecker *c, TileMeaning m, unsigned rank, const TileSum *const *extent,
                            const int8_t *map);

#endif
