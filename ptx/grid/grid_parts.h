/* A grid whose loop is split into parts, which programs of a grid before it compute. Private to ptx/. */
#ifndef TILE_PTX_GRID_GRID_PARTS_H
#define TILE_PTX_GRID_GRID_PARTS_H

#include "lowering/pass.h"
#include "ptx/grid/merges.h"

enum { GPU_MOST_NESTED = 3, GPU_MOST_BESIDE = 4 };

typedef struct GpuSplit {
    TilePassContext *context;
    TileFunc *kernel;
    TileOp *grid, *loop;
    unsigned axes; /* of the grid, as the text has it */
    GpuMerge merge;
    TileValue *temps[TILE_MAX_FOLD];
    int64_t wanted; /* programs */
    unsigned splits; /* of the kernel so far, whose parts are combined alone */
    bool alone; /* parts are combined each value for itself, and nothing else is left for the grid's last loop */
    int64_t slices, together; /* of a program that combines parts, and how many of these it loads at once */
    bool beside; /* a thread loads those, and exchanges nothing */
    bool uneven; /* its bounds differ from program to program */
    TileValue *programs, *parts; /* on the host: of the grid, of each program */
    unsigned depth;              /* of the nest: the loop, one that all it carries goes through, .. */
    TileOp *nest[GPU_MOST_NESTED];
    TileValue *shares[GPU_MOST_NESTED], *trips[GPU_MOST_NESTED]; /* of each loop: how many parts share its iterations, and how many each has; uneven: unknown */
} GpuSplit;

/* Does the launcher know the loop's bounds? */
bool gpu_split_is_counted(const GpuSplit *split, const TileOp *loop);
/* The loop in its body that all it carries goes through, each value at its own place; NULL: there is none. */
TileOp *gpu_split_inner_loop(const TileOp *loop);
/* Fewer iterations are not worth a part. */
int64_t gpu_split_least_trips(const GpuSplit *split);
bool gpu_split_multiplies(const GpuSplit *split);
/* Makes one loop of a nest of products but for its innermost loop, so that parts have the same number of iterations, or one more. Returns it; NULL:
 * the nest stays. */
TileOp *gpu_split_join_nest(GpuSplit *split);
/* Sets `depth` and `nest`: the loops whose iterations parts share. */
void gpu_split_find_nest(GpuSplit *split);
/* On the host: `programs`, `parts`, and what each has of the nest, at least so many iterations. */
void gpu_split_compute_parts(GpuSplit *split, TileBuilder *host, int64_t least_trips);
/* On the host: the temporaries for what the loop carries. */
void gpu_split_build_temps(GpuSplit *split, TileBuilder *host);
/* The grid that computes the parts. */
void gpu_split_build_parts(GpuSplit *split, TileBuilder *host);
/* Replaces the loop by one over the parts; in the grid of a scan over those before `part`, else NULL. Returns it. */
TileOp *gpu_split_combine(GpuSplit *split, TileValue *part);

/* On the host: what each of so many parts at most has of the nest; others have no iterations. */
void gpu_split_share_nest(GpuSplit *split, TileBuilder *b, int64_t number);
/* The part's iterations of each loop of the nest. */
void gpu_split_narrow_nest(const GpuSplit *split, TileBuilder *b, TileOp *loop, TileValue *part, TileValue *trips);
/* What the loop carries begins with what changes nothing, and inductions behind so many iterations. */
void gpu_split_begin(GpuSplit *split, TileBuilder *b, TileOp *loop, TileValue *before);
/* Gives the grid a program for each part, which is its last id. Returns that. */
TileValue *gpu_split_widen_grid(GpuSplit *split, TileOp *grid);
/* Leaves the loop the iterations of the part: so many, from the part's first on. */
void gpu_split_narrow(TileBuilder *b, TileOp *loop, TileValue *part, TileValue *trips);

#endif
