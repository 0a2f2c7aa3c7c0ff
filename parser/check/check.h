/* Inside of the checker. It walks one instance of a kernel (generics bound) and emits tile form as it goes:
 * every name has a meaning, every value a type, a shape and the atoms of its validity. Functions are checked and
 * emitted where they are called, so that ranges, tensors and validity pass through them whole.
 *
 * order.txt has its files from below upward; each has a header of its name. Here is what all of them share.
 */
#ifndef TILE_PARSER_CHECK_CHECK_H
#define TILE_PARSER_CHECK_CHECK_H

#include "lang/ir/build.h"
#include "parser/check/program.h"
#include "lang/affine/sum.h"

typedef struct TileChecker TileChecker;
typedef struct TileRange TileRange;
typedef struct TileTensor TileTensor;
typedef struct TileBuiltin TileBuiltin;
typedef struct TileTestState TileTestState;

/* ---- validity ---- */

typedef enum TileAtomKind {
    TILE_ATOM_INTERVAL,  /* lanes lo .. hi of one axis */
    TILE_ATOM_CONDITION, /* the whole value, where 0 <= index < dim, or where `of` is not empty or true */
    TILE_ATOM_MASK,      /* lanes where a bool tile is true */
} TileAtomKind;

/* One source of invalidity, with a birth: a variable may only take on atoms older than itself. */
typedef struct TileAtom TileAtom;
struct TileAtom {
    TileAtomKind kind;
    uint32_t birth;
    const TileRange *root;             /* INTERVAL: the range as it was bound; with first, step and dim the identity */
    const TileSum *first, *step, *dim; /* dim NULL: the range's own limit */
    const TileSum *lo, *hi, *size;     /* INTERVAL; lo or hi NULL: no bound on that side */
    const TileSum *index;              /* CONDITION, with dim */
    const struct TileValidity *guard;  /* CONDITION, MASK: where the index itself is valid */
    TileAtom *of;                      /* CONDITION: an interval or mask over axes of extent 1 that were stretched */
    TileValue *mask;                   /* MASK */
    TileValue *key;                    /* MASK: the index tile that it guards, or the mask itself */
    bool holds_first;                  /* INTERVAL: lane 0 is inside, whatever the values are */
    TileSpan span;
    const TileSum *limit; /* INTERVAL without dim: of the range */
    const char *words;    /* MASK without dim: what is not valid */
    size_t cache;         /* the emitter's */
};

typedef struct TileValidEntry {
    TileAtom *atom;
    int8_t axes[TILE_MAX_TILE_RANK]; /* INTERVAL: axes[0]; MASK: one for each axis of the mask, -1 where it is 1 */
    TileSpan where;                  /* the access that brought it */
} TileValidEntry;

/* Valid where all atoms hold. Never changed once made; NULL is valid everywhere. */
typedef struct TileValidity {
    unsigned count;
    TileValidEntry entries[];
} TileValidity;

/* ---- meanings ---- */

typedef enum TileMeaningKind {
    TILE_MEANING_ERROR, /* reported already: whatever uses it stays silent */
    TILE_MEANING_NOTHING,
    TILE_MEANING_INTEGER, /* a literal without a type */
    TILE_MEANING_NUMBER,
    TILE_MEANING_CHOICE, /* between literals, which have no type yet: a condition and two */
    TILE_MEANING_VALUE,  /* a scalar or tile */
    TILE_MEANING_RANGE,
    TILE_MEANING_TENSOR,
    TILE_MEANING_TUPLE,
    TILE_MEANING_TYPE,
    TILE_MEANING_FUNCTION,
    TILE_MEANING_BUILTIN,
    TILE_MEANING_MODULE,
    TILE_MEANING_TEXT,
    TILE_MEANING_DOTS,   /* a..b */
    TILE_MEANING_SPREAD, /* the extra arguments of a function generic */
} TileMeaningKind;

typedef struct TileMeaning TileMeaning;
struct TileMeaning {
    uint8_t kind;
    uint8_t scalar; /* VALUE, TYPE: TileScalar */
    uint8_t rank;
    bool constant; /* VALUE of rank 0: `bits` is known at compile time */
    bool positive_literal;
    uint8_t open;   /* literals, VALUE of rank 0: TileOpen, of what it was made of */
    uint32_t count; /* TUPLE, SPREAD; FUNCTION: how many generics are given */
    const TileSum *extent[TILE_MAX_TILE_RANK];
    TileValue *value;          /* VALUE; NULL while only a sum or constant */
    const TileSum *sum;        /* VALUE: i64 scalars always have one */
    uint64_t bits;             /* VALUE: constant */
    const TileValidity *valid; /* VALUE */
    __int128 integer;          /* INTEGER */
    double number;             /* NUMBER */
    union {
        TileRange *range;
        TileTensor *tensor; /* TENSOR; VALUE in a test: the tensor that it is the whole of, or NULL */
        TileMeaning *items; /* TUPLE, CHOICE (three), DOTS (two), SPREAD */
        const TileBuiltin *builtin;
        const char *text;
        struct {
            const TileItem *item;     /* FUNCTION */
            const TileAst *ast;       /* FUNCTION, MODULE: the file that it stands in */
            const TileMeaning *given; /* FUNCTION: its first generics, as in `scaled[3]` */
        };
    };
};

struct TileRange {
    const char *name;
    const TileSum *first, *size, *step; /* lane l has the index first + l * step */
    const TileSum *lowest, *highest;    /* bounds of the valid lanes' indices, inclusive; NULL where unknown */
    const TileSum *end;                 /* NULL for strided ranges */
    const TileRange *root;
    TileAtom *lanes; /* NULL: all valid */
    uint32_t birth;
    TileSpan span;
};

struct TileTensor {
    const char *name;
    TileValue *value;
    TileScalar scalar;
    TileAccess access;
    unsigned rank;
    const TileSum *dims[TILE_MAX_TENSOR_RANK];
    TileSpan span;
    uint32_t number; /* in the plan of a test */
};

typedef struct TileVar {
    const char *name;
    TileMeaning now; /* `valid` holds what the variable may lack at any time */
    uint32_t birth;
    bool undecided;   /* a side of a branch that is not taken leaves it otherwise: what it then says is checked too */
    uint32_t carried; /* of the loop that was looked at last, where it carries the variable */
    TileSpan span;
} TileVar;

/* ---- scopes ---- */

typedef struct TileBound {
    const char *name;
    TileMeaning meaning;
    TileVar *var; /* or NULL */
    TileSpan span;
    bool fixed;      /* a parameter, dimension or tune name: may not be bound again further in */
    uint32_t hidden; /* the place, plus 1, of the binding of the same name further out */
} TileBound;

typedef struct TileLoopFrame {
    struct TileLoopFrame *parent;
    TileVar *skip;  /* the rest of this turn; NULL where nothing leaves the body */
    TileVar *broke; /* the rest of the loop; NULL without `break` */
    const TileStatement *statement;
    uint32_t birth; /* variables that are older are carried from turn to turn */
} TileLoopFrame;

/* A kernel or a call of a function. */
typedef struct TileFrame {
    struct TileFrame *parent;
    const TileItem *item;
    const TileAst *ast;
    size_t scope_base;
    TileSpan call;
    bool binding;      /* arguments are being bound: what is wrong with them is wrong in the caller */
    bool lifted;       /* scalar parameters stand for tiles */
    TileMeaning shape; /* lifted: the arguments' common shape */
    bool has_flags;    /* some `return` does not stand last */
    TileVar *returned; /* with has_flags */
    TileVar **results; /* with has_flags: one, or one for each part of a tuple */
    unsigned result_count;
    TileMeaning value; /* without: what `return` gave */
    bool has_value;
    uint8_t left; /* TileOpen of the conditions under which the rest of the body is not reached */
    TileTypeExpr *result_type;
    TileLoopFrame *loop;
} TileFrame;

typedef struct TileScopeMark {
    size_t bounds, vars, atoms, cache, facts, scope_start;
} TileScopeMark;

typedef struct TileCacheEntry {
    const void *key;
    TileValue *value;
} TileCacheEntry;
typedef TILE_LIST(TileCacheEntry) TileCache;

typedef struct TileConstant {
    const TileItem *item;
    TileMeaning value;
} TileConstant;

struct TileChecker {
    TileContext *context;
    TileDiagnostics *diagnostics;
    TileArena *arena;
    TileInterner *names;
    const TileAst *ast; /* of the kernel */
    TileModule *module;
    TileFunc *func;
    TileBuilder builder;
    TileSpan where; /* of what is being emitted */
    uint32_t where_begin, where_file;
    TileSumTable sums;
    TILE_LIST(TileBound) bounds;
    TileMap innermost; /* by name: the place, plus 1, of the innermost binding */
    TILE_LIST(TileVar *) vars;
    TILE_LIST(TileAtom *) atoms;
    TileCache cache;
    TILE_LIST(TileConstant) constants; /* evaluated so far */
    TileFrame *frame;
    size_t scope_start;     /* first binding of the innermost scope */
    const char *fill_word;  /* what `else` would be proposed with */
    uint32_t clock;         /* births */
    uint32_t carried_stamp; /* loops looked at */
    size_t grid_facts;      /* of the facts known: those that hold in the whole grid */

    unsigned depth;   /* of calls */
    unsigned regions; /* branches and loops that are open */
    unsigned masked;  /* branches around that a tile decides, so that both sides run */
    unsigned untaken; /* sides of branches around that a constant decides, and that are not taken */
    size_t op_count;
    uint64_t points;     /* of tune clauses, that were tried */
    unsigned rests;      /* statements around that may have left the sequence: what follows runs where they did not */
    bool has_large_tile; /* and that was said */
    bool in_grid;
    bool in_combiner;                  /* ops go to the combiner of a fold or scan, which has no control flow */
    TileOp *grid;                      /* that is being checked */
    bool representative;               /* a generic check: types and values that are not bound have stand-ins */
    bool second;                       /* the other stand-ins: another type, the opposite of each bool */
    TILE_LIST(const char *) stand_ins; /* the names that have one */
    unsigned type_stand_ins;           /* of them, types */
    bool stands_alone;                 /* a function is checked by itself */
    bool unreal;                       /* what stands in does not satisfy what the kernel requires */
    bool incomplete;                   /* something was left out until more is known */
    uint8_t met;                       /* TileOpen of the names read in the expression at hand */
    uint8_t doubt;                     /* TileOpen of the conditions of the branches around */
    uint8_t about;                     /* TileOpen of what the next message is about */
    unsigned open_turns;               /* loops around that are unrolled by a number that may be another one */
    bool unrolled;                     /* there was such a loop */
    unsigned grid_count;
    TileTestState *test; /* NULL outside of tests */
    TileSumNeeds needs;  /* of the grid being checked */
    const TileLowerOptions *options;
    uint32_t *file_numbers; /* file of the diagnostics to file of the context */
};

enum { TILE_MAX_TILE_EXTENT = 1 << 24 };
enum { TILE_MAX_CALL_DEPTH = 64, TILE_MAX_TUNE_NAMES = 16 };

static inline bool tile_extents_agree(const TileSum *a, const TileSum *b) {
    return a == b || tile_sum_is_literal(a, 1) || tile_sum_is_literal(b, 1);
}

#endif
