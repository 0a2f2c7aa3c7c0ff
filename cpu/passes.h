/* The passes that lower a kernel to machine form for CPUs, and their order. */
#ifndef TILE_CPU_PASSES_H
#define TILE_CPU_PASSES_H

#include "lowering/family.h"

#define PASS(id, name, stage, input, output, needs, keeps, doc)                                                            \
    TileResult tile_pass_##id(TilePassContext *context, TileFunc *func);
#include "cpu/passes.def"
#undef PASS

extern const TileFamily tile_cpu_family;

#endif
