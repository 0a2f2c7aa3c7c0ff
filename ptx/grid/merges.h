/* How the results of a loop's parts are merged: what becomes of each value that the loop carries, as its body says.
 * Private to ptx/. */
#ifndef TILE_PTX_GRID_MERGES_H
#define TILE_PTX_GRID_MERGES_H

#include "lang/ir/build.h"

typedef enum GpuMergeRule {
    GPU_MERGE_NONE,
    GPU_MERGE_OP,       /* combined by an op that has an identity element: x + v, min(x, v), .. */
    GPU_MERGE_RESCALED, /* a sum of exp(v - top), which exp(old top - top) rescales as the maximum `top` rises */
    GPU_MERGE_CHOICE,   /* replaced where another one is better */
    GPU_MERGE_FOLD,     /* passed through a fold as `init` */
    GPU_MERGE_INDUCTION /* changed by the same number in each iteration: a function of how many there were */
} GpuMergeRule;

/* What exponents subtract is -inf where a part has no other element: then 0 has to stand for it, or -inf - -inf is NaN. */
typedef enum GpuMergeBase {
    GPU_MERGE_BASE_GUARDED, /* the loop itself takes a number for it; or nothing is subtracted */
    GPU_MERGE_BASE_FINITE,  /* the loop begins with a number, so the maximum is never -inf there */
    GPU_MERGE_BASE_BARE     /* the loop begins with -inf: its result is NaN where its first iteration has nothing else */
} GpuMergeBase;

typedef struct GpuMerged {
    GpuMergeRule rule;
    unsigned state;    /* its place among what `state_loop` carries */
    TileName kind;     /* OP: TILE_KIND_* */
    TileValue *factor; /* RESCALED: what rescales it in an iteration */
    GpuMergeBase base; /* OP, of what exponents subtract */
    unsigned key;      /* CHOICE: the carried value that is compared */
    unsigned fold, at; /* FOLD: which of the folds, and which of its results */
} GpuMerged;

/* Behind the carried values stands one for each fold: is there an element? Combiners of users have no identity element. */
typedef struct GpuMerge {
    TileOp *loop, *state_loop;  /* a loop in it, if all but induction variables goes through that; else the same */
    unsigned count, fold_count; /* of carried values; of folds */
    bool simple;                /* all values have a rule OP, each alone, or are induction variables */
    bool inductions;            /* there are such */
    bool tiles;                 /* merged as tiles, one part after the other: they differ in shape */
    int64_t least_trips;        /* that a part should have, so that it does more than merging */
    GpuMerged values[TILE_MAX_FOLD];
    TileOp *folds[TILE_MAX_FOLD];
} GpuMerge;

static inline TileValue *gpu_merge_carried(const GpuMerge *merge, unsigned i) {
    return merge->state_loop->regions[0].arguments[1 + merge->values[i].state];
}
static inline TileValue *gpu_merge_next(const GpuMerge *merge, unsigned i) {
    return tile_op_operand(merge->state_loop->regions[0].last, merge->values[i].state);
}
/* Values that parts leave: those carried, and whether there is an element of each fold. */
static inline unsigned gpu_merge_value_count(const GpuMerge *merge) { return merge->count + merge->fold_count; }

/* Why results of parts of the loop cannot be merged; NULL: they can. */
const char *gpu_merge_find(GpuMerge *merge, TileOp *loop, TileArena *scratch);
/* Merges the results of one part with those of a later one, count + fold_count of each: scalars, or tiles where `tiles`.
 * Those of induction variables are neither read nor written. */
void gpu_merge_build(const GpuMerge *merge, TileBuilder *b, TileArena *scratch, TileValue *const *left,
                     TileValue *const *right, TileValue **result);
/* In the body of a copy of `state_loop`, of which `map` knows the values, exponents subtract 0 where a maximum is -inf,
 * but for those of the first part, `is_first`, where the loop itself would make NaN. */
void gpu_merge_guard(const GpuMerge *merge, TileModule *module, TileMap *map, TileValue *is_first);
/* The type of a value that parts leave. */
const TileType *gpu_merge_type(const GpuMerge *merge, TileContext *context, unsigned i);
/* Replaces `loop`, a copy of the merge's, by one that also carries whether there is an element of each fold. */
TileOp *gpu_merge_carry_presence(const GpuMerge *merge, TileBuilder *b, TileOp *loop);
#endif
