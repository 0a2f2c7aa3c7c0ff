/* print(..): texts and values, one line for each program that executes it. */
#ifndef TILE_PARSER_CHECK_PRINT_H
#define TILE_PARSER_CHECK_PRINT_H

#include "parser/check/check.h"

enum { TILE_MAX_PRINTED = 16 };
/* A line under construction: a template of base/print_line.h and its items. */
typedef struct TilePrinted {
    TileText text;
    TileValue *items[2 * TILE_MAX_PRINTED + TILE_MAX_TENSOR_RANK];
    unsigned count;
} TilePrinted;
void tile_print_words(TilePrinted *printed, const char *words);
void tile_print_value(TileChecker *c, TilePrinted *printed, const TileMeaning *m);
/* Of a tile that is valid everywhere: the first element for which `chosen` is true, and its indices. */
void tile_print_first(TileChecker *c, TilePrinted *printed, const TileMeaning *m, TileValue *chosen);
void tile_print_emit(TileChecker *c, TilePrinted *printed);
TileMeaning tile_check_print(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin);

#endif
