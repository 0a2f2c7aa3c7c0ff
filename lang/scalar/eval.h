/* The meaning of every elementwise operation on scalars, as bits (see scalar.h), below the IR and the launcher: both
 * have it from here. lang/ir/eval.h is the same by the IR's numbers of ops.
 *
 * The operand type is that of the values: for `select` the type of its second and third operands, whose first is
 * a bool. Comparisons and predicates give a bool. */
#ifndef TILE_LANG_SCALAR_EVAL_H
#define TILE_LANG_SCALAR_EVAL_H

#include "lang/scalar/types.h"

typedef enum TileEvalOp {
#define EVAL_OP(id, operands) TILE_EVAL_##id,
#include "lang/scalar/eval_ops.def"
    TILE_EVAL_COUNT
} TileEvalOp;

enum { TILE_EVAL_MOST_OPERANDS = 3 };

/* "ADD": as the rows have it. */
const char *tile_eval_op_name(TileEvalOp op);
/* TILE_EVAL_COUNT when no op has this name. */
TileEvalOp tile_eval_op_find(const char *name);
unsigned tile_eval_op_operands(TileEvalOp op);

/* For many lanes: operands[i] points to `count` lanes of operand i. `result` may be one of them. */
typedef void (*TileEvalLoop)(TileScalar operand_type, TileScalar result_type, const uint64_t *const *operands,
                             uint64_t *result, size_t count);
/* NULL where the operation has no meaning on these types. `approx` chooses the short forms of transcendental
 * operations. */
TileEvalLoop tile_eval_op_loop(TileEvalOp op, TileScalar operand_type, TileScalar result_type, bool approx);
/* Has the operation a meaning on operands of the one type that gives a result of the other? */
bool tile_eval_op_allows(TileEvalOp op, TileScalar operand_type, TileScalar result_type);

/* ---- reductions ---- */

typedef enum TileReduction {
#define REDUCTION(id, name, op, identity, order, repeats) TILE_REDUCTION_##id,
#include "lang/scalar/reductions.def"
    TILE_REDUCTION_COUNT
} TileReduction;

TileEvalOp tile_reduction_op(TileReduction reduction);
/* The bits that it starts from. */
uint64_t tile_reduction_identity(TileReduction reduction, TileScalar scalar);
/* May another order of the elements give other bits? */
bool tile_reduction_is_ordered(TileReduction reduction, TileScalar scalar);
/* Is an element that comes twice as one that comes once? */
bool tile_reduction_is_idempotent(TileReduction reduction);

#endif
