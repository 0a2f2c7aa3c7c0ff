/* The table of built-in functions. */
#include "parser/check/builtin.h"
#include "parser/check/propose.h"

#include <string.h>

static const TileBuiltin builtins[] = {
    {"min", TILE_BUILTIN_EXTREMUM, TILE_OP_MIN, 2, TILE_TAKES_NUMBER, TILE_KIND_MIN},
    {"max", TILE_BUILTIN_EXTREMUM, TILE_OP_MAX, 2, TILE_TAKES_NUMBER, TILE_KIND_MAX},
    {"clamp", TILE_BUILTIN_CLAMP, TILE_OP_COUNT, 3, TILE_TAKES_NUMBER, 0},
    {"cdiv", TILE_BUILTIN_CDIV, TILE_OP_COUNT, 2, TILE_TAKES_INTEGER, 0},
    {"where", TILE_BUILTIN_WHERE, TILE_OP_SELECT, 3, TILE_TAKES_NUMBER, 0},
    {"keep", TILE_BUILTIN_KEEP, TILE_OP_COUNT, 2, TILE_TAKES_NUMBER, 0},
    {"sum", TILE_BUILTIN_REDUCTION, TILE_OP_ADD, 1, TILE_TAKES_NUMBER, TILE_KIND_SUM},
    {"prod", TILE_BUILTIN_REDUCTION, TILE_OP_MUL, 1, TILE_TAKES_NUMBER, TILE_KIND_PROD},
    {"any", TILE_BUILTIN_REDUCTION, TILE_OP_OR, 1, TILE_TAKES_NUMBER, TILE_KIND_ANY},
    {"all", TILE_BUILTIN_REDUCTION, TILE_OP_AND, 1, TILE_TAKES_NUMBER, TILE_KIND_ALL},
    {"mean", TILE_BUILTIN_MEAN, TILE_OP_COUNT, 1, TILE_TAKES_FLOAT, 0},
    {"argmin", TILE_BUILTIN_ARG_REDUCTION, TILE_OP_COUNT, 1, TILE_TAKES_NUMBER, TILE_KIND_MIN},
    {"argmax", TILE_BUILTIN_ARG_REDUCTION, TILE_OP_COUNT, 1, TILE_TAKES_NUMBER, TILE_KIND_MAX},
    {"cumsum", TILE_BUILTIN_CUMULATIVE, TILE_OP_COUNT, 1, TILE_TAKES_NUMBER, TILE_KIND_SUM},
    {"cumprod", TILE_BUILTIN_CUMULATIVE, TILE_OP_COUNT, 1, TILE_TAKES_NUMBER, TILE_KIND_PROD},
    {"dot", TILE_BUILTIN_DOT, TILE_OP_DOT, 3, TILE_TAKES_NUMBER, 0},
    {"permute", TILE_BUILTIN_PERMUTE, TILE_OP_PERMUTE, 2, TILE_TAKES_NUMBER, 0},
    {"reshape", TILE_BUILTIN_RESHAPE, TILE_OP_RESHAPE, 2, TILE_TAKES_NUMBER, 0},
    {"zeros", TILE_BUILTIN_ZEROS, TILE_OP_CONST, 1, TILE_TAKES_NUMBER, 0},
    {"full", TILE_BUILTIN_FULL, TILE_OP_CONST, 1, TILE_TAKES_NUMBER, 0},
    {"iota", TILE_BUILTIN_IOTA, TILE_OP_IOTA, 0, TILE_TAKES_NUMBER, 0},
    {"bitcast", TILE_BUILTIN_BITCAST, TILE_OP_BITCAST, 1, TILE_TAKES_NUMBER, 0},
    {"gather", TILE_BUILTIN_GATHER, TILE_OP_LOAD_TILE, 0, TILE_TAKES_NUMBER, 0},
    {"scatter", TILE_BUILTIN_SCATTER, TILE_OP_STORE_TILE, 0, TILE_TAKES_NUMBER, 0},
    {"span", TILE_BUILTIN_SPAN, TILE_OP_COUNT, 2, TILE_TAKES_NUMBER, 0},
    {"tiles", TILE_BUILTIN_TILES, TILE_OP_COUNT, 2, TILE_TAKES_NUMBER, 0},
    {"reduce", TILE_BUILTIN_FOLD, TILE_OP_COUNT, 0, TILE_TAKES_NUMBER, 0},
    {"scan", TILE_BUILTIN_FOLD, TILE_OP_COUNT, 0, TILE_TAKES_NUMBER, 0},
    {"sort", TILE_BUILTIN_SORT, TILE_OP_SORT, 0, TILE_TAKES_NUMBER, 0},
    {"argsort", TILE_BUILTIN_ARGSORT, TILE_OP_SORT, 1, TILE_TAKES_NUMBER, 0},
    {"topk", TILE_BUILTIN_TOPK, TILE_OP_SORT, 2, TILE_TAKES_NUMBER, 0},
    {"histogram", TILE_BUILTIN_HISTOGRAM, TILE_OP_COUNT, 2, TILE_TAKES_INTEGER, 0},
    {"searchsorted", TILE_BUILTIN_SEARCHSORTED, TILE_OP_COUNT, 2, TILE_TAKES_NUMBER, 0},
    {"split", TILE_BUILTIN_SPLIT, TILE_OP_SLICE, 1, TILE_TAKES_NUMBER, 0},
    {"join", TILE_BUILTIN_JOIN, TILE_OP_CAT, 2, TILE_TAKES_NUMBER, 0},
    {"cat", TILE_BUILTIN_CAT, TILE_OP_CAT, 2, TILE_TAKES_NUMBER, 0},
    {"rand", TILE_BUILTIN_RAND, TILE_OP_RAND, 2, TILE_TAKES_INTEGER, 0},
    {"randn", TILE_BUILTIN_RANDN, TILE_OP_RAND, 2, TILE_TAKES_INTEGER, 0},
    {"randint", TILE_BUILTIN_RANDINT, TILE_OP_RAND, 4, TILE_TAKES_INTEGER, 0},
    {"randperm", TILE_BUILTIN_RANDPERM, TILE_OP_SORT, 2, TILE_TAKES_INTEGER, 0},
    {"ldexp", TILE_BUILTIN_LDEXP, TILE_OP_LDEXP, 2, TILE_TAKES_FLOAT, 0},
    {"frexp", TILE_BUILTIN_FREXP, TILE_OP_FREXP_FRACTION, 1, TILE_TAKES_FLOAT, 0},
    {"broadcast", TILE_BUILTIN_BROADCAST, TILE_OP_BROADCAST, 2, TILE_TAKES_NUMBER, 0},
    {"shift", TILE_BUILTIN_SHIFT, TILE_OP_CAT, 3, TILE_TAKES_NUMBER, 0},
    {"valid", TILE_BUILTIN_VALID, TILE_OP_COUNT, 1, TILE_TAKES_NUMBER, 0},
    {"einsum", TILE_BUILTIN_EINSUM, TILE_OP_DOT, 3, TILE_TAKES_NUMBER, 0},
    {"unpack", TILE_BUILTIN_UNPACK, TILE_OP_CAT, 1, TILE_TAKES_INTEGER, 0},
    {"pack", TILE_BUILTIN_PACK, TILE_OP_CAT, 1, TILE_TAKES_NUMBER, 0},
    {"dot_scaled", TILE_BUILTIN_DOT_SCALED, TILE_OP_DOT, 3, TILE_TAKES_NUMBER, 0},
    {"atomic_add", TILE_BUILTIN_ATOMIC, TILE_OP_ATOMIC_TILE, 2, TILE_TAKES_NUMBER, TILE_UPDATE_ADD},
    {"atomic_max", TILE_BUILTIN_ATOMIC, TILE_OP_ATOMIC_TILE, 2, TILE_TAKES_NUMBER, TILE_UPDATE_MAX},
    {"atomic_min", TILE_BUILTIN_ATOMIC, TILE_OP_ATOMIC_TILE, 2, TILE_TAKES_NUMBER, TILE_UPDATE_MIN},
    {"atomic_cas", TILE_BUILTIN_ATOMIC, TILE_OP_ATOMIC_TILE, 2, TILE_TAKES_NUMBER, TILE_UPDATE_CAS},
    {"print", TILE_BUILTIN_PRINT, TILE_OP_PRINT, 0, TILE_TAKES_NUMBER, 0},
};

/* Elementwise operations with the trait FUNCTION are functions with the mnemonic's name. */
static const TileBuiltin op_functions[TILE_OP_COUNT] = {
#define ANY 0
#define OP(id, mnemonic, class, operands, results, regions, forms, traits, rule, attributes, doc)                      \
    {mnemonic, TILE_BUILTIN_ELEMENTWISE, TILE_OP_##id, operands, TILE_TAKES_WHAT_OP_DOES, 0},
#include "lang/ir/ops.def"
#undef OP
#undef ANY
};

void tile_nearest_builtin(TileNearest *nearest) {
    for (int op = 0; op < TILE_OP_COUNT; op++) {
        const char *name = tile_op_info((TileOpId)op)->mnemonic;
        bool function = tile_op_info((TileOpId)op)->traits & TILE_TRAIT_FUNCTION;
        if (function && *name == *nearest->name) tile_nearest_try(nearest, name);
    }
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (*builtins[i].name == *nearest->name) tile_nearest_try(nearest, builtins[i].name);
}

const TileBuiltin *tile_find_builtin(const char *name) {
    TileOpId op = tile_op_find(name, strlen(name));
    if (op != TILE_OP_COUNT && (tile_op_info(op)->traits & TILE_TRAIT_FUNCTION)) return &op_functions[op];
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (*builtins[i].name == *name && strcmp(builtins[i].name, name) == 0) return &builtins[i];
    return NULL;
}

const TileBuiltin *tile_builtin_at(size_t index) {
    size_t own = sizeof builtins / sizeof *builtins;
    if (index < own) return &builtins[index];
    for (int op = 0; op < TILE_OP_COUNT; op++)
        if (tile_op_info((TileOpId)op)->traits & TILE_TRAIT_FUNCTION && index-- == own) return &op_functions[op];
    return NULL;
}
