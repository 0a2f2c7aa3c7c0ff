/* The passes that turn a kernel into machine form for GPUs, and the order in which they run. */
#ifndef TILE_PTX_PASSES_H
#define TILE_PTX_PASSES_H

#include "lowering/pass.h"

#define PASS(id, name, stage, input, output, doc) TileResult tile_pass_##id(TilePassContext *context, TileFunc *func);
#include "ptx/passes.def"
#undef PASS

const TilePassTable *tile_ptx_passes(void);

/* The names, in order and separated by commas, of the whole way from checked tile form to machine form that mlir_bridge
 * maps 1:1. Passes that do not care for the target come from the tables of lowering/ and cpu/. */
const char *tile_ptx_pipeline(void);

#endif
