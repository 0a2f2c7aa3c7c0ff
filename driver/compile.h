/* What tools ask of the driver beyond the public API (include/tile/tile.h): where the time of a library's
 * compilations went, and which names are settings. */
#ifndef TILE_DRIVER_COMPILE_H
#define TILE_DRIVER_COMPILE_H

#include "tile/tile.h"

/* The steps of a compilation, in order. */
typedef enum TileStep {
    TILE_STEP_PARSE,  /* text to syntax tree, imports included */
    TILE_STEP_CHECK,  /* syntax tree to tile form */
    TILE_STEP_LOWER,  /* shared passes */
    TILE_STEP_TARGET, /* the target's passes */
    TILE_STEP_MLIR,   /* machine form to the LLVM dialect */
    TILE_STEP_LLVM,   /* to LLVM IR, optimised */
    TILE_STEP_CODE,   /* to machine instructions */
    TILE_STEP_LOAD,
    TILE_STEP_COUNT
} TileStep;

const char *tile_step_name(TileStep step);

typedef struct TileStepTimes {
    double seconds[TILE_STEP_COUNT];
} TileStepTimes;

/* Sums over everything compiled for the library so far. Thread safe. */
TileStepTimes tile_library_times(const TileLibrary *library);

/* Does a kernel of the library have a generic, const, static or tune parameter of this name? Yes where
 * memory does not suffice for the answer. */
bool tile_library_has_setting(const TileLibrary *library, const char *name);

#endif
