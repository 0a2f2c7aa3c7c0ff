/* What gpu-warpgroups asks of products. Private to ptx/. */
#ifndef TILE_PTX_PIPELINE_WARPGROUPS_H
#define TILE_PTX_PIPELINE_WARPGROUPS_H

#include "lowering/pass.h"

/* NULL: all products of the function for tensor cores, which have been transposed, can be computed by wgmma, and their operands are there in
 * time; else why not. */
const char *gpu_why_not_transposed(TilePassContext *context, TileFunc *func);

/* Lets warpgroups share the depth of the function's products, of 64 rows, if that pays for all of them, which are then to be computed by wgmma: so many
 * warpgroups; 1: nothing is changed. */
int64_t gpu_share_depth(TilePassContext *context, TileFunc *func, const char **error);

#endif
