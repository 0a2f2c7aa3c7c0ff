/* Blocked layouts (lang/layout/layout.h), and the properties of a function that decide on them. Private to ptx/. */
#ifndef TILE_PTX_LAYOUTS_BLOCKED_H
#define TILE_PTX_LAYOUTS_BLOCKED_H

#include "lang/ir/ir.h"
#include "lang/ir/layout_rules.h"
#include "ptx/target/target.h"

/* The widest access of a thread, and the widest with a predicate of its own. */
enum { GPU_ACCESS_BYTES = 16, GPU_PREDICATED_BYTES = 8 };

/* The logarithm of how many threads can share an axis of this extent out without repeating one another: 16 of 48, which is three pieces of 16. */
unsigned gpu_log_divided(int64_t extent);

/* A blocked layout: vectors and lanes along the last axis, in each thread `1 << log_rows` neighbouring vectors along
 * the axis before it, warps along the first axes. Of a number of threads that is no power of two, warps hold copies. */
TileLayout gpu_spread(const TileLayoutShape *shape, unsigned log_vector, unsigned log_rows, uint32_t threads);

typedef struct GpuSurvey {
    const TileType *largest; /* by elements; NULL: the function has no tiles */
    int64_t registers;       /* of 32 bits, of the tile that takes most, with extents padded as layouts pad them */
    unsigned least_bytes;    /* of the narrowest element that is loaded or stored */
    bool transposes;         /* a tile's axes are permuted */
    bool combines;           /* elements are reduced, scanned or multiplied: in an order that the layout decides */
    bool draws;              /* random numbers are drawn, four neighbours at once */
    bool reduces_rows;       /* whole rows are reduced, as one tile */
    int64_t piece;           /* elements of the longest row that is known to be one tile and is reduced; 0: none */
    bool reduces_others;     /* there are reductions other than of such rows */
    int64_t multiplied;      /* elements of the operands and sums of products by fused multiply-adds */
} GpuSurvey;
GpuSurvey gpu_survey(const TileBlock *body);
/* Does the loop store tiles, though it combines none, and is nothing that it carries used behind it but by such a loop, which goes on? Odd rows have lanes as
 * neighbours in it, whatever decides the layout elsewhere (gpu-anchor). */
bool gpu_only_stores(const TileOp *op);

/* Are the bits of the axis, from the lowest on, those of registers, lanes in ascending order, warps in ascending
 * order, and again registers? The latter, the bits of segments, are counted. Scans and folds stay in such a layout, if there are 16
 * segments at most; other tiles they convert. */
bool gpu_is_in_order(const TileLayout *layout, unsigned axis, unsigned *log_segments);

#endif
