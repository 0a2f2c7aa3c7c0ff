/* Internals of cpu-vectorise, shared by its files:
 *   stride.c        numbers that strides are likely to be
 *   versions.c      loops for the strides that are likely, and for all others
 *   vector_body.c   a body for many iterations at once
 *   vectorise_fold.c  folds and scans in blocks
 *   vectorise_masks.c  masks that are true for all iterations of a loop
 *   vectorise_chunks.c  a loop as vectors: lanes, main and tail parts, reductions in stripes
 *   vectorise_cost.c  what a loop is, and what its accesses cost
 *   vectorise.c     which loops become vector loops */
#ifndef TILE_CPU_VECTORISE_H
#define TILE_CPU_VECTORISE_H

#include "cpu/passes.h"
#include "lang/ir/build.h"

/* The slopes of values inside one loop (lang/index/index.h), with respect to its induction variable. */
typedef struct TileStrides {
    TileOp *loop;
    TileSlopes slopes;
    bool assumes;                   /* parameters are what they are likely to be (TileParameter); false at first */
    TILE_LIST(TileValue *) assumed; /* those parameters on which some stride rests */
    TileArena *arena;
} TileStrides;

void tile_strides_init(TileStrides *strides, TilePassContext *context, TileOp *loop);
TileSlope tile_stride_of(TileStrides *strides, TileValue *value);

int64_t tile_likely_number(const TileValue *parameter);

/* Emits what becomes of strides->loop, and fills in its results. */
typedef void TileEmitLoop(void *state, TileStrides *strides, TileBuilder *builder, TileValue **results);
/* Replaces the loop. Where its accesses have strides that are likely to be of one element there is code for that, and
 * code for any strides, of which one runs. */
void tile_emit_versions(TilePassContext *context, TileOp *loop, TileEmitLoop *emit, void *state);

/* Iterations base .. base + width of a loop, being emitted as vectors. */
typedef struct TileLanes {
    TilePassContext *context;
    TileStrides *strides;
    TileBuilder builder;
    int64_t width;
    bool scalable;    /* `width` is times vscale; false at first */
    TileValue *mask;  /* active lanes, or NULL: all */
    TileValue *count; /* i64, with a mask: the active lanes are the first `count`; NULL where they are not the first */
    TileMap scalars;  /* value of the body to its value in lane 0, where it is uniform or affine */
    TileMap vectors;  /* value of the body to its vector */
} TileLanes;

void tile_lanes_init(TileLanes *lanes, TilePassContext *context, TileStrides *strides, TileBuilder builder,
                     int64_t width, TileValue *base, TileValue *mask, TileValue *count);
/* Emits all ops of the block but its terminator. */
void tile_lanes_block(TileLanes *lanes, TileBlock *block);
/* The vector of a value of the body, or of any value outside of it. */
TileValue *tile_lanes_vector(TileLanes *lanes, TileValue *value);
/* Can these ops be emitted by tile_lanes_block? Inner loops have uniform bounds and no stripes. */
bool tile_lanes_can(TileStrides *strides, const TileBlock *block);

/* vectorise_cost.c: of a `loop`. An extent that is not known is a great one. */
TileName tile_loop_kind(const TileOp *loop);
int64_t tile_loop_extent(const TileOp *loop);
bool tile_loop_in_stripes(const TileOp *loop);
/* What the block's accesses cost for each iteration of the loop that `strides` follows, and whether some are far
 * apart in neighbouring iterations. */
int64_t tile_access_cost(TileStrides *strides, const TileBlock *block, bool *far);

/* vectorise_chunks.c: strides->loop as vectors, a TileEmitLoop; the state is the pass's context. */
void tile_vectorise_emit(void *state, TileStrides *strides, TileBuilder *builder, TileValue **results);

/* Where masks of a loop's accesses are known before it runs: makes an `if` that asks whether they are true throughout,
 * with a copy of the loop without them, which it returns, and the loop itself. NULL where there are none. */
TileOp *tile_vectorise_split_masks(TilePassContext *context, TileOp *loop);

/* Replaces a fold_loop; false where its body cannot be vectors. */
bool tile_vectorise_fold(TilePassContext *context, TileOp *loop);

/* combine(acc, x) for carried values `first` .. of one way of combining: one value, or with ARG_MAX and ARG_MIN two.
 * Both arrays hold scalars or vectors; the result replaces acc. */
unsigned tile_combine(TileBuilder *builder, TileName how, TileValue **acc, TileValue *const *x);

#endif
