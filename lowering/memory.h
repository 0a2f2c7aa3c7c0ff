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

/* Bounds of the range that axis `axis` of a loaded or stored tile runs over; false where the axis is that of a
 * gather. */
bool tile_access_bounds(const TileOp *op, unsigned axis, TileValue **lo, TileValue **hi);
/* Number of the first operand after the indices: the mask, if there is one, else the fill. */
unsigned tile_access_end(const TileOp *op);

#endif
