/* Where the names of a file stand: each place that binds a name, and each that uses it, with the binding that is meant.
 * For editors: nothing of it needs types or values, so it is there for texts with errors too, and for code that no check
 * reaches. The rules are those by which the checker looks names up (parser/check/scope.c, names.c), which a test holds
 * against each other. Names of types and of built-in functions are mentioned without a binding. */
#ifndef TILE_PARSER_SYNTAX_MENTIONS_H
#define TILE_PARSER_SYNTAX_MENTIONS_H

#include "parser/syntax/ast.h"

typedef enum TileNameKind {
    TILE_NAME_MODULE, /* `import math` */
    TILE_NAME_CONSTANT,
    TILE_NAME_FUNCTION,
    TILE_NAME_KERNEL,
    TILE_NAME_EXPORT, /* `export k[f32] as NAME` */
    TILE_NAME_GENERIC,
    TILE_NAME_TUNE,
    TILE_NAME_PARAMETER,
    TILE_NAME_DIMENSION,
    TILE_NAME_LET,
    TILE_NAME_VAR,
    TILE_NAME_LOOP, /* of `for` and `grid` */
    TILE_NAME_TEMP,
} TileNameKind;

/* What a name stands for. */
typedef struct TileNamed {
    TileNameKind kind;
    const char *name;
    TileSpan span;        /* where it is bound */
    TileSpan scope;       /* where it can be used; empty: in the whole file, and by those that import it. Names of a kernel's
                           * header are arguments of `run` and `export` beyond it */
    const TileItem *item; /* itself, or the item that it belongs to */
    const TileAst *module; /* MODULE: the file, or NULL */
    const TileParam *param;
    const TileGeneric *generic;
} TileNamed;

typedef struct TileMention {
    TileSpan span;
    const char *name;
    const TileNamed *named; /* NULL: no binding of a text */
} TileMention;

typedef struct TileMentions {
    TILE_LIST(TileMention) list;  /* by place */
    TILE_LIST(TileNamed *) named; /* all that the file binds, and what it uses of others */
} TileMentions;

/* Of the file alone; its imports have been resolved. In the arena of the tree. */
TileMentions *tile_list_mentions(const TileAst *ast);
/* The mention at the place, or the one that ends there; NULL if there is none. */
const TileMention *tile_mention_at(const TileMentions *mentions, uint32_t offset);
/* May the name be used at this place, as far as scopes go? */
bool tile_named_reaches(const TileNamed *named, uint32_t file, uint32_t offset);

#endif
