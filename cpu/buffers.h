/* Buffers in scratch memory, by the pointers into them. */
#ifndef TILE_CPU_BUFFERS_H
#define TILE_CPU_BUFFERS_H

#include "lang/ir/ir.h"

/* The buffer that the pointer points into; NULL: it points elsewhere. */
const TileValue *tile_buffer_of(const TileValue *pointer);
bool tile_op_inside(const TileOp *op, const TileOp *around);
/* How many operands in the loop are the pointer, or one that is computed from it; additions to it do not count. */
unsigned tile_buffer_uses(const TileValue *pointer, const TileOp *loop);

#endif
