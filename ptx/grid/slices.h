/* Grids whose programs compute large tiles element by element, divided into more programs along an axis of these tiles. Private to
 * ptx/. */
#ifndef TILE_PTX_GRID_SLICES_H
#define TILE_PTX_GRID_SLICES_H

#include "lang/ir/ir.h"
#include "lowering/pass.h"

typedef struct GpuSlices {
    TilePassContext *context;
    TileOp *grid;
    const TileOp *loop; /* whose results are taken as they come, whatever computes them; NULL: none */
    TileMap axes;       /* of tiles that are divided: the axis + 1 */
    int64_t extent;     /* elements along the axis: of a tile that is stored, then of a slice */
    int64_t whole;      /* of a tile, where it has been divided */
    TileValue *offset;  /* of the program's slice */
} GpuSlices;

/* In how many slices of at least so many elements, a power of two, each program can be divided along the first axis of what the grid stores; 1: it cannot be. */
int64_t gpu_slices_find(GpuSlices *slices, TilePassContext *context, TileOp *grid, const TileOp *loop, int64_t least);
/* The axis along which the value is divided; -1: it is not. */
int gpu_slices_axis(const GpuSlices *slices, const TileValue *value);
/* Divides it; requires that all its loops can be, and gpu_slices_find in so many with that one in the place of what is there now. False: it
 * stays as it is. */
bool gpu_slices_divide(GpuSlices *slices, TilePassContext *context, TileOp *grid, int64_t count);
/* The same where the grid's programs have the number of their slice already. */
bool gpu_slices_divide_by(GpuSlices *slices, TilePassContext *context, TileOp *grid, int64_t count, TileValue *slice);

#endif
