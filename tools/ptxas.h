/* The PTX assembler of the CUDA toolkit, where it is installed: the driver has one of its own, which does not show what
 * it has made. */
#ifndef TILE_TOOLS_PTXAS_H
#define TILE_TOOLS_PTXAS_H

#include "base/string.h"
#include "tile/status.h"

typedef struct TileAssembly {
    char *cubin; /* bytes, in the arena */
    size_t size;
    const char *notes; /* what `ptxas -v` says */
} TileAssembly;

/* $TILE_PTXAS; else `ptxas` of $PATH, $CUDA_HOME, $CUDA_PATH, or /usr/local/cuda. NULL where there is none. */
const char *tile_ptxas_find(TileArena *arena);
/* Assembles for the target that the PTX names, with line tables where `lines` says so. TILE_NOT_FOUND where there is no
 * ptxas, TILE_BACKEND where it fails; the message says why. */
tile_status tile_ptxas_run(TileArena *arena, const char *ptx, bool lines, TileAssembly *assembly, TileText *error);

#endif
