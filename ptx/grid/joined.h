/* Programs of a grid, or iterations of a loop, that are computed together: which axes of which tiles become longer by
 * that. Private to ptx/grid. */
#ifndef TILE_PTX_GRID_JOINED_H
#define TILE_PTX_GRID_JOINED_H

#include "base/map.h"
#include "lowering/pass.h"

/* What a scalar is to neighbours that are joined. */
typedef enum GpuPart {
    GPU_PART_SAME,    /* the same for all */
    GPU_PART_FIRST,   /* the first place of a range of `size`: each range begins where the one before ends */
    GPU_PART_LEFT,    /* falls by `size` from one to the next */
    GPU_PART_BOUND,   /* a bound of lanes: minima and maxima of LEFT and of numbers that exclude no lane, or all */
    GPU_PART_POINT,   /* rises by 1 from one to the next */
    GPU_PART_TEST,    /* is a point between bounds */
    GPU_PART_SAFE,    /* a point where its test holds, else another number that all share */
    GPU_PART_LIMITED, /* a bound that all share where a test holds; else nothing is inside */
    GPU_PART_OTHER    /* nothing of that */
} GpuPart;

typedef struct GpuJoinedAxis {
    size_t parent; /* of the set of axes that grow together */
    bool grows, stays;
} GpuJoinedAxis;

typedef struct GpuJoin {
    TilePassContext *context;
    TileOp *around;    /* the grid, or the loop */
    TileValue *number; /* of the program along the axis; a loop's induction variable */
    int64_t size;      /* of one's range of lanes; 0: each has a point, and these become rows of its tiles */
    int64_t scale;     /* of a loop whose induction variable is multiplied by that wherever it is used; 0, 1: it is not */
    TileMap parts;     /* scalars to GpuPart */
    TileMap tiles;     /* tiles to the number of their first axis, plus 1 */
    TILE_LIST(GpuJoinedAxis) axes;
    const char *why;     /* NULL: they can be joined */
    const TileOp *place; /* of the reason */
} GpuJoin;

/* The number of lanes of a program's range, by which its number is multiplied; 0: there is none. */
int64_t gpu_range_size(const TileValue *number);
/* Can neighbours be computed together? `size` and `number` are set. */
bool gpu_can_join(GpuJoin *join);
GpuPart gpu_joined_part(const GpuJoin *join, const TileValue *scalar);
/* Does the axis become longer? */
bool gpu_joined_grows(const GpuJoin *join, const TileValue *tile, unsigned axis);
/* Is the tile the same whatever its extents are: a constant, or a scalar everywhere? */
bool gpu_joined_is_any(const GpuJoin *join, const TileValue *tile);
/* Is it a broadcast along the axes that become longer? Then one from elsewhere is built again. */
bool gpu_joined_spreads(const GpuJoin *join, const TileValue *tile);
/* Along ranges of programs, lanes that no store takes need not be left out of what is loaded: where only the tensor's own end
 * bounds them, they are what a tensor map copies. Of programs with ranges, that can be joined. */
bool gpu_keep_unread_lanes(GpuJoin *join, TileIndexView *view);
/* Bounds of one's lanes are those of so many neighbours', and first places those of ranges that are so many times as long. */
void gpu_widen_bounds(GpuJoin *join, int64_t factor);
/* Computes `factor` neighbours together. `programs`: of the grid along the axis, before; NULL for a loop. */
void gpu_join_neighbours(GpuJoin *join, int64_t factor, TileValue *programs);

/* Computes `count` neighbours together, of which each has a point, as rows of tiles that have an axis more; indices may be anything that is computed of the
 * point. False: they cannot be, and nothing has changed; `why` says the reason. */
bool gpu_join_as_rows(GpuJoin *join, int64_t count, TileValue *programs);

/* TileFunc.joined_rows where no programs have been joined: behind gpu-precompute iterations may be; or they have been. */
enum { GPU_NOTHING_JOINED = 1, GPU_ITERATIONS_JOINED = 2 };

typedef struct GpuProducts {
    TileOp *dots[8];
    unsigned count;
    bool all; /* each of two axes, and no more than that */
} GpuProducts;

GpuProducts gpu_find_products(TileBlock *block);
/* How many of `extent` make up what is wanted, at least 1. */
int64_t gpu_quotient(int64_t wanted, int64_t extent);
/* Of the block's loops whose products have short rows along k, several iterations become one. Were there such? */
bool gpu_join_iterations(TilePassContext *context, TileBlock *block);

#endif
