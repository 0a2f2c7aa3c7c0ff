/* Blocked layouts (lang/layout.h), and what of a function decides on them. Private to ptx/. */
#ifndef TILE_PTX_BLOCKED_H
#define TILE_PTX_BLOCKED_H

#include "lang/ir.h"
#include "lang/layout_rules.h"

enum { GPU_ACCESS_BYTES = 16 }; /* the widest access of a thread */

static inline unsigned gpu_floor_log2(int64_t value) {
    return 63u - (unsigned)__builtin_clzll((unsigned long long)value);
}
static inline unsigned gpu_least(unsigned a, unsigned b) { return a < b ? a : b; }

/* Vectors and lanes along the last axis, `rows` neighbours of each along the axis before it, warps along the first
 * ones. */
TileLayout gpu_spread(const TileLayoutShape *shape, unsigned log_vector, unsigned log_rows, unsigned log_warps);

typedef struct GpuSurvey {
    const TileType *largest; /* NULL: the function has no tiles */
    unsigned least_bytes;    /* of an element that is loaded or stored */
    bool turns;              /* tiles change the order of their axes */
    bool reduces_rows;       /* whole rows are reduced, as one tile */
    int64_t multiplied;      /* elements of the operands and sums of products by fused multiply-adds */
} GpuSurvey;
GpuSurvey gpu_survey(const TileBlock *body);

#endif
