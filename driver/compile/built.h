/* Code that the launcher runs, and what it owns: what load.c, execute.c and build.c share. */
#ifndef TILE_DRIVER_COMPILE_BUILT_H
#define TILE_DRIVER_COMPILE_BUILT_H

#include <pthread.h>

#include "driver/compile/backend.h"

/* `code` is the first member, so that the launcher's pointer can be cast. */
typedef struct TileBuiltCode {
    TileImageCode code;
    TileArena *arena;
    TileBackendLoaded loaded;
    TileUnit *unit; /* interpreted code */
    TileFunc *kernel;
    bool machine;          /* the executor runs the phases' machine form */
    pthread_mutex_t mutex; /* the executor numbers the values of what it runs */
} TileBuiltCode;

/* Is the code for another machine, which an emulator runs? */
bool tile_unit_is_foreign(const TileUnit *unit);
/* Loads the target's code: built->loaded, with an entry for each phase. */
tile_status tile_built_load(TileUnit *unit, const TileBackendCode *code, TileBuiltCode *built);
/* Unloads it. */
void tile_built_release(TileBuiltCode *built);

/* By the executor: the call of interpreted code. */
tile_status tile_built_interpret(const TileImageCode *code, const uint64_t *slots, TilePrintLine print,
                                 void *print_host, TileError *error);

#endif
