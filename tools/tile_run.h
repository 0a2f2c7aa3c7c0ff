/* Runs a function of the IR in the executor on random data, to compare it before and after passes.
 *
 * The text `name:argument,argument,..` names the function and describes an argument for each parameter:
 *   tensors         extents: 3x70; `-` for rank 0. A letter after / gives the strides: 3x70/t transposed,
 *                   /r reversed, /s every second element
 *   pointers        element type and count: f32*64. /i behind it makes floats integers, whose sums are exact in any
 *                   order: bf16*64/i
 *   scalars         a number, or ? for a random one
 *   tiles, vectors  ? */
#ifndef TILE_TOOLS_TILE_RUN_H
#define TILE_TOOLS_TILE_RUN_H

#include "lang/execute/execute.h"

typedef struct TileRun TileRun;

/* The outcome of one execution: how it ended, and all bytes and lanes of its results. */
typedef struct TileRunOutcome {
    TileExecution state;
    const char *message;
    unsigned char **memory; /* one for each parameter, or NULL */
    uint64_t **results;
    uint8_t **poison;
} TileRunOutcome;

/* NULL, with the reason in `errors`, if the text does not fit the module. */
TileRun *tile_run_create(TileArena *arena, TileModule *module, const char *text, TileText *errors);
/* Runs the function of the same name in `module` on the same data each time. */
bool tile_run_execute(TileRun *run, TileModule *module, const TileExecutorOptions *options, TileRunOutcome *outcome,
                      TileText *errors);
/* Is `after` equal to `before`, except for the bits of NaNs and what was poison? Otherwise reports the first
 * difference. */
bool tile_run_same(const TileRun *run, const TileRunOutcome *before, const TileRunOutcome *after, TileText *errors);

#endif
