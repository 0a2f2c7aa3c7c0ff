/* Internals of cpu-vectorise, shared by its files:
 *   stride.c            strides, with likely values of parameters
 *   versions.c          loop versioning: for likely strides, and for all others
 *   vector_group.c      accesses of neighbouring elements as full vectors and shuffles
 *   vector_stride.c     loads of every second element, and of elements backward
 *   vector_body.c       a body for several iterations at once
 *   vectorise_fold.c    folds and scans in blocks
 *   vectorise_masks.c   loop versioning: for masks that are true in all iterations
 *   vectorise_wraps.c   loop versioning: for remainders of the index, which rise and begin again
 *   vectorise_clamps.c  loop splitting: for indices that are clamped or mirrored at the borders
 *   vectorise_halve.c   the end of a reduction
 *   vectorise_chunks.c  a vector loop: lanes, main loop and remainder, reductions in stripes
 *   vectorise_cost.c    the kind of a loop, and the cost of its accesses
 *   vectorise.c         which loops are vectorised */
#ifndef TILE_CPU_VECTORISE_H
#define TILE_CPU_VECTORISE_H

#include "cpu/passes.h"
#include "lang/ir/build.h"

/* The slopes of values inside one loop (lang/index/index.h), with respect to its induction variable. */
typedef struct TileStrides {
    TileOp *loop;
    const TileTarget *target;
    TileSlopes slopes;
    bool assumes;                   /* parameters have their likely values (TileParameter); false at first */
    TILE_LIST(TileValue *) assumed; /* the parameters that some stride depends on */
    TileArena *arena;
} TileStrides;

void tile_strides_init(TileStrides *strides, TilePassContext *context, TileOp *loop);
TileSlope tile_stride_of(TileStrides *strides, TileValue *value);

int64_t tile_likely_number(const TileValue *parameter);

/* Emits the code that replaces strides->loop, and fills in its results. */
typedef void TileEmitLoop(void *state, TileStrides *strides, TileBuilder *builder, TileValue **results);
/* Replaces the loop. If its accesses have strides that are likely to be of one element, it is versioned: one version
 * for those strides, one for any. */
void tile_emit_versions(TilePassContext *context, TileOp *loop, TileEmitLoop *emit, void *state);

enum { TILE_GROUP_MEMBERS = 32 };

/* vector_group.c: loads or stores of a block that access neighbouring elements, in the order of memory. */
typedef struct TileGroup {
    TileOp *members[TILE_GROUP_MEMBERS];
    unsigned count;
    unsigned parts; /* the power of two from count on */
    /* false: from lane to lane, addresses grow by `count` elements, so that the lanes together access all elements of a
     * range. true: by another number, so that the elements of each lane are a row by themselves. */
    bool rows;
} TileGroup;

/* The type of what the load or store moves. */
TileScalar tile_access_scalar(const TileOp *op);
/* Are the elements of neighbouring lanes apart in memory, and those of the next iteration or row (`of_next`) neighbours? Then squares of elements can be read by rows, and
 * turned in registers. */
bool tile_access_is_turned(const TileOp *op, TileStrides *of_next, TileStrides *of_lanes);
/* The group of which the access is the first in its block; false: there is none. */
bool tile_group_find(TileStrides *strides, TileOp *first, TileGroup *group);
/* Is the element accessed where *index < *limit? Both NULL: always. `strides`: the index grows with the address from lane to
 * lane, the limit is the same for all. false: the access has another mask. */
bool tile_group_mask(TileStrides *strides, const TileOp *op, TileValue **index, TileValue **limit);
/* Rows of `parts` elements to vectors of `width`, one after the other, and the reverse. `rows` has `width` of them, `vectors`
 * `parts`. */
void tile_group_from_rows(TileBuilder *builder, TileValue *const *rows, unsigned parts, int64_t width, TileValue **vectors);
void tile_group_to_rows(TileBuilder *builder, TileValue *const *vectors, unsigned parts, int64_t width, TileValue **rows);
/* Vectors whose lanes follow one another: the elements of part i of `parts`, every parts-th one from i on, are moved to
 * the i-th count / parts vectors. `count` is a power of two and a multiple of `parts`, the vectors have one length. */
void tile_group_split(TileBuilder *builder, TileValue **vectors, unsigned count, unsigned parts);
/* The reverse. */
void tile_group_merge(TileBuilder *builder, TileValue **vectors, unsigned count, unsigned parts);

/* The same for a few vectors of any number, `count` parts of one vector each. */
void tile_group_split_odd(TileBuilder *builder, TileValue **vectors, unsigned count);
void tile_group_merge_odd(TileBuilder *builder, TileValue **vectors, unsigned count);

/* The iterations base .. base + width of a loop, which are emitted as vectors. */
typedef struct TileLanes {
    TilePassContext *context;
    TileStrides *strides;
    TileBuilder builder;
    int64_t width;
    bool scalable;    /* `width` is multiplied by vscale; false at first */
    TileValue *mask;  /* active lanes, or NULL: all */
    TileValue *count; /* i64, with a mask: the first `count` lanes are active; NULL: other lanes are */
    TileMap scalars;  /* uniform or affine values of the body to their values in lane 0 */
    TileMap vectors;  /* values of the body to their vectors */
    TileMap groups;   /* stores of the body to their groups, which are emitted with the last one */
} TileLanes;

void tile_lanes_init(TileLanes *lanes, TilePassContext *context, TileStrides *strides, TileBuilder builder,
                     int64_t width, TileValue *base, TileValue *mask, TileValue *count);
/* vector_stride.c: are the lanes of such a load two elements apart, or one element backward? */
bool tile_stride_is_short(const TileTarget *target, TileSlope slope, TileScalar scalar);
/* The load of these lanes, the first of which is at the pointer; NULL: the machine has no such mask. */
TileValue *tile_lanes_load_short(TileLanes *lanes, const TileType *type, TileValue *pointer, bool backward, TileValue *mask,
                                 TileValue *fill);
/* Emits all ops of the block but its terminator. */
void tile_lanes_block(TileLanes *lanes, TileBlock *block);
/* The vector of a value of the body, or of any value outside of it. */
TileValue *tile_lanes_vector(TileLanes *lanes, TileValue *value);
/* Can these ops be emitted by tile_lanes_block? Inner loops have uniform bounds and no stripes. */
bool tile_lanes_can(TileStrides *strides, const TileBlock *block);

/* vectorise_cost.c: of a `loop`. An unknown extent counts as a large one. */
TileName tile_loop_kind(const TileOp *loop);
int64_t tile_loop_extent(const TileOp *loop);
bool tile_loop_in_stripes(const TileOp *loop);
/* Are some accesses of the block emitted as groups? */
bool tile_has_groups(TileStrides *strides, const TileBlock *block);
/* The cost of the block's accesses for each iteration of the loop of `strides`; *far: some are not contiguous in
 * neighbouring iterations. */
int64_t tile_access_cost(TileStrides *strides, const TileBlock *block, bool *far);

/* vectorise_halve.c: combines the lanes of `groups` vectors, of `used` values each, until one is left, which replaces the first vector's values. */
typedef struct TileHalving {
    TileValue **parts; /* groups x used */
    unsigned used;     /* 2: a value and its index */
    int64_t groups, width;
} TileHalving;
void tile_halve(TileBuilder *builder, TileName how, const TileHalving *halving);

/* vectorise_chunks.c: vectorises strides->loop, a TileEmitLoop; the state is the pass's context. */
void tile_vectorise_emit(void *state, TileStrides *strides, TileBuilder *builder, TileValue **results);

/* Replaces a value that is certainly true, and what follows from that. */
void tile_value_set_true(TileValue *value, TileValue *yes);

/* If masks of a loop's accesses can be evaluated before the loop, versions it: an `if` on whether they are true in
 * all iterations, with a copy of the loop without masks, which is returned, and the loop itself. NULL: there are no
 * such masks. */
TileOp *tile_vectorise_split_masks(TilePassContext *context, TileOp *loop);

/* If an index of the loop is divided by a number that it does not change, versions it: versions[0] is the inner one of two
 * loops, in which the remainder rises, versions[1] divides in floats, and the loop itself, which takes numbers that are far
 * from 0, is seldom run. */
bool tile_vectorise_split_wraps(TilePassContext *context, TileOp *loop, TileOp **versions);

/* The value, which ops without regions compute of the loop's index, in the iteration of this index. */
TileValue *tile_loop_value_at(TilePassContext *context, const TileOp *loop, TileBuilder *builder, TileValue *value,
                              TileValue *index);

/* Drops the masks that are true within the loop's bounds. */
void tile_loop_drop_masks(TilePassContext *context, TileOp *loop);

/* If an index of the loop is clamped or mirrored at borders, and accesses are cheaper where it is not: splits the loop, which
 * is left with the iterations at borders, and *few, which takes its place where they are few. Returns the loop without these;
 * NULL: there is no such index. */
TileOp *tile_vectorise_split_clamps(TilePassContext *context, TileOp *loop, TileOp **few);
/* The same for masks of accesses that are true between borders; *other is the loop as it was, where it has few iterations. */
TileOp *tile_vectorise_split_borders(TilePassContext *context, TileOp *loop, TileOp **few, TileOp **other);

/* Replaces a fold_loop; false: its body cannot be vectorised. */
bool tile_vectorise_fold(TilePassContext *context, TileOp *loop);

/* combine(acc, x) for the loop-carried values of one combiner: one value, or two for ARG_MAX and ARG_MIN; returns how
 * many. Both arrays hold scalars or vectors; the result replaces acc. */
unsigned tile_combine(TileBuilder *builder, TileName how, TileValue **acc, TileValue *const *x);

#endif
