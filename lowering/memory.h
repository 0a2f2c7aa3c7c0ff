/* What passes know of memory: which writes may change what a read sees. */
#ifndef TILE_LOWERING_MEMORY_H
#define TILE_LOWERING_MEMORY_H

#include "lang/ir/ir.h"

/* A write or read of one place known by name: a tensor (tile form). NULL where it may be anything. */
TileValue *tile_memory_tensor(const TileOp *op);
/* May writing through `written` change what is read through `read`? Either may be NULL: anything. Two tensors
 * share memory only where both are parameters and neither is `noalias`; a temp shares none. */
bool tile_memory_overlaps(const TileValue *written, const TileValue *read);
/* Does the op, or one in its regions, write what `read` stands for? */
bool tile_memory_is_written(const TileOp *op, const TileValue *read);

#endif
