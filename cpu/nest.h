/* Internals of cpu-nest, shared by its files:
 *   nest_values.c    where tile values are valid, and what a statement reads at which of its points
 *   place.c          which values are computed where they are used, and which are kept
 *   schedule.c       statements to a tree of loops: fusion
 *   pull.c           the value of a tile at one point, as scalar ops
 *   nest_emit.c      a tree of loops to ops
 *   nest_fold.c      folds and scans by combiners
 *   nest_dot.c       operands and accumulators of dot
 *   nest_control.c   regions and carried tiles
 *   nest.c           the pass
 *
 * A tile value is VIRTUAL (computed again at each point where it is used) or the value of a STATEMENT. A statement
 * has a nest of loops; statements whose loops agree share them, and a value that all its readers meet inside a shared
 * loop needs no memory along that axis. */
#ifndef TILE_CPU_NEST_H
#define TILE_CPU_NEST_H

#include "cpu/passes.h"
#include "lang/ir/build.h"

enum {
    NEST_LEVELS = TILE_MAX_TILE_RANK + 1,
    NEST_ATOMS = 6,
    NEST_LONG = 24,   /* ops at one point that are not worth doing twice */
    NEST_POINTS = 32, /* points of one tile that are computed for one point of another */
    NEST_DEPTH = 200  /* longest chain of ops that is computed at one point */
};

/* Lanes lo <= i < hi; both are i64 values of the old function. */
typedef struct NestAtom {
    TileValue *lo, *hi;
} NestAtom;

/* Lanes inside of all atoms. More than NEST_ATOMS of them widen the set, which is always allowed: loads guard
 * themselves where the loops around them do not. */
typedef struct NestAtoms {
    unsigned count;
    NestAtom items[NEST_ATOMS];
} NestAtoms;

typedef struct NestLevel {
    int64_t extent;
    NestAtoms atoms;
    TileName kind; /* TILE_LOOP_KIND_* */
    TileName order;
} NestLevel;

/* Where each axis of a value comes from at the points of a statement. */
enum { NEST_FIXED = -1, NEST_OTHER = -2 };
typedef struct NestMap {
    int8_t level[TILE_MAX_TILE_RANK]; /* a level of the statement, NEST_FIXED: index 0, NEST_OTHER: anything */
} NestMap;

typedef struct NestBuffer {
    TileScalar scalar;                  /* as stored: a bool is a byte */
    int64_t stride[TILE_MAX_TILE_RANK]; /* bytes */
    TileValue *pointer;                 /* new function; NULL until it is made */
    int64_t bytes;
} NestBuffer;

typedef enum NestStatementKind {
    NEST_SCALAR, /* an op on scalars that waits for a statement */
    NEST_READ,   /* a region op or terminator that reads one-element tiles; emitted with its op */
    NEST_STORE,
    NEST_ATOMIC, /* in loops of its own, lane by lane */
    NEST_REDUCE,
    NEST_ARG_REDUCE,
    NEST_FOLD,
    NEST_SCAN,
    NEST_PART, /* a further result of a fold or scan, whose statement computes it */
    NEST_KEEP, /* a value that is computed once and read later */
    NEST_COPY, /* values into buffers, all read before any is written */
    NEST_DOT,
    NEST_PRINT
} NestStatementKind;

typedef struct NestStatement NestStatement;
typedef struct NestNode NestNode;

typedef struct NestCopy {
    TileValue *value;
    NestBuffer *to;
} NestCopy;

typedef struct NestLeaf {
    TileValue *value;
    NestMap map;
} NestLeaf;

/* An operand of dot: read in place from a tensor, or from a buffer. */
typedef struct NestOperand {
    TileValue *value;                    /* without permutes and fills; a load that is read in place, or a kept value */
    bool view;                           /* a load that is read in place */
    NestBuffer *copy;                    /* where a value that no op computes is copied to */
    int8_t axis[TILE_MAX_TILE_RANK];     /* operand axis to axis of `value` */
    NestAtoms atoms[TILE_MAX_TILE_RANK]; /* by axis of the operand */
} NestOperand;

struct NestStatement {
    NestStatementKind kind;
    NestStatement *next; /* of the same op */
    TileOp *op;
    TileValue *value;     /* old function; NULL for stores and copies */
    NestStatement *whole; /* parts: the fold or scan */
    bool masked;          /* folds and scans: elements are left out within the bounds of the loop, too */
    NestCopy *copies;
    unsigned copy_count;
    bool accumulator; /* copies: of what a dot adds to, not of its operands */
    NestOperand a, b; /* dot */
    NestLevel levels[NEST_LEVELS];
    int8_t axis[NEST_LEVELS]; /* axis of the operand (reductions, scans) or of the value that the level runs over */
    unsigned level_count, parallel_count;
    NestNode *nodes[NEST_LEVELS + 1];
    TILE_LIST(NestStatement *) consumers;
    TILE_LIST(NestLeaf) leaves;
    NestBuffer *buffer; /* where the value is kept, NULL: nowhere */
    bool pending;       /* in the batch that is being built */
};

/* A loop, or a statement inside all its loops. */
struct NestNode {
    NestNode *parent;
    NestStatement *statement; /* NULL: a loop */
    NestLevel level;
    TILE_LIST(NestNode *) children;
};

typedef struct NestMemo {
    uint32_t number; /* of the old value */
    int32_t next;    /* older entry of the same value + 1 */
    TileValue *index[TILE_MAX_TILE_RANK];
    TileValue *value;
} NestMemo;

/* What is known of each value of the old function, by its number. */
typedef struct NestInfo {
    NestStatement *statement; /* that computes it */
    NestBuffer *slot;         /* carried tiles: the buffer that holds it while the loop runs */
    TileValue *mapped;        /* scalars: the new value */
    struct NestTensor *tensor;
    NestStatement *puller; /* placement: a statement that reads it at points */
    bool many;             /* placement: more than one does */
    uint32_t position, stamp, depth, weight;
    uint32_t same, moved; /* placement: at how many points it is read for one of those who read it, see `mark` */
    int32_t memo;         /* newest entry + 1 */
    NestAtoms *atoms;     /* by axis */
    NestMap leaf_map;     /* map of the visit that `stamp` names */
} NestInfo;

typedef struct NestTensor {
    TileParameter *parameter; /* new function */
    TileParameter facts;
    TileValue *pointer, *dim[TILE_MAX_TENSOR_RANK], *stride[TILE_MAX_TENSOR_RANK];
    const TileType *type; /* the old type */
} NestTensor;

/* Where in the order of the text a store_tile or atomic_tile of the tensor stands. */
typedef struct NestWrites {
    const TileValue *tensor;
    TILE_LIST(uint32_t) positions; /* in order */
} NestWrites;

/* Positions of an op and of the last one inside it. */
typedef struct NestSpan {
    uint32_t first, last;
} NestSpan;

/* A loop of the new function that is being filled. */
typedef struct NestOpen {
    TileBlock *block;
    TileOp *loop;
    TileValue *index; /* what lanes are numbered by */
    const NestLevel *level;
    uint32_t memo_count; /* entries when it was opened */
} NestOpen;

/* An index of the new function that lies inside its axis only where the bool is true: nothing is read elsewhere. */
typedef struct NestLoose {
    TileValue *index, *inside;
} NestLoose;

typedef struct Nest {
    TilePassContext *context;
    TileModule *module;
    TileArena *arena;
    TileFunc *func;
    TileBlock old;
    NestInfo *infos;
    uint32_t value_count, stamp, position;
    TileMap statements; /* op to NestStatement */
    TILE_LIST(NestStatement *) all;
    TILE_LIST(NestWrites) writes; /* one for each tensor that is written */
    TileMap spans; /* op to NestSpan */
    TILE_LIST(NestMemo) memo;
    TileMap constants; /* of the new function: an i64 to its value */
    TILE_LIST(NestLoose) loose;
    NestOpen open[NEST_LEVELS + 1];
    unsigned open_count; /* loops; open[0] is the block around them */
    NestNode root;
    const NestStatement *current; /* that is being emitted */
    TILE_LIST(NestStatement *) batch;
    TileBlock entry; /* new function: constants and buffers, before all else */
    const char *failure;
} Nest;

static inline NestInfo *nest_info(Nest *n, const TileValue *value) { return &n->infos[value->number]; }

/* ---- nest_values.c ---- */

bool nest_atoms_equal(const NestAtoms *a, const NestAtoms *b);
/* Leaves out what holds for all lanes anyway. */
void nest_atoms_add(NestAtoms *atoms, TileValue *lo, TileValue *hi, int64_t extent);
void nest_atoms_join(NestAtoms *atoms, const NestAtoms *more, int64_t extent);
/* Lanes outside are poison: one entry for each axis. */
const NestAtoms *nest_atoms(Nest *n, TileValue *value);
/* Every axis has extent 1: one lane, held in a scalar. */
bool nest_is_single(const TileType *type);
/* A level for each axis that is not a single lane known to be valid. */
void nest_levels(NestStatement *s, const TileType *type, const NestAtoms *atoms, int skip);
void nest_store_levels(NestStatement *s);
void nest_copy_levels(Nest *n, NestStatement *s);
void nest_reduce_levels(Nest *n, NestStatement *s);
void nest_fold_levels(Nest *n, NestStatement *s);
/* Is there a value for each point of the last loop, too? */
bool nest_is_scan(const NestStatement *s);
/* Control flow, not a combiner. */
static inline bool nest_has_blocks(const TileOp *op) { return op->region_count && !tile_op_combiner(op); }
/* Does a copy read a buffer that copies of the same place write, other than at the point itself? */
bool nest_copy_crosses(Nest *n, const NestStatement *s, unsigned copy);
NestMap nest_map(const NestStatement *s, unsigned rank);
/* Is every axis of the value at the statement's point itself? */
bool nest_map_is_identity(const NestStatement *s, const NestMap *map, unsigned rank);
/* Index maps of reshapes that only add and drop axes of extent 1: axis of the operand to axis of the result or
 * -1; false for others. */
bool nest_reshape_map(const TileType *from, const TileType *to, int8_t *axis);
/* Fills s->leaves: values of statements, carried tiles, loads, scalars. */
void nest_collect_leaves(Nest *n, NestStatement *s);

/* ---- place.c ---- */
void nest_place(Nest *n);
NestStatement *nest_statement(Nest *n, NestStatementKind kind, TileOp *op, TileValue *value);
/* Might writing one tensor change the other? */
bool nest_tensors_overlap(Nest *n, const TileValue *a, const TileValue *b);
/* Might a store between the load and `at` change what it reads? */
bool nest_is_clobbered(Nest *n, const TileValue *load, const TileOp *at);
/* Makes a statement of a value that is none yet. */
void nest_keep(Nest *n, TileValue *value);

/* ---- nest_dot.c ---- */
void nest_plan_dot(Nest *n, TileOp *op);
/* Chooses the buffers that dots accumulate in. */
void nest_join_dots(Nest *n);
void nest_emit_dot(Nest *n, NestStatement *s);

/* ---- schedule.c ---- */
void nest_schedule(Nest *n, NestStatement *s);
/* How many of the outer loops the two have in common. */
unsigned nest_shared_loops(const NestStatement *s, const NestStatement *other);
/* Sizes the buffers of the values that the batch computes. */
void nest_store_batch(Nest *n);

/* ---- pull.c ---- */
TileValue *nest_constant(Nest *n, int64_t value);
/* A builder at the outermost place where all of the values exist. */
TileBuilder nest_builder(Nest *n, TileValue *const *values, unsigned count, const TileOp *like);
/* On i64, folding what is constant. */
TileValue *nest_binary(Nest *n, TileOpId id, TileValue *x, TileValue *y);
TileValue *nest_offset(Nest *n, TileValue *pointer, TileValue *bytes);
TileValue *nest_bits(Nest *n, TileScalar scalar, uint64_t bits);
/* Any op on scalars, with the attributes of `like`. */
TileValue *nest_op(Nest *n, TileOpId id, TileValue *const *operands, unsigned count, TileScalar result,
                   const TileOp *like);
TileValue *nest_scalar(Nest *n, TileValue *value);
TileValue *nest_pull(Nest *n, TileValue *value, TileValue *const *index);
/* The same, for the statement that computes a kept value. */
TileValue *nest_compute(Nest *n, TileValue *value, TileValue *const *index);
void nest_remember(Nest *n, TileValue *value, TileValue *const *index, TileValue *result);
void nest_forget(Nest *n, uint32_t count);
TileValue *nest_buffer_address(Nest *n, NestBuffer *buffer, unsigned rank, TileValue *const *index);
TileValue *nest_buffer_pointer(Nest *n, NestBuffer *buffer);
/* `collapsed`: set of axes along which one place serves all lanes. */
NestBuffer *nest_buffer(Nest *n, const TileType *type, unsigned collapsed);
/* The value of a load of rank 0, read where the function stands. */
TileValue *nest_load_scalar(Nest *n, TileValue *value);
/* Address of a point of an access; *mask is NULL where it is known to be inside, and that holds in open[*level]. */
TileValue *nest_address(Nest *n, const TileOp *op, TileValue *const *index, TileValue **mask, unsigned *level);
TileValue *nest_stride(Nest *n, const TileValue *tensor, unsigned dimension);
void nest_bounds(Nest *n, const NestAtoms *atoms, int64_t extent, TileValue **lo, TileValue **hi);
/* Stores stay in the innermost loop that is open. */
void nest_store(Nest *n, TileValue *value, TileValue *address, TileValue *mask, const TileOp *like);
/* The value's index at the point that the open loops are at. */
void nest_point(Nest *n, const NestStatement *s, unsigned rank, TileValue **index);

/* ---- nest_emit.c ---- */
void nest_flush(Nest *n);
/* A statement inside of its loops; not for reductions, folds and scans. */
void nest_emit_statement(Nest *n, NestStatement *s);
/* A value that the statement has computed, at the point where the open loops are. */
void nest_define(Nest *n, NestStatement *s, TileValue *const *index, TileValue *result);

/* ---- nest_fold.c ---- */
bool nest_is_fold(const NestNode *node);
void nest_emit_fold(Nest *n, const NestNode *node);

/* ---- nest_control.c ---- */
void nest_block(Nest *n, TileBlock *old, TileBlock *block);
/* An op on scalars, moved to the new function. */
void nest_emit_scalar(Nest *n, TileOp *op);

#endif
