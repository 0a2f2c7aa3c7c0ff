/* The syntax tree of a .tile text. All nodes are in one arena and immutable after parsing. Names are interned in the
 * tree's table: equal names are equal pointers within a program (a file and its imports). */
#ifndef TILE_PARSER_SYNTAX_AST_H
#define TILE_PARSER_SYNTAX_AST_H

#include "base/map.h"
#include "parser/syntax/lex.h"

typedef struct TileExpr TileExpr;
typedef struct TileStatement TileStatement;
typedef struct TileTypeExpr TileTypeExpr;
typedef struct TileItem TileItem;

/* Deeper nesting is an error, so that tree walks may recurse. */
enum { TILE_MAX_DEPTH = 256 };
/* The limit for nested branches and loops of a kernel with its calls inlined. Lower than the verifier's limit for the
 * IR, since passes add loops. */
enum { TILE_MAX_REGIONS = 128 };

typedef struct TileNameRef {
    const char *name;
    TileSpan span;
} TileNameRef;

/* Statements in braces. `value` is the final expression that is not a statement, or NULL. */
typedef struct TileSequence {
    TILE_LIST(TileStatement *) statements;
    TileExpr *value;
    TileSpan span;
} TileSequence;

typedef struct TileArgumentExpr {
    const char *name; /* NULL for a positional argument */
    TileSpan name_span;
    TileExpr *value;
} TileArgumentExpr;

typedef enum TileExprKind {
    TILE_EXPR_NAME,
    TILE_EXPR_INTEGER,
    TILE_EXPR_FLOAT,
    TILE_EXPR_BOOL,
    TILE_EXPR_STRING,
    TILE_EXPR_TUPLE,   /* items */
    TILE_EXPR_UNARY,   /* op a */
    TILE_EXPR_BINARY,  /* a op b, `else` and `..` included */
    TILE_EXPR_FIELD,   /* a.name */
    TILE_EXPR_INDEX,   /* a[items]: an index or generic arguments, depending on the name's meaning */
    TILE_EXPR_CALL,    /* a(arguments) */
    TILE_EXPR_IF,      /* if a { then } else .., also `static if` */
    TILE_EXPR_COLON,   /* `:` as an entry of an index */
    TILE_EXPR_NEWAXIS, /* `_` as an entry of an index */
    TILE_EXPR_SKIP,    /* in `else skip` */
    TILE_EXPR_SPREAD,  /* ...name as an argument */
    TILE_EXPR_RUN,     /* run a, a kernel called in a test */
} TileExprKind;

struct TileExpr {
    uint8_t kind; /* TileExprKind */
    uint8_t op;   /* UNARY, BINARY: TileTokenKind */
    uint16_t depth;
    bool parenthesised;
    bool is_static; /* IF: only the side that its constant condition chooses is looked at */
    TileSpan span;
    TileSpan op_span; /* BINARY: the operator; FIELD: the name */
    TileExpr *a, *b;
    union {
        const char *name; /* NAME, FIELD, SPREAD; STRING: the text, with escapes resolved */
        uint64_t integer;
        double number;
        bool truth;
        TILE_LIST(TileExpr *) items;
        TILE_LIST(TileArgumentExpr) arguments;
        struct {
            TileSequence *then;
            TileSequence *otherwise; /* or NULL; for `else if`, a sequence whose value or statement is the inner if */
        };
    };
};

typedef enum TileTypeExprKind {
    TILE_TYPE_EXPR_NAME,
    TILE_TYPE_EXPR_RANGE,
    TILE_TYPE_EXPR_TUPLE,
    TILE_TYPE_EXPR_FN
} TileTypeExprKind;
typedef enum TileAccessWord { TILE_WORD_NONE, TILE_WORD_IN, TILE_WORD_OUT, TILE_WORD_INOUT } TileAccessWord;

struct TileTypeExpr {
    uint8_t kind;   /* TileTypeExprKind */
    uint8_t access; /* TileAccessWord */
    bool is_const;
    bool has_extents; /* NAME: has brackets, possibly empty (a tensor of rank 0) */
    bool open;        /* FN: the parameters end in `...` */
    TileSpan span, name_span;
    const char *name;                /* NAME */
    TILE_LIST(TileExpr *) extents;   /* NAME; RANGE: its size */
    TILE_LIST(TileTypeExpr *) items; /* TUPLE; FN: parameters */
    TileTypeExpr *result;            /* FN */
};

typedef enum TileGenericKind { TILE_GENERIC_TYPE, TILE_GENERIC_CONST, TILE_GENERIC_FN } TileGenericKind;

typedef struct TileGeneric {
    uint8_t kind; /* TileGenericKind */
    const char *name;
    TileSpan span;
    TILE_LIST(TileNameRef) classes; /* TYPE: `float`, or the types of a list */
    TileTypeExpr *type;             /* FN; CONST: NULL or the type */
    TileExpr *value;                /* CONST, FN: NULL or the default */
} TileGeneric;

typedef struct TileParam {
    const char *name; /* of a spread, the name of the function generic */
    TileSpan span;
    TileTypeExpr *type; /* NULL for a spread */
    bool spread;
} TileParam;

typedef struct TileRequire {
    TILE_LIST(TileExpr *) conditions;
    const char *text; /* NULL if none is given */
    TileSpan span;
} TileRequire;

typedef struct TileTuneName {
    const char *name;
    TileSpan span;
    TILE_LIST(TileExpr *) candidates;
} TileTuneName;

typedef struct TileTune {
    const char *target; /* NULL, "cpu" or "gpu" */
    TILE_LIST(TileTuneName) names;
    TileExpr *where; /* NULL if none is given */
    TileSpan span;
} TileTune;

typedef struct TileExport {
    TileNameRef module; /* of `module.kernel`; its name is NULL without */
    TileNameRef kernel;
    TILE_LIST(TileExpr *) arguments;
    TILE_LIST(TileArgumentExpr) settings; /* NAME = value, after the arguments */
    const char *name;                     /* NULL without `as` */
    TileSpan span;
} TileExport;

/* Warnings that a kernel may suppress: `allow rounding, unused_name`. The words are in parse_item.c. */
typedef enum TileWarning {
    TILE_WARN_ROUNDING,
    TILE_WARN_ELSE,
    TILE_WARN_UNUSED_RESULT,
    TILE_WARN_UNUSED_NAME,
    TILE_WARN_LANES_MEET,
    TILE_WARN_PROGRAMS_MEET,
    TILE_WARN_COUNT
} TileWarning;

extern const char *const tile_warning_words[TILE_WARN_COUNT];

/* What a name of a type in other languages is called here, as f32 for float32, float and fp32; or NULL. */
const char *tile_foreign_type(TileArena *arena, const char *name);

typedef enum TileItemKind {
    TILE_ITEM_IMPORT,
    TILE_ITEM_CONST,
    TILE_ITEM_FN,
    TILE_ITEM_KERNEL,
    TILE_ITEM_EXPORT,
    TILE_ITEM_TEST,
    TILE_ITEM_STATIC_ASSERT
} TileItemKind;

struct TileItem {
    uint8_t kind;     /* TileItemKind */
    bool broken;      /* it has syntax errors, and so no meaning; uses of it are not reported */
    bool header_right; /* FN, KERNEL: no errors before the body, of which the statements without errors are there */
    bool is_path;     /* IMPORT: "path" and not a module's name */
    const char *name; /* IMPORT: module or path; TEST: its text */
    const char *doc;  /* text of the `///` lines before it, or NULL */
    TileSpan span, name_span;
    TileSpan signature; /* FN, KERNEL: from the name to the end of the parameters */
    TILE_LIST(TileGeneric) generics;
    TILE_LIST(TileParam) params;
    TileTypeExpr *type; /* FN: result, NULL when none; CONST: NULL or its type */
    TileExpr *value;    /* CONST */
    TILE_LIST(TileNameRef) statics;
    TILE_LIST(TileRequire) requires;
    TILE_LIST(TileNameRef) overlaps; /* allow overlap(..): the names of all such clauses */
    uint32_t allows;                 /* bit set of TileWarning */
    TILE_LIST(TileTune) tunes;
    TILE_LIST(TileExport) exports;
    TILE_LIST(TileArgumentExpr) arguments; /* STATIC_ASSERT */
    TileSequence *body;
};

typedef enum TileStatementKind {
    TILE_STATEMENT_LET,
    TILE_STATEMENT_VAR,
    TILE_STATEMENT_ASSIGN,
    TILE_STATEMENT_EXPR,
    TILE_STATEMENT_FOR,
    TILE_STATEMENT_WHILE,
    TILE_STATEMENT_BREAK,
    TILE_STATEMENT_CONTINUE,
    TILE_STATEMENT_RETURN,
    TILE_STATEMENT_GRID,
    TILE_STATEMENT_TEMP,
    TILE_STATEMENT_ASSERT,
    TILE_STATEMENT_STATIC_ASSERT
} TileStatementKind;

struct TileStatement {
    uint8_t kind;               /* TileStatementKind */
    uint8_t op;                 /* ASSIGN: TileTokenKind, TILE_TOKEN_ASSIGN or += and so on */
    bool is_static, is_ordered; /* FOR */
    TileSpan span;
    TILE_LIST(TileNameRef) names; /* LET, VAR, FOR, GRID, TEMP */
    bool tuple;                   /* LET, VAR, FOR, GRID: the names are in parentheses */
    TileExpr *target;             /* ASSIGN */
    TileExpr *value;              /* the bound, assigned or returned value (or NULL), the range of the loop, or the
                                   * condition */
    TileExpr *step;               /* FOR, or NULL */
    TileTypeExpr *type;           /* TEMP */
    TILE_LIST(TileArgumentExpr) arguments; /* ASSERT, STATIC_ASSERT */
    TileSequence *body;
};

typedef struct TileAst TileAst;
struct TileAst {
    TileArena *arena;
    TileInterner *names;
    uint32_t file; /* in the list of diagnostics */
    TILE_LIST(TileItem *) items;
    bool lost;                    /* the name of an item is unknown, due to syntax errors */
    bool lost_kernel;             /* the same, for a kernel */
    TileMap named;                /* constants, functions and kernels by name: the first of each name */
    TILE_LIST(TileAst *) imports; /* the trees of the import items, in order; set by tile_resolve_imports */
};

#endif
