/* What differs between the rows of programs of a grid. Private to ptx/. */
#ifndef TILE_PTX_GRID_CLUSTERS_H
#define TILE_PTX_GRID_CLUSTERS_H

#include "lowering/pass.h"

static inline void gpu_look_for_combination(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_CLUSTER_REDUCE; }

/* Do the blocks of a cluster combine what each of them has (gpu-share-rows)? Then the last number of a program is the block's in its cluster. */
static inline bool gpu_combines_in_cluster(TileBlock *body) {
    bool found = false;
    tile_block_walk(body, gpu_look_for_combination, &found);
    return found;
}

/* A row of programs. */
typedef struct GpuRow {
    const TileValue *number; /* an argument of the grid, or a result of a program_id */
    TileMap known;           /* values that have been asked for */
} GpuRow;

/* May the value differ between programs of one column, and of one place in the axes in front of the row? */
bool gpu_row_varies(GpuRow *row, const TileValue *value);
/* May the elements that it accesses? */
bool gpu_row_varies_in(GpuRow *row, const TileOp *access);

#endif
