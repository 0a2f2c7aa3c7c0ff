/* Loops that carry more than before. Shared by gpu-pipeline and gpu-schedule; private to ptx/. */
#ifndef TILE_PTX_LOOP_H
#define TILE_PTX_LOOP_H

#include "lang/build.h"
#include "lowering/pass.h"

/* The same loop with further carried values, which begin as `first`. Their arguments are the body's last; what it
 * yields for them is the caller's to add. The old loop goes. */
TileOp *gpu_loop_carry(TilePassContext *context, TileOp *loop, TileValue *const *first, unsigned count);

#endif
