/* The passes that lower a kernel to machine form for GPUs, and their order. */
#ifndef TILE_PTX_PASSES_H
#define TILE_PTX_PASSES_H

#include "lowering/family.h"

/* Of loops (TILE_ATTRIBUTE_PART): gpu-split-grids says so, gpu-ahead unrolls them, those of sums if they compute little. A loop that combines parts of sums, and is the last of its grid,
 * is one over them: how the grid is divided follows from how many programs there are (TileFunc.split_programs). */
enum { TILE_PART_OF_SCAN = 1, TILE_PART_OF_SUMS = 2, TILE_PART_OVER_SUMS = 3, TILE_PART_OF_CLUSTER = 4 };

/* Of branches (TILE_ATTRIBUTE_KEPT) of gpu-keep-rows: the rows have a class, which the launch has as well, or none. */
enum { TILE_KEPT_OF_CLASS = 1, TILE_KEPT_OF_ANY = 2 };

#define PASS(id, name, stage, input, output, needs, keeps, doc)                                                            \
    TileResult tile_pass_##id(TilePassContext *context, TileFunc *func);
#include "ptx/passes.def"
#undef PASS

/* TileFamily.estimate, in model/time.c. */
bool gpu_estimate(const TileTarget *target, TileFunc *kernel, const TileExtents *extents, TileArena *scratch,
                  TileEstimate *estimate);

extern const TileFamily tile_ptx_family;

#endif
