/* The meaning of every elementwise operation on scalars, as bits (see scalar.h). Both the IR and the launcher are above
 * this file and use it. lang/ir/eval.h is the same, indexed by the IR's ops.
 *
 * The operand type is that of the values: for `select` the type of its second and third operands; the first is a bool.
 * Comparisons and tests give a bool. */
#ifndef TILE_LANG_SCALAR_EVAL_H
#define TILE_LANG_SCALAR_EVAL_H

#include "lang/scalar/types.h"

typedef enum TileEvalOp {
#define EVAL_OP(id, operands) TILE_EVAL_##id,
#include "lang/scalar/eval_ops.def"
    TILE_EVAL_COUNT
} TileEvalOp;

enum { TILE_EVAL_MOST_OPERANDS = 3 };

/* The name in the rows: "ADD". */
const char *tile_eval_op_name(TileEvalOp op);
/* TILE_EVAL_COUNT if no operation has this name. */
TileEvalOp tile_eval_op_find(const char *name);
unsigned tile_eval_op_operands(TileEvalOp op);

/* For many lanes: operands[i] points to `count` lanes of operand i. `result` may be equal to one of them. */
typedef void (*TileEvalLoop)(TileScalar operand_type, TileScalar result_type, const uint64_t *const *operands,
                             uint64_t *result, size_t count);
/* NULL if the operation is not defined on these types. `approx` selects the approximate versions of transcendental
 * operations. */
TileEvalLoop tile_eval_op_loop(TileEvalOp op, TileScalar operand_type, TileScalar result_type, bool approx);
/* Is the operation, on operands of the first type and with a result of the second, defined? */
bool tile_eval_op_allows(TileEvalOp op, TileScalar operand_type, TileScalar result_type);

/* ---- reductions ---- */

typedef enum TileReduction {
#define REDUCTION(id, name, op, identity, order, repeats) TILE_REDUCTION_##id,
#include "lang/scalar/reductions.def"
    TILE_REDUCTION_COUNT
} TileReduction;

TileEvalOp tile_reduction_op(TileReduction reduction);
/* The bits of the identity element. */
uint64_t tile_reduction_identity(TileReduction reduction, TileScalar scalar);
/* May another order of the elements change the result's bits? */
bool tile_reduction_is_ordered(TileReduction reduction, TileScalar scalar);
/* Is it idempotent: may an element be combined twice without another result? */
bool tile_reduction_is_idempotent(TileReduction reduction);

#endif
