/* How the results of a loop's parts are merged: what becomes of each value that the loop carries, as its body says.
 * Private to ptx/. */
#ifndef TILE_PTX_GRID_MERGES_H
#define TILE_PTX_GRID_MERGES_H

#include "lang/ir/build.h"

typedef enum GpuMergeRule {
    GPU_MERGE_OP,       /* combined by an op that has an identity element: x + v, min(x, v), .. */
    GPU_MERGE_RESCALED, /* a sum of exp(v - top), which exp(old top - top) rescales as the maximum `top` rises */
    GPU_MERGE_CHOICE,   /* replaced where another one is better */
    GPU_MERGE_FOLD,     /* passed through a fold as `init` */
} GpuMergeRule;

typedef struct GpuMerged {
    GpuMergeRule rule;
    TileName kind;     /* OP: TILE_KIND_* */
    TileValue *factor; /* RESCALED: what rescales it in an iteration */
    unsigned key;      /* CHOICE: the carried value that is compared */
    unsigned fold, at; /* FOLD: which of the folds, and which of its results */
} GpuMerged;

/* Behind the carried values stands one for each fold: is there an element? Combiners of users have no identity element.
 */
typedef struct GpuMerge {
    TileOp *loop;
    unsigned count, fold_count; /* of carried values; of folds */
    bool simple;                /* all values have a rule OP, each alone */
    GpuMerged values[TILE_MAX_FOLD];
    TileOp *folds[TILE_MAX_FOLD];
} GpuMerge;

/* Why results of parts of the loop cannot be merged; NULL: they can. */
const char *gpu_merge_find(GpuMerge *merge, TileOp *loop, TileArena *scratch);
/* Merges the results of one part with those of a later one: scalars, count + fold_count of each. */
void gpu_merge_build(const GpuMerge *merge, TileBuilder *b, TileArena *scratch, TileValue *const *left,
                     TileValue *const *right, TileValue **result);
/* Replaces a fold by one that also has, in front of its values, whether there are any: so its init, of which that is
 * `present`, may be none. Returns the new one. */
TileOp *gpu_merge_add_presence(TileBuilder *b, TileOp *fold, TileValue *present);

#endif
