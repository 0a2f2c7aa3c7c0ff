/* Passes of other projects (include/tile/pass.h) among ours. */
#ifndef TILE_DRIVER_COMPILE_OWN_PASS_H
#define TILE_DRIVER_COMPILE_OWN_PASS_H

#include "driver/compile/compiler.h"
#include "lowering/pass.h"
#include "tile/pass.h"

/* A pass as it was given, and as the runner knows it. */
typedef struct TileOwnPass {
    TilePassInfo info; /* the first member: the runner's pointer is the whole */
    TilePass given;
} TileOwnPass;

/* Adds a pass to the compiler's. TILE_INVALID_ARGUMENT, and `why` says what is wrong with it. */
tile_status tile_own_pass_add(TileCompiler *compiler, const TilePass *given, TileText *why);
/* Puts the compiler's passes into the pipeline, those whose place it has. */
void tile_own_pass_place(const TileCompiler *compiler, TileArena *arena, TilePipeline *pipeline);
/* Lets go of the shared objects. */
void tile_own_pass_unload(TileCompiler *compiler);

#endif
