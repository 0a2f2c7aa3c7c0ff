/* Programs of a block whose products take turns on the tensor cores. Private to ptx/. */
#ifndef TILE_PTX_PIPELINE_TURNS_H
#define TILE_PTX_PIPELINE_TURNS_H

#include "lang/ir/ir.h"

/* NULL: how many slots a program of this loop takes follows from scalars that are known when it begins, so that warps
 * can go past the slots of programs that others execute. Before loads go through channels, loads by maps count as takes. */
const char *gpu_why_not_counted(const TileOp *loop);

#endif
