/* The table of built-in functions. Their rules: elementwise.c, reduce.c, fold.c, sort.c, count.c, draw.c, join.c, arrange.c, einsum.c, packed.c, scatter.c, range.c. */
#ifndef TILE_PARSER_CHECK_BUILTIN_H
#define TILE_PARSER_CHECK_BUILTIN_H

#include "parser/check/check.h"
#include "parser/check/propose.h"

/* The rule by which a call is checked (callee.c). */
typedef enum TileBuiltinRule {
    TILE_BUILTIN_ELEMENTWISE,
    TILE_BUILTIN_EXTREMUM, /* elementwise with two arguments, a reduction with one */
    TILE_BUILTIN_CLAMP,
    TILE_BUILTIN_CDIV,
    TILE_BUILTIN_WHERE,
    TILE_BUILTIN_KEEP,
    TILE_BUILTIN_REDUCTION,
    TILE_BUILTIN_MEAN,
    TILE_BUILTIN_ARG_REDUCTION,
    TILE_BUILTIN_CUMULATIVE,
    TILE_BUILTIN_DOT,
    TILE_BUILTIN_PERMUTE,
    TILE_BUILTIN_RESHAPE,
    TILE_BUILTIN_ZEROS,
    TILE_BUILTIN_FULL,
    TILE_BUILTIN_IOTA,
    TILE_BUILTIN_BITCAST,
    TILE_BUILTIN_GATHER,
    TILE_BUILTIN_SCATTER,
    TILE_BUILTIN_SPAN,
    TILE_BUILTIN_TILES,
    TILE_BUILTIN_FOLD,
    TILE_BUILTIN_SORT,
    TILE_BUILTIN_ARGSORT,
    TILE_BUILTIN_TOPK,
    TILE_BUILTIN_HISTOGRAM,
    TILE_BUILTIN_SEARCHSORTED,
    TILE_BUILTIN_SPLIT,
    TILE_BUILTIN_JOIN,
    TILE_BUILTIN_CAT,
    TILE_BUILTIN_RAND,
    TILE_BUILTIN_RANDN,
    TILE_BUILTIN_RANDINT,
    TILE_BUILTIN_RANDPERM,
    TILE_BUILTIN_LDEXP,
    TILE_BUILTIN_FREXP,
    TILE_BUILTIN_BROADCAST,
    TILE_BUILTIN_SHIFT,
    TILE_BUILTIN_VALID,
    TILE_BUILTIN_EINSUM,
    TILE_BUILTIN_UNPACK,
    TILE_BUILTIN_PACK,
    TILE_BUILTIN_DOT_SCALED,
    TILE_BUILTIN_ATOMIC,
    TILE_BUILTIN_PRINT,
} TileBuiltinRule;

enum { TILE_TAKES_FLOAT, TILE_TAKES_NUMBER, TILE_TAKES_INTEGER, TILE_TAKES_WHAT_OP_DOES };

struct TileBuiltin {
    const char *name;
    TileBuiltinRule rule;
    TileOpId op;
    uint8_t arity;
    uint8_t types; /* allowed element types: TILE_TAKES_.. */
    uint8_t kind;  /* reductions: TileName */
};
const TileBuiltin *tile_find_builtin(const char *name);
/* The built-in functions by number, NULL behind the last. */
const TileBuiltin *tile_builtin_at(size_t index);
void tile_nearest_builtin(TileNearest *nearest); /* tries the built-in functions with the same first letter */

#endif
