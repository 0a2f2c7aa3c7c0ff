/* The evaluator: computes the stores of a program (program.h) element by element, without any part of the compiler. */
#ifndef TESTS_RANDOM_EVALUATE_H
#define TESTS_RANDOM_EVALUATE_H

#include "program.h"

enum { MAX_MASKS = 32 };

/* Where a value is valid, as a function of some of its axes; the others have extent 1. Several masks are conjoined. */
typedef struct Mask {
    unsigned axes; /* that it depends on, including axes of extent 1 */
    int64_t extent[MAX_AXES];
    bool *ok;
} Mask;

typedef struct Value {
    Type scalar;
    int rank;
    int64_t extent[MAX_AXES], count;
    Number *at;
    int mask_count;
    Mask masks[MAX_MASKS];
} Value;

typedef struct RangeValue {
    int64_t first, step, size;
    int64_t valid; /* the number of lanes, from 0, that have an index */
} RangeValue;

/* The contents of a tensor, in row-major order. */
typedef struct Contents {
    int64_t extent[MAX_DIMENSIONS], count;
    Number *at;
    int *lane; /* the lane of the current store that wrote last to each element, from 1 */
} Contents;

typedef enum Flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_RETURN } Flow;

typedef struct Evaluator {
    bool undecided; /* an unknown number decided something: any result is correct */
    bool uncovered; /* an invalid element was stored without `else skip`: the compiler should have rejected the
                     * program */
    bool meets;     /* several lanes of a store had the same element */
    int64_t work;
    int stores; /* so far */
} Evaluator;

/* Runs the program on the tensors' contents. */
void evaluate_program(Evaluator *e, Program *program);

/* ---- shared by the evaluator's files ---- */

Value *value_make(Type scalar, int rank, const int64_t *extent);
Value *value_scalar(Type scalar, Number number);
void value_add_mask(Value *value, Mask mask);
void value_add_masks(Value *value, const Value *more);
bool value_valid(const Value *value, const int64_t *index);
/* The row-major index, and its inverse. */
void index_of(const int64_t *extent, int rank, int64_t number, int64_t *index);
int64_t offset_in(const int64_t *extent, int rank, const int64_t *index);
bool *masks_flat(const Value *value, unsigned touching); /* the conjunction of all masks that depend on one of the axes,
                                                          * for all elements */
Value *value_stretch(const Value *value, const Shape *from, const Shape *to);
/* The value's axis i becomes map[i]; -1: it is removed, with masks that depend on it. `like` has the new extents. */
void masks_map(Value *to, const Value *from, const int *map);

Value *evaluate(Evaluator *e, const Expr *expr);
void evaluate_parts(Evaluator *e, const Expr *expr, Value **parts);
int64_t evaluate_i64(Evaluator *e, const Expr *expr); /* sets `undecided` if it is unknown or invalid */
bool evaluate_truth(Evaluator *e, const Expr *expr);
RangeValue evaluate_range(Evaluator *e, const Expr *expr);

Value *evaluate_load(Evaluator *e, const Expr *expr);
Value *evaluate_gather(Evaluator *e, const Expr *expr);
Value *evaluate_atomic(Evaluator *e, const Expr *expr, bool skip);
void evaluate_store(Evaluator *e, const Expr *target, const Expr *value, int op, bool skip);
void evaluate_scatter(Evaluator *e, const Expr *target, const Expr *value);

Value *evaluate_reduce(Evaluator *e, const Expr *expr);
Value *evaluate_running(Evaluator *e, const Expr *expr);
void evaluate_order(Evaluator *e, const Expr *expr, Value **parts); /* E_SORT, E_FIRST */
Value *evaluate_arranged(Evaluator *e, const Expr *expr); /* E_MOVED, E_VALID, E_COUNTED, E_PLACED */
void evaluate_fold(Evaluator *e, const Expr *expr, Value **parts);
Value *evaluate_dot(Evaluator *e, const Expr *expr);
/* a b + acc, of the shape; acc may be NULL. */
Value *evaluate_product(const Value *a, const Value *b, const Value *acc, const Shape *shape, Precision precision);
Value *evaluate_packed(Evaluator *e, const Expr *expr); /* E_NORMAL .. E_UNPACK but E_FREXP, and E_SCALED */
void evaluate_frexp(Evaluator *e, const Expr *expr, Value **parts);

/* Lines of a tile along an axis: element i of line l is at begin + i * step. */
typedef struct Lines {
    int64_t count, length, step;
} Lines;

Lines lines_of(const Value *v, int axis);

#endif
