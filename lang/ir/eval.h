/* The meaning of every elementwise op of the IR on scalars, as bits: lang/scalar/eval.h, indexed by the ops of
 * ops.def. */
#ifndef TILE_LANG_IR_EVAL_H
#define TILE_LANG_IR_EVAL_H

#include "lang/ir/ir.h"
#include "lang/scalar/eval.h"

/* TILE_EVAL_COUNT if the op is not elementwise. */
TileEvalOp tile_eval_op_of(TileOpId id);
TileOpId tile_eval_op_id(TileEvalOp op);
/* The operand type of an elementwise op, in the sense of tile_eval_op_loop. */
TileScalar tile_eval_operand_type(const TileOp *op);

/* False if the operation is not defined on these types, or is not elementwise. */
bool tile_eval(TileOpId id, TileScalar operand_type, TileScalar result_type, const uint64_t *operands,
               uint64_t *result);

/* The same for many lanes. */
TileEvalLoop tile_eval_loop(TileOpId id, TileScalar operand_type, TileScalar result_type, bool approx);

/* The reduction of a TILE_KIND_* or TILE_COMBINE_*. */
TileReduction tile_eval_reduction(int64_t kind);
/* The operation that combines two elements, and the bits of its identity element. */
TileOpId tile_eval_combiner(int64_t kind);
/* The kind of reduction (TILE_KIND_X) that combines two values by this op; -1: none. */
int tile_eval_kind(TileOpId id);
uint64_t tile_eval_identity(int64_t kind, TileScalar scalar);

/* The value that an atomic op (TILE_UPDATE_*) stores, given the old value. */
uint64_t tile_eval_update(int64_t update, TileScalar scalar, uint64_t old, uint64_t value, uint64_t expected);

#endif
