/* The passes that turn a kernel into machine form for CPUs, and the order in which they run. */
#ifndef TILE_CPU_PASSES_H
#define TILE_CPU_PASSES_H

#include "lowering/family.h"

#define PASS(id, name, stage, input, output, needs, keeps, doc)                                                            \
    TileResult tile_pass_##id(TilePassContext *context, TileFunc *func);
#include "cpu/passes.def"
#undef PASS

extern const TileFamily tile_cpu_family;

#endif
