/* Loops of which several iterations are computed together. Private to ptx/. */
#ifndef TILE_PTX_PIPELINE_UNROLLED_H
#define TILE_PTX_PIPELINE_UNROLLED_H

#include "base/map.h"
#include "lang/index/index.h"
#include "lowering/pass.h"

enum { GPU_MOST_TOGETHER = 8, GPU_MOST_CARRIED = 16 };

typedef struct GpuUnrolled {
    TilePassContext *context;
    TileIndices *indices; /* NULL: no range of the loop's bounds is known */
    TileOp *loop;         /* a `for` that carries at most GPU_MOST_CARRIED values */
    const TileMap *late;  /* ops of its body that stay with their iteration; all others depend on none of these, and come first */
    const TileMap *last;  /* ops that come behind those of all iterations: nothing takes what they give; NULL: there are none */
    int64_t step;
    unsigned together;
    TileValue *rest; /* where the last iterations begin; NULL: behind as many as possible of so many together */
} GpuUnrolled;

/* Builds in front of the loop another, whose iterations are so many of it. The loop itself stays for the last iterations, which
 * are too few. Returns the other. */
TileOp *gpu_unroll(const GpuUnrolled *unrolled);

/* Are the elements that a store in the loop stores accessed by nothing else in the function, and in no other iteration? */
bool gpu_store_is_apart(const TileOp *loop, const TileOp *store);

#endif
