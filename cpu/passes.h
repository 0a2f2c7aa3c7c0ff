/* The passes that turn a kernel into machine form for CPUs, and the order in which they run. */
#ifndef TILE_CPU_PASSES_H
#define TILE_CPU_PASSES_H

#include "lowering/pass.h"

#define PASS(id, name, stage, input, output, doc) TileResult tile_pass_##id(TilePassContext *context, TileFunc *func);
#include "cpu/passes.def"
#undef PASS

const TilePassTable *tile_cpu_passes(void);

/* Adds the whole way from checked tile form to machine form that mlir_bridge maps 1:1. TILE_INTERNAL, with a
 * message, when a name in the list is no pass. */
tile_status tile_cpu_pipeline(TilePipeline *pipeline, TileArena *arena, TileText *message);

#endif
