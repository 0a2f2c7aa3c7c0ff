/* Passes of other projects (include/tile/pass.h). */
#ifndef TILE_DRIVER_COMPILE_OWN_PASS_H
#define TILE_DRIVER_COMPILE_OWN_PASS_H

#include "driver/compile/compiler.h"
#include "lowering/pass.h"
#include "tile/pass.h"

/* A pass as registered, and as the runner sees it. */
typedef struct TileOwnPass {
    TilePassInfo info; /* first member, so that the runner's pointer can be cast */
    TilePass given;
} TileOwnPass;

/* Registers a pass. TILE_INVALID_ARGUMENT where it is invalid; `why` has the reason. */
tile_status tile_own_pass_add(TileCompiler *compiler, const TilePass *given, TileText *why);
/* Inserts the registered passes into the pipeline, except those whose position it lacks. */
void tile_own_pass_place(const TileCompiler *compiler, TileArena *arena, TilePipeline *pipeline);
/* Closes the shared objects. */
void tile_own_pass_unload(TileCompiler *compiler);

#endif
