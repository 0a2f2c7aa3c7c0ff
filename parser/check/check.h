/* Internals of the checker. It walks one instance of a kernel (generics bound) and emits tile form: every name has a
 * meaning, every value a type, a shape and the atoms of its validity. Functions are checked and emitted at each call,
 * so that ranges, tensors and validity are propagated through calls.
 *
 * order.txt lists the room's files, bottom-up; each has a header of the same name. Here is what all of them share. */
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
    TILE_ATOM_CONDITION, /* the whole value: valid if 0 <= index < dim, or if `of` is not empty or true */
    TILE_ATOM_MASK,      /* lanes where a bool tile is true */
} TileAtomKind;

/* One source of invalidity, with its time of creation: a variable may only get atoms that are older than itself. */
typedef struct TileAtom TileAtom;
struct TileAtom {
    TileAtomKind kind;
    uint32_t birth;
    const TileRange *root;             /* INTERVAL: the range as it was bound; part of the identity, with first, step
                                        * and dim */
    const TileSum *first, *step, *dim; /* dim NULL: the range's own limit */
    const TileSum *lo, *hi, *size;     /* INTERVAL; lo or hi NULL: unbounded on that side */
    const TileSum *index;              /* CONDITION, with dim */
    const TileSum *lowest, *highest;   /* with dim: bounds of the indices; NULL if unknown */
    const TileSum *least, *most;       /* with dim: what is known of these, for messages; or NULL */
    bool above, below;                 /* with dim: they are proven to be at least 0, and below the dimension .. */
    bool wraps;                        /* .. as integers without bounds, but may leave 64 bits */
    const TileSum *product;      /* of dimensions and parameters, which stands in the index and may leave 64 bits; or NULL */
    const struct TileValidity *guard;  /* CONDITION, MASK: where the index itself is valid */
    TileAtom *of;                      /* CONDITION: an interval or mask over axes of extent 1 that were broadcast */
    TileValue *mask;                   /* MASK */
    TileValue *key;                    /* MASK: the index tile that it is a bounds check of, or the mask itself */
    bool holds_first;                  /* INTERVAL: lane 0 is always valid */
    TileSpan span;
    const TileSum *limit; /* INTERVAL without dim: of the range */
    const char *words;    /* MASK without dim: for messages, what is not valid */
    size_t cache;         /* the emitter's */
};

typedef struct TileValidEntry {
    TileAtom *atom;
    int8_t axes[TILE_MAX_TILE_RANK]; /* INTERVAL: axes[0]; MASK: one for each axis of the mask, -1 where it is 1 */
    TileSpan where;                  /* the access that it comes from */
} TileValidEntry;

/* A conjunction of atoms. Immutable; NULL is valid everywhere. */
typedef struct TileValidity {
    unsigned count;
    TileValidEntry entries[];
} TileValidity;

/* ---- claims ---- */

typedef enum TileClaimKind {
    TILE_CLAIM_COMPARE,
    TILE_CLAIM_NOT, /* of x */
    TILE_CLAIM_AND, /* of x and y; one that is NULL tells nothing */
    TILE_CLAIM_OR,
    TILE_CLAIM_ALL, /* x holds for all elements of a tile */
    TILE_CLAIM_ANY, /* x holds for one */
    TILE_CLAIM_FEWER, /* x, but only of those elements for which all is valid that stands beside it */
} TileClaimKind;

/* What it tells of integers that a bool is true, or false (claim.c). Values do not change, so neither does a claim:
 * what a variable has become later is another value. */
typedef struct TileClaim TileClaim;
struct TileClaim {
    TileClaimKind kind;
    uint8_t op;           /* COMPARE: TileTokenKind */
    bool is_unsigned;     /* COMPARE: of two u64, whose sums are their bits as i64 */
    const TileSum *a, *b; /* COMPARE: the values that the code computes */
    const TileClaim *x, *y;
};

/* ---- meanings ---- */

typedef enum TileMeaningKind {
    TILE_MEANING_ERROR, /* reported already: uses of it are not reported */
    TILE_MEANING_NOTHING,
    TILE_MEANING_INTEGER, /* an untyped literal */
    TILE_MEANING_NUMBER,
    TILE_MEANING_CHOICE, /* between untyped literals: a condition and two values */
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
    bool constant; /* VALUE of rank 0: `bits` is a compile-time constant */
    bool positive_literal;
    uint8_t open;   /* literals, VALUE of rank 0: TileOpen of its operands */
    uint32_t count; /* TUPLE, SPREAD; FUNCTION: the number of bound generics */
    const TileSum *extent[TILE_MAX_TILE_RANK];
    TileValue *value;          /* VALUE; NULL while it is only a sum or constant */
    const TileSum *sum;        /* VALUE: i64 scalars always have one */
    uint64_t bits;             /* VALUE: constant */
    const TileValidity *valid; /* VALUE */
    const TileClaim *claim;    /* VALUE: a bool, of a tile each of its elements; or NULL */
    /* VALUE: exact integers between which the valid elements of a tile of integers lie, inclusive; NULL if unknown. Of
     * a scalar that is no i64 both are its value (bounds.c). */
    const TileSum *lowest, *highest;
    const TileSum *element; /* VALUE: a tile's valid element as a sum of elements of its operands (element.c); or NULL */
    __int128 integer;       /* INTEGER */
    double number;    /* NUMBER */
    union {
        TileRange *range;
        TileTensor *tensor; /* TENSOR; VALUE in a test: the tensor whose full contents it is, or NULL */
        TileMeaning *items; /* TUPLE, CHOICE (three), DOTS (two), SPREAD */
        const TileBuiltin *builtin;
        const char *text;
        struct {
            const TileItem *item;     /* FUNCTION */
            const TileAst *ast;       /* FUNCTION, MODULE: its file */
            const TileMeaning *given; /* FUNCTION: its first generics' values, as in `scaled[3]` */
        };
    };
};

struct TileRange {
    const char *name;
    const TileSum *first, *size, *step; /* the index of lane l is first + l * step */
    const TileSum *lowest, *highest;    /* bounds of the valid lanes' indices, inclusive; NULL if unknown */
    const TileSum *end;                 /* NULL for strided ranges */
    const TileSum *limit;               /* of the lanes, as it was bound; or NULL */
    const TileRange *root;
    TileAtom *lanes; /* NULL: all valid */
    uint32_t birth;
    TileSpan span;
};

struct TileTensor {
    const char *name;
    TileValue *value;
    TileScalar scalar; /* of elements that are loaded */
    TileFormat format; /* other than PLAIN: `value` is a tensor of u8 */
    TileAccess access;
    unsigned rank;
    unsigned own; /* a temporary of each program: so many dimensions stand in front, for the indices of the program */
    const TileSum *dims[TILE_MAX_TENSOR_RANK];
    TileSpan span;
    uint32_t number; /* index in the plan of a test */
};

typedef struct TileVar {
    const char *name;
    TileMeaning now; /* `valid` has all atoms that the variable may have at any time */
    uint32_t birth;
    bool undecided;   /* differs on an untaken side of a branch: conditions on it are checked for both outcomes */
    uint32_t carried; /* stamp of the last loop that has it as a loop-carried value */
    TileSpan span;
} TileVar;

/* ---- what is stored whole (covered.c) ---- */

typedef struct TileCover {
    const TileOp *op;       /* the grid or loop */
    const TileSum *at;      /* an integer, or NULL */
    const TileRange *range; /* a range, or NULL */
    const TileSum *extent;  /* it takes all values from 0 on below this; NULL if not */
} TileCover;

typedef struct TileWhole {
    const TileTensor *tensor;
    unsigned grid; /* the number of the grid that stores it */
} TileWhole;

/* A store of the grid that is being checked, and where the kernel's text has it. */
typedef struct TileStored {
    TileOp *op;
    TileSpan span;
    const TileStatement *update; /* y[..] += v of the kernel itself, or NULL */
    bool updates;
} TileStored;

/* ---- scopes ---- */

typedef struct TileBound {
    const char *name;
    TileMeaning meaning;
    TileVar *var; /* or NULL */
    TileSpan span;
    bool fixed;      /* a parameter, dimension or tune name: must not be shadowed */
    uint32_t place;  /* its index */
    uint32_t hidden; /* the index, plus 1, of the binding that it shadows */
} TileBound;

typedef struct TileLoopFrame {
    struct TileLoopFrame *parent;
    TileVar *skip;  /* skips the rest of this iteration; NULL if nothing leaves the body */
    TileVar *broke; /* skips the rest of the loop; NULL without `break` */
    const TileStatement *statement;
    uint32_t birth; /* variables that are older are loop-carried */
} TileLoopFrame;

/* The execution of a kernel's or a function's body. */
typedef struct TileFrame {
    struct TileFrame *parent;
    const TileItem *item;
    const TileAst *ast;
    size_t scope_base;
    TileSpan call;
    bool binding;      /* arguments are being bound: errors in them are the caller's */
    bool lifted;       /* scalar parameters are bound to tiles */
    TileMeaning shape; /* lifted: the arguments' common shape */
    bool has_flags;    /* some `return` is not the last statement */
    TileVar *returned; /* with has_flags */
    TileVar **results; /* with has_flags: one, or one for each part of a tuple */
    unsigned result_count;
    TileMeaning value; /* without has_flags: the returned value */
    bool has_value;
    uint8_t left; /* TileOpen of the conditions that skip the rest of the body */
    TileTypeExpr *result_type;
    TileLoopFrame *loop;
} TileFrame;

typedef struct TileScopeMark {
    size_t bounds, vars, atoms, ranges, loaded, cache, facts, scope_start;
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

/* An integer that was loaded: the same load again, of a tensor that nobody changes, is the same value. */
typedef struct TileLoaded {
    const TileTensor *tensor;
    const TileSum *indices[TILE_MAX_TENSOR_RANK];
    TileMeaning value;
} TileLoaded;

/* A bound that a variable does not keep in a loop (loop.c). */
typedef struct TileLost TileLost;
struct TileLost {
    TileLost *next;
    const char *name;
    uint32_t call; /* of the function that the loop stands in */
    bool above, below;
};

/* A side of a branch that is chosen for each element: what holds of those for which it is. */
typedef struct TileChosen {
    const TileClaim *claim;
    bool truth;
} TileChosen;

/* A meaning at a place, for annotations. */
typedef struct TileFinding {
    TileSpan span, bound;
    TileMeaning meaning;
    bool binds, is_var;
    const char *candidate; /* a generic with the meaning's element type */
    const char *cost;
} TileFinding;

struct TileChecker {
    TileContext *context;
    TileDiagnostics *diagnostics;
    TileArena *arena;
    TileInterner *names;
    const TileAst *ast; /* of the kernel */
    TileModule *module;
    TileFunc *func;
    TileBuilder builder;
    TileSpan where; /* location for emitted ops */
    uint32_t where_begin, where_file;
    TileSumTable sums;
    TILE_LIST(TileBound *) bounds;
    size_t bounds_made; /* so many of `bounds` have memory */
    TileMap builtins;   /* by name: the TileBuiltin, of names that were looked for */
    TileMap lost;      /* by statement: TileLost */
    TileMap elements;  /* by value of the IR: Element, of element.c */
    TileMap innermost; /* by name: the index, plus 1, of the innermost binding */
    TILE_LIST(TileVar *) vars;
    TILE_LIST(TileAtom *) atoms;
    TILE_LIST(TileRange *) ranges;
    TILE_LIST(TileLoaded) loaded;
    TileCache cache;
    TILE_LIST(TileConstant) constants; /* evaluated so far */
    TILE_LIST(TileChosen) sides; /* of enclosing branches with a tile as condition */
    TileFrame *frame;
    size_t scope_start;     /* the first binding of the innermost scope */
    const char *fill_word;  /* the fill to propose after `else` */
    uint32_t clock;         /* time, for births */
    uint32_t carried_stamp; /* number of loops so far */
    size_t grid_facts;      /* the number of facts that hold in the whole grid */

    unsigned depth;   /* of calls */
    unsigned regions; /* nested branches and loops */
    unsigned masked;  /* enclosing branches with a tile as condition, so that both sides are executed */
    unsigned untaken; /* enclosing sides of branches that a constant condition excludes */
    size_t op_count;
    uint64_t points;     /* of tune clauses, tried so far */
    unsigned rests;      /* enclosing sequences that may have been left: their remaining statements are guarded */
    bool has_large_tile; /* there is a tile that is too large, and it was reported */
    bool in_grid;
    bool overlaps;                     /* the kernel allows that its arguments share memory */
    bool in_combiner;                  /* ops are inserted into the combiner of a fold or scan, which has no control
                                        * flow */
    bool combiner_loops;               /* that combiner has a loop that is not unrolled: it is emitted in another way */
    TileOp *grid;                      /* the one being checked */
    const TileSum *programs[TILE_MAX_TENSOR_RANK], *program_counts[TILE_MAX_TENSOR_RANK]; /* its indices; their extents */
    unsigned program_rank;
    size_t host_cache; /* the emitted sums in front of it */
    TILE_LIST(TileCover) covers;       /* names that the grid and its loops have bound, and what they run over */
    TILE_LIST(TileWhole) wholes;       /* `out` tensors that a grid stores whole */
    TILE_LIST(TileStored) stored;      /* of the grid, for warnings */
    const TileStatement *update;       /* y[..] += v, while its store is emitted; else NULL */
    bool representative;               /* a generic check: unbound types and values have stand-ins */
    bool second;                       /* the second check, with other stand-ins: another type, the opposite of each
                                        * bool */
    TILE_LIST(const char *) stand_ins; /* the names that have a stand-in */
    unsigned type_stand_ins;           /* how many of them are types */
    bool stands_alone;                 /* a function is checked without a call */
    bool unreal;                       /* the stand-ins do not satisfy the kernel's requirements */
    bool incomplete;                   /* some checks were omitted, for lack of values */
    uint8_t met;                       /* TileOpen of the names read in the current expression */
    uint8_t doubt;                     /* TileOpen of the conditions of the enclosing branches */
    uint8_t about;                     /* TileOpen of the subject of the next message */
    unsigned open_loops;               /* enclosing unrolled loops whose trip count is open */
    bool unrolled;                     /* there was such a loop */
    unsigned grid_count;
    TileTestState *test; /* NULL outside tests */
    TileAnnotations *annotations;     /* to be made; or NULL */
    TILE_LIST(TileFinding) findings;  /* the same, before they are put into words */
    TileSumNeeds needs;  /* of the grid being checked */
    const TileLowerOptions *options;
    uint32_t *file_numbers; /* diagnostics' file index to the context's */
};

enum { TILE_MAX_TILE_EXTENT = 1 << 24 };
enum { TILE_MAX_CALL_DEPTH = 64, TILE_MAX_TUNE_NAMES = 16 };

static inline bool tile_extents_agree(const TileSum *a, const TileSum *b) {
    return a == b || tile_sum_is_literal(a, 1) || tile_sum_is_literal(b, 1);
}

#endif
