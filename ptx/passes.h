/* The passes that lower a kernel to machine form for GPUs, and their order. */
#ifndef TILE_PTX_PASSES_H
#define TILE_PTX_PASSES_H

#include "lowering/family.h"

#define PASS(id, name, stage, input, output, needs, keeps, doc)                                                            \
    TileResult tile_pass_##id(TilePassContext *context, TileFunc *func);
#include "ptx/passes.def"
#undef PASS

/* TileFamily.estimate, in model/time.c. */
bool gpu_estimate(const TileTarget *target, TileFunc *kernel, const TileExtents *extents, TileArena *scratch,
                  TileEstimate *estimate);

extern const TileFamily tile_ptx_family;

#endif
