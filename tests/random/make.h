/* Generates random programs. They obey the rules of docs/language.md, so that nearly all compile. */
#ifndef TESTS_RANDOM_MAKE_H
#define TESTS_RANDOM_MAKE_H

#include "program.h"

enum { MAX_SCOPE = 64, MAX_POOL = 12 };

typedef struct Maker {
    Program *program;
    Random random;
    Name *scope[MAX_SCOPE];
    int scope_count;
    const Extent *pool[MAX_POOL]; /* of axes */
    int pool_count;
    const Extent *dims[MAX_POOL]; /* of tensors */
    int dim_count;
    int64_t most_lanes;
    Expr *own[8]; /* accesses of tensors that this grid stores to, with elements that no other program accesses */
    int own_count;
    int grid;         /* number of the current one, from 1 */
    bool alone;       /* it has a single program */
    bool last;        /* it is the last one */
    bool leaves;      /* some of its programs may return before they store */
    int64_t lanes;    /* the product of the lanes of its names' tiles */
    bool clean;       /* the expression decides something: its numbers have to be exact */
    bool in_function; /* only scalars and elementwise operations */
    int indexing;     /* nesting depth of accesses around the current expression */
    int loops, serial, functions;
    int narrow; /* the percentage of values with the program's favourite types */
    Type favourites[3];
} Maker;

/* Generates random program `number` of the seed. */
Program *make_program(uint64_t seed, uint64_t number);

/* ---- between the files ---- */

unsigned below(Maker *m, unsigned count);
bool chance(Maker *m, unsigned percent);
Type some_type(Maker *m);
Type some_number(Maker *m); /* not bool or f8 */
Type some_int(Maker *m);
Type some_float(Maker *m); /* not f8 */
uint64_t some_literal(Maker *m, Type type);
Shape some_shape(Maker *m, Type scalar, int most_rank);
const Extent *some_extent(Maker *m, int64_t most);

Name *new_name(Maker *m, NameKind kind, const char *letter);
Name *signature_name(Maker *m, NameKind kind, const char *letter, int64_t value);
void enter(Maker *m, Name *name);
Tensor *new_tensor(Maker *m, Type type, int rank, const Extent *const *dims, TensorRole role);

Expr *new_expr(ExprKind kind, Shape shape);
Expr *unary_expr(ExprKind kind, Shape shape, int op, Expr *x);
Expr *binary_expr(ExprKind kind, Shape shape, int op, Expr *x, Expr *y);
Expr *name_expr(Name *name);
Expr *range_expr(Name *name);
Expr *extent_expr(const Extent *extent);
Expr *literal_expr(Type type, uint64_t bits);
Expr *integer_expr(int64_t value);
/* The validity and exactness that follow from the operands. */
Expr *finished(Expr *expr);
void add_operand(Expr *expr, Expr *operand);

Expr *make_expr(Maker *m, const Shape *shape, int depth);
/* Axes may have the literal extent 1, and it may be a scalar. */
Expr *make_loose(Maker *m, const Shape *shape, int depth);
/* Valid and exact: for conditions, trip counts and bounds. */
Expr *make_decision(Maker *m, Type type, int depth);
/* The expression, with `else` if it may be invalid elsewhere than `within` (NULL: anywhere). */
Expr *covered(Maker *m, Expr *expr, const Sources *within);
Sources plain_sources(const Sources *sources);

/* Of a name, a tensor, or without operands. */
Expr *make_leaf(Maker *m, const Shape *shape, int depth);
Expr *make_load(Maker *m, const Shape *shape, int depth);
/* Of a new tensor, whose first dimension the name is known to be in; NULL if impossible. */
Expr *make_indexed(Maker *m, const Shape *shape, Name *name, const Extent *dim);
Expr *make_gather(Maker *m, const Shape *shape, int depth);
/* By quotient and remainder of one number; a call of a function that guards its load; and a condition for all elements (make_guard.c). */
Expr *make_flat_load(Maker *m, const Shape *shape, int depth);
Expr *make_guarded_call(Maker *m, const Shape *shape, int depth);
void make_guarded_tile(Maker *m, Block *block, Name *variable);
Expr *make_dot(Maker *m, const Shape *shape, int depth);
Expr *make_reduction(Maker *m, const Shape *shape, int depth);
Expr *make_fold(Maker *m, const Shape *shape, int depth);
Expr *make_running(Maker *m, const Shape *shape, int depth);
/* An operand of a product, of which this axis is contracted. */
Expr *make_factor(Maker *m, const Shape *shape, int axis, int depth);
/* pack, unpack, dot_scaled; NULL if impossible, as are those that follow. */
Expr *make_packed(Maker *m, const Shape *shape, int depth);
Expr *make_scaled_product(Maker *m, const Shape *shape, int depth);
/* randint, randn, randperm */
Expr *make_drawn(Maker *m, const Shape *shape, int depth);
/* ldexp, and the two values of frexp. */
Expr *make_scaled_float(Maker *m, const Shape *shape, int depth);
Expr *make_float_parts(Maker *m, const Shape *shape, int depth);
/* keep(x, ..) */
Expr *make_kept(Maker *m, Expr *x);
/* Sorts, shifts, and where a value is valid. */
Expr *make_arranged(Maker *m, const Shape *shape, int depth);
/* The first elements of a sort, and their places; NULL if impossible. */
Expr *make_first(Maker *m, const Shape *shape, int depth);
/* Several values of these shapes, for a let of several names; NULL if impossible. */
Expr *make_parts(Maker *m, const Shape *shape, int depth);
Expr *make_range(Maker *m, const Extent *size, int depth);
Expr *finish_access(Maker *m, Expr *access);
Expr *make_target(Maker *m, Statement *statement, bool *scatter);
bool may_read(const Maker *m, const Tensor *tensor);

void make_grid(Maker *m);

#endif
