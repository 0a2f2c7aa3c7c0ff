/* The PTX assembler of the CUDA toolkit, if it is installed: the driver's own one does not give its output. */
#ifndef TILE_TOOLS_PTXAS_H
#define TILE_TOOLS_PTXAS_H

#include "base/string.h"
#include "tile/status.h"

typedef struct TileAssembly {
    char *cubin; /* bytes, in the arena */
    size_t size;
    const char *notes; /* what `ptxas -v` says */
} TileAssembly;

/* $TILE_PTXAS; else `ptxas` of $PATH, $CUDA_HOME, $CUDA_PATH, or /usr/local/cuda. NULL if there is none. */
const char *tile_ptxas_find(TileArena *arena);
/* Assembles for the target that the PTX names, with line tables if `lines`. TILE_NOT_FOUND if there is no ptxas,
 * TILE_BACKEND if it fails; the message has the reason. */
tile_status tile_ptxas_run(TileArena *arena, const char *ptx, bool lines, TileAssembly *assembly, TileText *error);

#endif
