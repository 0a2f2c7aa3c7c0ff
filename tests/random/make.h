/* Makes random programs. They keep to the rules of docs/language.md, so that nearly all compile. */
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
    Expr *own[8]; /* accesses of tensors that this grid stores to, which no other program touches */
    int own_count;
    int grid;         /* number of the one under way, from 1 */
    bool alone;       /* it has one program */
    bool last;        /* none comes behind it */
    bool leaves;      /* some of its programs may end before they store */
    int64_t lanes;    /* of the tiles of its names together */
    bool clean;       /* what is made decides something: its numbers have to be exact */
    bool in_function; /* scalars and elementwise operations only */
    int indexing;     /* accesses around this expression */
    int loops, serial, functions;
    int narrow; /* how seldom this program leaves its favourite types, in percent */
    Type favourites[3];
} Maker;

/* Random program number `number` of the seed. */
Program *make_program(uint64_t seed, uint64_t number);

/* ---- between the files ---- */

unsigned below(Maker *m, unsigned count);
bool chance(Maker *m, unsigned percent);
Type some_type(Maker *m);
Type some_number(Maker *m); /* no bool, no f8 */
Type some_int(Maker *m);
Type some_float(Maker *m); /* no f8 */
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
/* Joins what the operands say about validity and exactness. */
Expr *finished(Expr *expr);
void add_operand(Expr *expr, Expr *operand);

Expr *make_expr(Maker *m, const Shape *shape, int depth);
/* Axes may be the literal 1, and it may be a scalar. */
Expr *make_loose(Maker *m, const Shape *shape, int depth);
/* Its numbers are exact and it is valid: what decides, counts or bounds. */
Expr *make_decision(Maker *m, Type type, int depth);
/* As it is, or where it may be invalid elsewhere than `within` (NULL: anywhere), with `else`. */
Expr *covered(Maker *m, Expr *expr, const Sources *within);
Sources plain_sources(const Sources *sources);

Expr *make_load(Maker *m, const Shape *shape, int depth);
Expr *make_gather(Maker *m, const Shape *shape, int depth);
Expr *make_dot(Maker *m, const Shape *shape, int depth);
Expr *make_reduction(Maker *m, const Shape *shape, int depth);
Expr *make_fold(Maker *m, const Shape *shape, int depth);
Expr *make_running(Maker *m, const Shape *shape, int depth);
/* Several values of these shapes, for a let of several names; NULL where that cannot be. */
Expr *make_parts(Maker *m, const Shape *shape, int depth);
Expr *make_range(Maker *m, const Extent *size, int depth);
Expr *finish_access(Maker *m, Expr *access);
Expr *make_target(Maker *m, Statement *statement, bool *scatter);
bool may_read(const Maker *m, const Tensor *tensor);

void make_grid(Maker *m);

#endif
