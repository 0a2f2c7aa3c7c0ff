/* Where the elements of a tile are among all elements of its tensors, row by row, as in m.idx[:, _] * N + n.idx[_, :]. Private to ptx/. */
#ifndef TILE_PTX_GRID_FLAT_PLACES_H
#define TILE_PTX_GRID_FLAT_PLACES_H

#include "lang/ir/build.h"

/* An axis of the grid: along it a program has `size` elements, from its number times that, of `extent`. */
typedef struct GpuFlatAxis {
    TileValue *program, *extent; /* extent: NULL, and `number` is it */
    int64_t number, size;
    bool known, tiled; /* tiled: an axis of tiles */
} GpuFlatAxis;

/* The grid's axes, which are all known, and what was found. */
typedef struct GpuFlatPlaces {
    const GpuFlatAxis *axes;
    unsigned count;
    const TileOp *grid;
    TILE_LIST(TileValue *) found;
    TileMap parts; /* tiles of which those consist, which nothing else uses */
} GpuFlatPlaces;

/* Finds the tiles of places in the grid's block. */
void gpu_find_flat_places(GpuFlatPlaces *places, TileArena *scratch);

#endif
