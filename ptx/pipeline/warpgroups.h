/* What gpu-warpgroups asks of products. Private to ptx/. */
#ifndef TILE_PTX_PIPELINE_WARPGROUPS_H
#define TILE_PTX_PIPELINE_WARPGROUPS_H

#include "lowering/pass.h"

/* NULL: all products of the function for tensor cores, which have been transposed, can be computed by wgmma, and their operands are there in
 * time; else why not. */
const char *gpu_why_not_transposed(TilePassContext *context, TileFunc *func);

#endif
