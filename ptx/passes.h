/* The passes that turn a kernel into machine form for GPUs, and the order in which they run. */
#ifndef TILE_PTX_PASSES_H
#define TILE_PTX_PASSES_H

#include "lowering/family.h"

#define PASS(id, name, stage, input, output, needs, keeps, doc)                                                            \
    TileResult tile_pass_##id(TilePassContext *context, TileFunc *func);
#include "ptx/passes.def"
#undef PASS

extern const TileFamily tile_ptx_family;

#endif
