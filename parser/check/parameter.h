/* Parameters of a function: its arguments and generics are matched with what the call gives, and bound. */
#ifndef TILE_PARSER_CHECK_PARAMETER_H
#define TILE_PARSER_CHECK_PARAMETER_H

#include "parser/check/check.h"

typedef struct TileCall {
    const TileItem *item;
    const TileAst *ast;
    TileMeaning *arguments;
    const TileExpr *const *exprs; /* NULL entries for spread arguments */
    unsigned count;
    uint32_t given; /* generics in brackets, given at the call */
    TileSpan span;
    bool lifted;
} TileCall;
TileSpan tile_argument_span(const TileCall *call, unsigned i);
/* Is this parameter type allowed for a function? False if an error was reported. */
bool tile_check_parameter(TileChecker *c, const TileParam *param);
/* Binds generics and parameters in the frame of the function. False if an error was reported. */
bool tile_bind_call(TileChecker *c, TileCall *call, const TileMeaning *function);

#endif
