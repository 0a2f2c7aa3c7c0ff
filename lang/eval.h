/* The meaning of every elementwise operation on scalars, as bits (see scalar.h).
 *
 * The operand type is that of the values: for `select` the type of its second and third operands, whose first is
 * a bool. Comparisons and predicates give a bool. */
#ifndef TILE_LANG_EVAL_H
#define TILE_LANG_EVAL_H

#include "lang/ir.h"

/* False where the operation has no meaning on these types, or is not elementwise. */
bool tile_eval(TileOpId id, TileScalar operand_type, TileScalar result_type, const uint64_t *operands,
               uint64_t *result);

/* The same for many lanes: operands[i] points to `count` lanes of operand i. `result` may be one of them. */
typedef void (*TileEvalLoop)(TileScalar operand_type, TileScalar result_type, const uint64_t *const *operands,
                             uint64_t *result, size_t count);
/* NULL where the operation has no meaning on these types. `approx` chooses the short forms of transcendental
 * operations. */
TileEvalLoop tile_eval_loop(TileOpId id, TileScalar operand_type, TileScalar result_type, bool approx);

/* The operation by which a reduction of this kind (TILE_KIND_*) combines, and the bits that it starts from. */
TileOpId tile_eval_combiner(int64_t kind);
uint64_t tile_eval_identity(int64_t kind, TileScalar scalar);

/* What an atomic op (TILE_UPDATE_*) stores, given what is there. */
uint64_t tile_eval_update(int64_t update, TileScalar scalar, uint64_t old, uint64_t value, uint64_t expected);

/* tf32: an f32 rounded to 10 bits of mantissa, to nearest even. */
float tile_eval_tf32(float value);

#endif
