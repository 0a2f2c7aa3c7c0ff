/* Which accesses by index tiles are of consecutive positions of a batch of images: for gpu-positions. Private to ptx/. */
#ifndef TILE_PTX_GRID_POSITION_FORM_H
#define TILE_PTX_GRID_POSITION_FORM_H

#include "lang/index/index.h"

enum { GPU_MOST_ADDED = 4 };

/* A dimension that lanes go through: base * step + what is added, base being the remainder of the lane's number, divided, by `count`. */
typedef struct GpuPositionAxis {
    TileValue *count; /* NULL: of the first dimension, which has no end */
    int64_t step, constant; /* the latter is added, too */
    TileValue *added[GPU_MOST_ADDED];
    bool minus[GPU_MOST_ADDED]; /* it is subtracted */
    unsigned added_count;
    const TileSum *divisor;
} GpuPositionAxis;

typedef struct GpuPositions {
    TileOp *access;               /* load_tile or store_tile */
    unsigned dimensions;          /* of the tensor */
    TileValue *numbers;           /* those of the lanes: from `first` on, one after the other */
    TileValue *first;             /* NULL: 0 */
    TileValue *valid;             /* lanes from this one on are beyond the last position; NULL: all are before it */
    GpuPositionAxis axes[TILE_MAX_TENSOR_RANK]; /* of all dimensions but the last */
} GpuPositions;

/* NULL: the access, of a kernel, is such; else why it is not. */
const char *gpu_position_form(TileIndexView *view, TileOp *access, GpuPositions *positions);

#endif
