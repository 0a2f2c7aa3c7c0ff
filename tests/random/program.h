/* Random kernels as data: a typed tree that is printed as text of the language (print.c), and evaluated without any
 * part of the compiler (evaluate.c). Shortening a failure (shorten.c) modifies the tree. */
#ifndef TESTS_RANDOM_PROGRAM_H
#define TESTS_RANDOM_PROGRAM_H

#include "../kernels/array.h"
#include "numbers.h"

enum {
    MAX_AXES = 5,       /* of a tile */
    MAX_DIMENSIONS = 6, /* of a tensor */
    MAX_OPERANDS = 12,
    MAX_SOURCES = 12,
    MAX_TENSORS = 24,
    MAX_NAMES = 24, /* of each kind in a signature */
    MAX_PARTS = 4,
    MAX_FUNCTIONS = 6
};

typedef struct Name Name;
typedef struct Expr Expr;
typedef struct Block Block;

/* ---- extents ---- */

typedef enum ExtentKind { EXTENT_LITERAL, EXTENT_NAME, EXTENT_PRODUCT, EXTENT_SUM } ExtentKind;

/* Of an axis of a tile, or a dimension of a tensor. Two agree if they are equal as sums of products. */
typedef struct Extent {
    ExtentKind kind;
    int64_t literal;
    Name *name;
    const struct Extent *a, *b;
} Extent;

int64_t extent_value(const Extent *extent);
bool extent_same(const Extent *a, const Extent *b);
bool extent_is_one(const Extent *extent); /* the literal 1, which can be broadcast */
const Extent *extent_literal(int64_t value);
const Extent *extent_name(Name *name);
const Extent *extent_product(const Extent *a, const Extent *b);
const Extent *extent_sum(const Extent *a, const Extent *b);

typedef struct Shape {
    Type scalar;
    int rank;
    const Extent *extent[MAX_AXES];
} Shape;

int64_t shape_lanes(const Shape *shape);
bool shape_same(const Shape *a, const Shape *b); /* whatever the element types */
Shape shape_with(Shape shape, Type scalar);
Shape shape_scalar(Type scalar);
Shape shape_without(Shape shape, int axis);

/* ---- validity, as far as it is known statically ---- */

/* A reason why a value may be invalid: a range beyond its limit, an index out of bounds, a mask. */
typedef struct Source {
    uint32_t id;  /* equal sources have equal ids */
    uint8_t axes; /* axes of the value that it depends on; none: the value is valid or invalid as a whole */
    bool plain;   /* the lanes of an unmodified range beyond its limit */
} Source;

typedef struct Sources {
    int count; /* above MAX_SOURCES: too many to represent */
    Source items[MAX_SOURCES];
} Sources;

void sources_add(Sources *sources, Source source);
void sources_join(Sources *sources, const Sources *more);
bool sources_have(const Sources *sources, Source source);
bool sources_within(const Sources *sources, const Sources *within);
bool sources_touch(const Sources *sources, unsigned axes);
/* Axes with the literal extent 1 were broadcast. */
Sources sources_stretch(const Sources *sources, unsigned axes);
/* map[i]: the new index of axis i; -1: it is removed, with the sources that depend on it. */
Sources sources_map(const Sources *sources, const int *map);

/* ---- names ---- */

typedef enum NameKind {
    NAME_TUNE,
    NAME_CONSTANT, /* a constant of the file */
    NAME_GENERIC,  /* a constant generic with a default */
    NAME_DIMENSION,
    NAME_STATIC,    /* a dimension that is a compile-time constant */
    NAME_PARAMETER, /* a scalar */
    NAME_LET,
    NAME_VAR,
    NAME_RANGE,
    NAME_INTEGER, /* an index of a grid, or an induction variable */
    NAME_LOCAL    /* a parameter of a function */
} NameKind;

struct Name {
    char text[12];
    NameKind kind;
    Shape shape;
    Sources valid;
    bool tainted;        /* its floats may be inexact, so they must not decide anything */
    int64_t value;       /* constants and dimensions; bits of a parameter */
    const Extent *size;  /* of a range */
    const Extent *limit; /* of a range: the dimension that it iterates over; NULL: none, or unknown */
    const Extent *below; /* an integer in [0, below), of a parameter by a clause `require`; NULL: unknown, or only where a condition says so */
    bool literal;        /* the index of an unrolled loop: it has no type of its own */
    bool constant;       /* NAME_PARAMETER: `const` */
    bool counts;         /* the iterations of a `while`: nothing else changes it */
    bool used;
    void *now, *first; /* for the evaluator: the current value, and a variable's initial one */
};

/* ---- tensors ---- */

typedef enum TensorRole { TENSOR_IN, TENSOR_OUT, TENSOR_INOUT, TENSOR_TEMP } TensorRole;
typedef enum TensorData { DATA_SMALL, DATA_SPECIAL, DATA_WIDE, DATA_INDEX, DATA_BITS } TensorData;
typedef enum TensorView {
    LIE_CONTIGUOUS,
    LIE_ROWS,      /* gaps between rows */
    LIE_PERMUTED,  /* permuted dimensions */
    LIE_BACKWARDS, /* some strides negative */
    LIE_REPEATED,  /* a stride of 0; in only */
    LIE_SPREAD,    /* every second or third element */
    LIE_OFFSET,    /* rows of odd length, and a misaligned first element */
    LIE_COUNT
} TensorView;

/* Element types of tensors alone, whose argument is one of bytes. */
typedef enum Packing { PACKING_NONE, PACKING_I4, PACKING_U4, PACKING_F4, PACKING_E8 } Packing;

typedef struct Tensor {
    char text[12];
    Type type;       /* of what is loaded */
    Packing packing;
    int rank;
    const Extent *dim[MAX_DIMENSIONS];
    TensorRole role;
    TensorData data;
    int64_t limit; /* DATA_INDEX: mostly in [0, limit) */
    TensorView view;
    Placement placement;
    uint64_t seed;
    bool tainted; /* may hold inexact numbers */
    int written;  /* number of the grid that stores to it, from 1; 0: none yet */
    bool atomic;  /* updated by several programs of grid `written` */
    bool whole;   /* TENSOR_OUT: grid `written` certainly stores all of it, so that later ones may read it */
    bool own;     /* TENSOR_TEMP: each program of grid `written` has its own */
    bool used;
    void *now; /* for the evaluator */
} Tensor;

bool packing_has_halves(Packing packing);

/* ---- functions ---- */

/* Combiners of folds. All are associative. */
typedef enum FoldKind {
    FOLD_SUM,
    FOLD_PRODUCT,
    FOLD_LARGEST,
    FOLD_LEAST,
    FOLD_XOR,
    FOLD_OR,
    FOLD_FIRST,
    FOLD_LAST,
    FOLD_DIVISOR, /* the greatest common one, by a loop that elements leave */
    FOLD_AFFINE, /* (a, h), (b, g): (a b, h b + g) */
    FOLD_BEST,   /* a value and its index */
    FOLD_EDGES,  /* minimum, maximum, sum */
    FOLD_MATRIX, /* a triangular matrix of three numbers */
    FOLD_COUNT
} FoldKind;

int fold_parts(FoldKind kind);

/* A function of scalars, which can be lifted over tiles: its parameters, of which a tensor comes first, and a body. */
typedef struct Function {
    char text[12];
    int count;
    Name *names[4];
    Tensor *tensor; /* whose load the condition guards; or NULL */
    Type result;
    Expr *first;     /* `if condition { return first }`, if there is a condition */
    Expr *condition; /* NULL: none */
    Expr *body;      /* return body; of a loop, the variable's value after each iteration */
    int iterations;  /* not 0: var r = names[0]; at most so many iterations, while the condition holds: r = body */
    Name *variable;  /* of the loop */
    bool used;
} Function;

/* ---- expressions ---- */

typedef enum ExprKind {
    E_LITERAL, /* `bits`; bare: without its type */
    E_NAME,
    E_EXTENT,      /* an i64 */
    E_UNARY,       /* `op` */
    E_BINARY,      /* `op` */
    E_CALL,        /* of an elementwise built-in: `op` */
    E_APPROXIMATE, /* approx.`op` */
    E_WHERE,
    E_CLAMP,
    E_CONVERT,
    E_BITCAST,
    E_KEEP,
    E_ELSE,
    E_RAND,
    E_NORMAL, /* randn(seed, index) */
    E_DRAWN,  /* randint(seed, index, low, high) */
    E_SHUFFLED, /* randperm[B](seed, index) */
    E_LDEXP,
    E_FREXP,  /* two values */
    E_PACK,   /* pack[..](v): `op`, a Packing */
    E_UNPACK, /* unpack[..](v) */
    E_LOAD,   /* tensor[entries] */
    E_GATHER, /* gather(tensor, indices) */
    E_FULL,
    E_ZEROS,
    E_IOTA,
    E_RESHAPE,
    E_PERMUTE, /* axis[i] */
    E_AXES,    /* v[:, _]: axis[i] is 1 where the axis is new */
    E_JOIN,
    E_SPLIT, /* two values */
    E_CAT,
    E_REDUCE,  /* `op`, a Reduction, over axis[0 .. axes], keep */
    E_RUNNING, /* cumsum, cumprod: `op`, reverse, exclusive */
    E_SORT,    /* along axis[0], `reverse`: descending; `scan`: argsort; `bare`: what is valid stays so */
    E_FIRST,   /* topk along axis[0]: two values */
    E_MOVED,   /* shift(v, axis[0], op) */
    E_VALID,   /* valid(v) */
    E_STRETCH, /* broadcast(v, (A, B)) */
    E_COUNTED, /* histogram(v, B) */
    E_PLACED,  /* searchsorted(s, v); `reverse`: right */
    E_FOLD,    /* reduce or (scan) scan: `op`, a FoldKind, of operands; after those, if `keep`, the initial values */
    E_DOT,     /* `op`, a Precision */
    E_SCALED,  /* dot_scaled in `to`, of two operands; then, if `keep`, the sums so far, if `scan`, scales of the left operand, and
                * if `exclusive`, of the right one */
    E_IF,
    E_FUNCTION, /* lifted */
    E_ATOMIC,   /* the old values: `op`, an Update, of a target and the value (preceded by the expected value) */
    /* Index entries. */
    E_RANGE,   /* a name */
    E_SPAN,    /* span(start, B) */
    E_SPAN_TO, /* span(lo..hi, B) */
    E_SHIFT,   /* `op` (OP_ADD, OP_SUB, OP_MUL) of a range and an i64; reverse: the range is the right operand */
    E_COLON,
    /* Fields of a range. */
    E_START,
    E_SIZE,
    E_END,
    E_IDX
} ExprKind;

typedef enum Reduction {
    REDUCE_SUM,
    REDUCE_PROD,
    REDUCE_MEAN,
    REDUCE_MIN,
    REDUCE_MAX,
    REDUCE_ANY,
    REDUCE_ALL,
    REDUCE_ARGMIN,
    REDUCE_ARGMAX
} Reduction;
typedef enum Precision { PRECISION_FULL, PRECISION_TF32, PRECISION_TF32X3, PRECISION_ORDERED } Precision;
typedef enum Update { UPDATE_ADD, UPDATE_MAX, UPDATE_MIN, UPDATE_CAS } Update;

struct Expr {
    ExprKind kind;
    Shape shape; /* of a range: rank 1, its size */
    Sources valid;
    bool tainted;
    int op, count, axes;
    int axis[MAX_AXES];
    Expr *operand[MAX_OPERANDS];
    uint64_t bits;
    Type to; /* E_SCALED */
    Name *name;
    Tensor *tensor;
    Function *function;
    const Extent *extent;
    bool bare, keep, reverse, exclusive, scan;
    bool from_end; /* its axes are counted from the end: negative */
    bool bounded;  /* an index tile, all of whose elements are in [0, extent) */
    bool several;  /* E_SPLIT, E_FIRST, E_FREXP, E_FOLD: its values are bound by a let with several names */
    bool outlined; /* printed as a call of a separate function */
    int parts;
    Shape part[MAX_PARTS];
};

/* ---- statements ---- */

typedef enum StatementKind {
    S_LET, /* names = value */
    S_VAR,
    S_ASSIGN, /* names[0] op= value */
    S_STORE,  /* target op= value [else skip] */
    S_SCATTER,
    S_TEMP, /* of each program: `target` is an access of it */
    S_UPDATE, /* an E_ATOMIC whose old values are not used */
    S_FOR_TILES,
    S_FOR,
    S_WHILE, /* at most so many iterations, counted by names[0], while the condition `value` holds */
    S_IF,
    S_BREAK,
    S_CONTINUE,
    S_RETURN,
    S_ASSERT,
    S_GRID
} StatementKind;

typedef struct Statement {
    StatementKind kind;
    int count;
    Name *names[MAX_DIMENSIONS];
    Expr *value, *target;
    Expr *second; /* S_ASSIGN: (names[0], names[1]) = (value, second); or NULL */
    int op; /* -1: a plain `=` */
    bool skip, unrolled, ordered;
    bool fixed; /* S_IF: its condition is a constant, as `static if` needs it */
    /* Of a grid, for each name; of a loop, for the first: tiles(lo..hi, names[i]->size) or lo..hi. NULL: 0. */
    Expr *lo[MAX_DIMENSIONS], *hi[MAX_DIMENSIONS];
    Expr *step;
    Block *body, *otherwise;
} Statement;

struct Block {
    int count, capacity;
    Statement **items;
};

void block_add(Block *block, Statement *statement);

typedef struct Program {
    int name_count, tensor_count, function_count, fold_count, temp_count;
    Name *names[MAX_NAMES * 4]; /* of the signature: constants, dimensions, scalars */
    Tensor *tensors[MAX_TENSORS];
    Function *functions[MAX_FUNCTIONS];
    Block *grids;
    int64_t warps, stages, packs; /* of the tune clause; -1: absent */
    bool generic_type;     /* the first tensor's type is a generic of the kernel */
} Program;

/* Does a dimension of the tensor alone say what the name is? The bytes of packed numbers tell an even number of elements, and
 * before they do so only tensors that are read are asked. */
bool program_binds(const Program *program, const Tensor *tensor, const Name *name);

/* Allocates memory that is freed before the next program. */
void *program_allocate(size_t size);
void program_release(void);
#define NEW(type) ((type *)program_allocate(sizeof(type)))

/* The text; false if it is too long. */
bool program_print(Program *program, char *text, size_t size);

/* Calls visit for each pointer to an expression, in pre-order, and for each statement. */
typedef struct Visitor {
    void (*expr)(void *state, Expr **place);
    void (*statement)(void *state, Block *block, int index);
    void *state;
} Visitor;
void program_visit(const Program *program, const Visitor *visitor);

#endif
