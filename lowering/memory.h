/* Memory dependences: which writes may change the result of which reads. */
#ifndef TILE_LOWERING_MEMORY_H
#define TILE_LOWERING_MEMORY_H

#include "lang/ir/ir.h"

/* The tensor that an op of tile form reads or writes. NULL: any memory. */
TileValue *tile_memory_tensor(const TileOp *op);
/* May a write through `written` change a read through `read`? NULL is any memory. Two tensors may alias only if both
 * are parameters and neither is `noalias`; a temp never does. */
bool tile_memory_overlaps(const TileValue *written, const TileValue *read);
/* Does no op of the function write the tensor, by whichever name? */
bool tile_memory_is_constant(const TileValue *tensor);
/* May the op, or one in its regions, write the tensor `read`? */
bool tile_memory_is_written(const TileOp *op, const TileValue *read);
/* Does the loop go through a list of elements whose first and last place the program loads, as the rows of sparse matrices are? */
bool tile_goes_through_list(const TileOp *loop);

#endif
