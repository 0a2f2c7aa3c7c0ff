/* Internals of the passes that make loop nests of tiles, shared by their files. cpu-place decides where tiles live,
 * cpu-fuse which statements share loops, and cpu-nest lowers what both decided:
 *   nest_atoms.c       sets of lanes
 *   nest_values.c      validity of tile values, and the values that a statement reads at each point
 *   nest_needs.c       lanes that somebody reads
 *   nest_statements.c  statements and their buffers, and the writes between two ops
 *   nest_bits.c        statements that compute several points of a tile together: which bits of an index are constants
 *   nest_plan.c        the statement of each op that is one, whatever its place
 *   nest_order.c       values that have to be kept
 *   homes.c            where tiles live, as attributes
 *   place_dot.c        products: operands that are read in place, accumulators, instructions
 *   place.c            the pass cpu-place: which values are recomputed at their uses, and which are kept
 *   schedule.c         loop fusion: statements to a tree of loops
 *   loops.c            the loops of statements, as attributes
 *   fuse.c             the pass cpu-fuse: which statements share loops, and which values are in registers between them
 *   nest_sums.c        indices as sums over the open loops
 *   nest_ops.c         scalar ops in the outermost loop in which they can be
 *   pull.c             the value of a tile at one point, as scalar ops
 *   nest_points.c      a statement at one point of its loops
 *   nest_emit.c        a tree of loops to ops
 *   nest_fold.c        folds and scans by combiners
 *   nest_dot.c         products on memory
 *   nest_control.c     regions and loop-carried tiles
 *   nest.c             the pass cpu-nest
 *
 * A tile value is VIRTUAL (recomputed at each point where it is used) or the value of a STATEMENT. A statement has a
 * nest of loops; statements with equal loops share them (fusion). If all readers of a value are in a shared loop, its
 * buffer has no axis for that loop. */
#ifndef TILE_CPU_NEST_H
#define TILE_CPU_NEST_H

#include "cpu/passes.h"
#include "lang/ir/build.h"

enum {
    NEST_LEVELS = TILE_MAX_TILE_RANK + 1,
    NEST_RUNS = 12,                        /* loops of a block of points, at most */
    NEST_OPEN = NEST_LEVELS + NEST_RUNS + 1, /* loops that are open at a time, and the block around them */
    NEST_BITS = TILE_MAX_POINT_BITS,       /* bits of the position of an element in its tile */
    NEST_ATOMS = 6,
    NEST_LONG = 24,   /* ops of one point that are too many to compute twice */
    NEST_POINTS = 32, /* points of one tile that are recomputed for one point of another, at most */
    NEST_DEPTH = 200  /* longest chain of ops that is recomputed at one point */
};

/* Lanes lo <= i < hi; both are i64 values of the old function. `block`: the bounds are rounded outward to multiples of so
 * many lanes, of which the extent is one too; 1: they are not. */
typedef struct NestAtom {
    TileValue *lo, *hi;
    int64_t block;
} NestAtom;

/* The intersection of all atoms. Atoms beyond NEST_ATOMS are dropped; the larger set is safe, since loads are guarded
 * where their loops do not bound them. */
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

/* How each axis of a value is indexed at the points of a statement. */
enum { NEST_FIXED = -1, NEST_OTHER = -2 };
typedef struct NestMap {
    int8_t level[TILE_MAX_TILE_RANK]; /* a level of the statement, NEST_FIXED: index 0, NEST_OTHER: anything */
} NestMap;

/* The position of an element in the row-major order of its tile, in binary: bit i is bit `bit[i]` of the position in
 * the tile of the statement that reads it, or NEST_FIXED: a constant. */
typedef struct NestBits {
    int8_t bit[NEST_BITS];
} NestBits;

/* Points of a tile that statements compute together. They differ in the bits `fixed`, which are constants at each of
 * them; loops run over the other bits of the axes from `first_axis` on, run by run. Statements that read the same
 * values have the same block (`joined`). Without fixed bits, there is no block. */
typedef struct NestBlock {
    struct NestBlock *joined; /* NULL: this one */
    const TileType *type;
    uint32_t may;   /* bits that may be fixed */
    uint32_t fixed;
    uint32_t cuts; /* a value that is read has this bit and the one below it apart: a loop takes one of them */
    unsigned statements;
    unsigned first_axis, run_count; /* axes before it have loops of their own */
    NestLevel runs[NEST_RUNS]; /* the last one is the innermost */
    uint8_t shift[NEST_RUNS];  /* the lowest bit of a run */
    bool decided;              /* the loops are */
} NestBlock;

/* constant + the sum of scale[i] * the index of open[i]. */
typedef struct NestSum {
    int64_t constant, scale[NEST_OPEN];
} NestSum;

typedef struct NestBuffer {
    TileScalar scalar;                  /* as stored: a bool is a byte */
    int64_t stride[TILE_MAX_TILE_RANK]; /* bytes */
    TileValue *pointer;                 /* new function; NULL until it is built */
    int64_t bytes;
    bool passing; /* each iteration of the loops around its accesses stores what it loads */
} NestBuffer;

typedef enum NestStatementKind {
    NEST_SCALAR, /* an op on scalars that depends on a statement */
    NEST_READ,   /* a region op or terminator that reads one-element tiles; emitted with its op */
    NEST_STORE,
    NEST_ATOMIC, /* in its own loops, lane by lane */
    NEST_REDUCE,
    NEST_ARG_REDUCE,
    NEST_FOLD,
    NEST_SCAN,
    NEST_PART, /* a further result of a fold or scan, whose statement computes it */
    NEST_KEEP, /* a value that is computed once and stored */
    NEST_COPY, /* values copied to buffers: at each point all are read before any is written */
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
    TileValue *value; /* without permutations and fills; a load that is read in place, or a kept value */
    bool view;                           /* a load that is read in place */
    NestBuffer *copy;                    /* a copy of a value that no op defines */
    int8_t axis[TILE_MAX_TILE_RANK];     /* operand axis to axis of `value` */
    NestAtoms atoms[TILE_MAX_TILE_RANK]; /* by axis of the operand */
} NestOperand;

struct NestStatement {
    NestStatementKind kind;
    NestStatement *next; /* of the same op */
    TileOp *op;
    TileValue *value;     /* old function; NULL for stores and copies */
    NestStatement *whole; /* parts: the fold or scan */
    bool masked;          /* folds and scans: the bounds of the loop are not the whole mask */
    NestCopy *copies;
    unsigned copy_count;
    bool accumulator; /* copies: of a dot's accumulator, not of its operands */
    NestOperand a, b; /* dot */
    NestLevel levels[NEST_LEVELS];
    int8_t axis[NEST_LEVELS]; /* by level: the axis of the operand (reductions, scans) or of the value */
    unsigned level_count, parallel_count;
    NestNode *nodes[NEST_LEVELS + 1]; /* its loops, and the node of its block of points */
    const int64_t *path; /* cpu-nest: the numbers of these; NULL: they are chosen */
    TILE_LIST(NestStatement *) consumers;
    TILE_LIST(NestLeaf) leaves;
    NestBuffer *buffer; /* of the value; NULL: none */
    TileName home;      /* cpu-fuse: of the value */
    unsigned shared;    /* beside a buffer: loops in which all readers are */
    NestBlock *block;   /* NULL: one point at a time */
    bool pending;       /* in the current batch */
};

/* A node of the tree: a loop, or a statement inside all of its loops. */
struct NestNode {
    NestNode *parent;
    int64_t number; /* of the loop in the function */
    NestStatement *statement; /* NULL: a loop */
    const NestBlock *block;   /* of all statements below it, which are computed point by point; NULL: there is none */
    NestLevel level;
    TILE_LIST(NestNode *) children;
    bool lanes;   /* a function of each row: rows are lanes, as long as they share the loop with nothing that has loops */
};

typedef struct NestMemo {
    uint32_t number; /* of the old value */
    int32_t next;    /* older entry of the same value + 1 */
    TileValue *index[TILE_MAX_TILE_RANK];
    TileValue *value;
} NestMemo;

/* Information on each value of the old function, by its number. */
typedef struct NestInfo {
    NestStatement *statement; /* that computes it */
    NestBuffer *slot;         /* loop-carried tiles: the buffer that holds it throughout the loop */
    TileValue *mapped;        /* scalars: the new value */
    struct NestTensor *tensor;
    NestStatement *puller; /* placement: a statement that reads it at points */
    bool many;             /* placement: more than one statement does */
    NestBits *bits;        /* placement: the positions at which the statements of one block read it */
    NestBlock *bits_of;    /* and that block */
    bool scattered;        /* placement: other statements read it, or at other positions */
    uint32_t position, stamp, depth, weight;
    uint32_t same, moved; /* placement: points that are read for one point of a reader, see `mark` */
    int32_t memo;         /* newest entry + 1 */
    NestAtoms *atoms;     /* by axis */
    NestAtoms *needs;     /* by axis: bounds that all readers have in common; NULL: nobody reads it */
    bool multiplied;      /* a dot depends on it */
    NestMap leaf_map;     /* map of the visit that `stamp` names */
} NestInfo;

typedef struct NestTensor {
    TileValue *parameter; /* of the new function; `pointer` is that, or a buffer */
    TileParameter facts;
    TileValue *pointer, *dim[TILE_MAX_TENSOR_RANK], *stride[TILE_MAX_TENSOR_RANK];
    const TileType *type; /* the old type */
} NestTensor;

/* The positions in program order of a tensor's store_tile and atomic_tile ops. */
typedef struct NestWrites {
    const TileValue *tensor;
    TILE_LIST(uint32_t) positions; /* ascending */
} NestWrites;

/* Positions of an op and of the last one inside it. */
typedef struct NestSpan {
    uint32_t first, last;
} NestSpan;

/* A loop of the new function that is being filled. */
typedef struct NestOpen {
    TileBlock *block;
    TileOp *loop;
    TileValue *index; /* of lanes */
    const NestLevel *level;
    uint32_t memo_count, sum_count; /* entries when it was opened */
} NestOpen;

/* A sum and its value, so that equal indices are the same value. */
typedef struct NestKnown {
    NestSum sum;
    TileValue *value;
} NestKnown;

/* An index of the new function that is within bounds only if the bool is true; loads at it are guarded. */
typedef struct NestLoose {
    TileValue *index, *inside;
} NestLoose;

typedef struct Nest {
    TilePassContext *context;
    TileModule *module;
    TileArena *arena;
    TileFunc *func;
    TileBlock *body; /* ops in tile form */
    TileBlock old;   /* cpu-nest: these, while the function is filled with others */
    NestInfo *infos;
    uint32_t value_count, stamp, position;
    TileMap statements; /* op to NestStatement */
    TILE_LIST(NestStatement *) all;
    TILE_LIST(NestWrites) writes; /* one for each tensor that is written */
    TileMap spans; /* op to NestSpan */
    TILE_LIST(NestMemo) memo;
    TILE_LIST(NestKnown) sums;
    TileMap constants; /* of the new function: an i64 to its value */
    TILE_LIST(NestLoose) loose;
    NestOpen open[NEST_OPEN];
    unsigned open_count; /* loops; open[0] is the block around them */
    NestNode root;
    const NestStatement *current; /* the one that is being emitted */
    TILE_LIST(NestStatement *) batch;
    TileBlock entry; /* new function: constants and buffers, before all else */
    int64_t loops; /* cpu-fuse: how many there are */
    bool changed; /* cpu-place, cpu-fuse: an attribute is another one */
    bool lowers; /* cpu-nest: its remarks tell orders of reductions */
    const char *failure;
} Nest;

static inline NestInfo *nest_info(Nest *n, const TileValue *value) { return &n->infos[value->number]; }
static inline unsigned nest_rank(const TileType *type) { return tile_type_is_tile(type) ? type->rank : 0; }

/* ---- nest_sums.c ---- */

/* The value as a sum; false: it is none. */
bool nest_sum(const Nest *n, const TileValue *value, NestSum *sum);
bool nest_sum_add(NestSum *sum, const NestSum *more, int64_t scale);
/* sum = quotient * divisor + rest, where 0 <= rest < divisor; false: such sums are not known. */
bool nest_sum_split(const Nest *n, const NestSum *sum, int64_t divisor, NestSum *quotient, NestSum *rest);

/* Between which numbers the sum is, whatever the loops' indices are; false: not known. */
bool nest_sum_range(const Nest *n, const NestSum *sum, int64_t *least, int64_t *greatest);

/* x op y as a sum; false: it is none, or not known. */
bool nest_sum_apply(const Nest *n, TileOpId id, const NestSum *x, int64_t y, NestSum *result);

/* ---- nest_atoms.c ---- */

bool nest_atoms_have(const NestAtoms *atoms, const NestAtom *atom);
bool nest_atoms_equal(const NestAtoms *a, const NestAtoms *b);
/* Adds an atom, unless it holds for all lanes. */
void nest_atoms_add(NestAtoms *atoms, TileValue *lo, TileValue *hi, int64_t extent);
void nest_atoms_add_atom(NestAtoms *atoms, const NestAtom *atom, int64_t extent);
void nest_atoms_join(NestAtoms *atoms, const NestAtoms *more, int64_t extent);
/* The next axes of both types that hold the same lanes: both numbers move behind them. */
void nest_reshape_group(const TileType *from, const TileType *to, unsigned *from_axis, unsigned *to_axis);
/* For each axis of a reshape's operand the axis of the result that holds the same lanes, or one of these; false: some are regrouped. */
enum { NEST_ONE_LANE = -1, NEST_REGROUPED = -2 /* its lanes and those of its neighbours are on other axes of the result */ };
bool nest_reshape_map(const TileType *from, const TileType *to, int8_t *axis);

/* ---- nest_needs.c ---- */

/* Finds the lanes of each tile that somebody reads. */
void nest_find_needs(Nest *n);
/* Adds the bounds of these lanes that are known at the op (NULL: that which defines the value). */
void nest_join_needs(Nest *n, const TileValue *value, const TileOp *at, NestAtoms *atoms);

/* ---- nest_values.c ---- */

/* The validity of a value, and the lanes that are read: one entry for each axis. Lanes outside are poison. */
const NestAtoms *nest_atoms(Nest *n, TileValue *value);
/* Has the tile a single lane, which is held in a scalar? */
bool nest_is_single(const TileType *type);
/* Adds a level for each axis but `skip`, unless it has a single lane that is certainly valid. */
void nest_levels(NestStatement *s, const TileType *type, const NestAtoms *atoms, int skip);
void nest_store_levels(NestStatement *s);
void nest_atomic_levels(NestStatement *s);
void nest_copy_levels(Nest *n, NestStatement *s);
void nest_reduce_levels(Nest *n, NestStatement *s);
void nest_fold_levels(Nest *n, NestStatement *s);
/* Has the statement a value for each point of the last loop, too? */
bool nest_is_scan(const NestStatement *s);
/* Are the op's regions control flow, and not a combiner? */
static inline bool nest_has_blocks(const TileOp *op) { return op->region_count && !tile_op_combiner(op); }
/* Does a copy read, at another point than it writes, a buffer that copies of the same op write? */
bool nest_copy_crosses(Nest *n, const NestStatement *s, unsigned copy);
NestMap nest_map(const NestStatement *s, unsigned rank);
/* Is every axis of the value indexed by the statement's own level? */
bool nest_map_is_identity(const NestStatement *s, const NestMap *map, unsigned rank);
/* Collects s->leaves: values of statements, loop-carried tiles, loads, scalars. */
void nest_collect_leaves(Nest *n, NestStatement *s);

/* ---- nest_statements.c ---- */
NestStatement *nest_statement(Nest *n, NestStatementKind kind, TileOp *op, TileValue *value);
/* Makes the value a statement, unless it is one. */
void nest_keep(Nest *n, TileValue *value);
/* `collapsed`: the set of axes along which all lanes share one element. */
NestBuffer *nest_buffer(Nest *n, const TileType *type, unsigned collapsed);
/* Gives the statement's value a buffer that has no axis for the outermost `shared` loops. */
void nest_give_buffer(Nest *n, NestStatement *s, unsigned shared);
/* How many outer loops the two share. */
unsigned nest_shared_loops(const NestStatement *s, const NestStatement *other);
/* Might writing one tensor change the other? */
bool nest_tensors_overlap(Nest *n, const TileValue *a, const TileValue *b);
/* Do both store to one tensor, and never to one element of it, since their indices of one dimension are never equal? */
bool nest_stores_are_apart(const TileOp *a, const TileOp *b);
/* May a store between the load and `at` change the result of the load? */
bool nest_is_clobbered(Nest *n, const TileValue *load, const TileOp *at);

/* ---- nest_bits.c ---- */

/* Lets the statement compute several points of its tile together, if it can. */
void nest_bits_start(Nest *n, NestStatement *s);
/* Each position is read at itself. */
NestBits nest_bits_own(void);
/* Is the value read by the statements of one block of points, all at the same positions? */
bool nest_bits_together(const Nest *n, const TileValue *value);
/* Does a block of points read it, and others too, or the block at several positions? */
bool nest_bits_apart(const Nest *n, const TileValue *value);
/* How many positions of the value one point of its statements reads. */
unsigned nest_bits_positions(const Nest *n, const TileValue *value);
/* The positions at which an op reads an operand, if its result is read at those of `bits`; false: not known. */
bool nest_bits_through(const TileOp *op, unsigned operand, const NestBits *bits, NestBits *read);
/* Does `cat` choose by one bit of a position? */
bool nest_bits_halves(const TileOp *cat);
/* Notes that the block reads the value there; false: it is read at other positions, too. */
bool nest_bits_mark(Nest *n, TileValue *value, NestBlock *block, const NestBits *bits);
/* Makes constants of the bits that have to be, so that the op can be computed together with its reader; false: they
 * would be too many. */
bool nest_bits_fix(Nest *n, const TileOp *op);
NestBlock *nest_block_of(const NestStatement *s);
/* Decides on the block's loops, after placement. */
void nest_bits_finish(Nest *n);

/* The block that computes the points of these bits together, with these loops over the others: their lowest bits. */
NestBlock *nest_block_with(Nest *n, const NestStatement *s, uint32_t fixed, const int64_t *runs, unsigned count);

/* ---- nest_plan.c ---- */

/* A fill of zeros, of either sign, along the contracted axis of a product. */
typedef struct NestFill {
    TileOp *op; /* NULL: there is none */
    NestAtoms bounds;
    bool negative, only; /* the sign of 0; along no other axis */
} NestFill;

/* Numbers the values and the positions of the function in tile form. */
Nest nest_create(TilePassContext *context, TileFunc *func);
/* Notes the facts of tensors, which is all that is asked of them in tile form. */
void nest_describe_tensors(Nest *n);
/* Makes the statements of the op. */
void nest_plan_op(Nest *n, TileOp *op);
NestFill nest_contracted_fill(const TileValue *value, unsigned axis);
/* May the loop over k leave out what both fill? */
bool nest_left_out(const NestFill *a, const NestFill *b);
/* The operand of a product: without the fill, if the loops replace it entirely; then behind permutations. */
TileValue *nest_without(const NestFill *fill, TileValue *value);
TileValue *nest_operand_of(Nest *n, TileValue *value, int8_t *axis);
/* Drops copies of values that are in the buffer to which they would be copied. */
void nest_drop_copies(Nest *n);
/* Finds the loops of all statements and the values that they read. */
void nest_analyse(Nest *n);
void nest_collect_consumers(Nest *n);

/* ---- nest_order.c ---- */
typedef void (*NestFound)(Nest *n, TileValue *value, const char *why);
/* Values at which a chain of ops that are recomputed is too long. */
void nest_find_deep(Nest *n, NestFound found);
/* Values that something overwrites before their readers are computed; after nest_analyse. */
void nest_find_overwritten(Nest *n, NestFound found);

/* ---- homes.c ---- */
/* Sets an attribute, unless it is set. */
void nest_say(Nest *n, TileOp *op, TileAttributeKey key, int64_t value);
void nest_say_list(Nest *n, TileOp *op, TileAttributeKey key, const int64_t *values, unsigned count);
void nest_write_homes(Nest *n);
/* Makes the statements that the attributes tell, with their loops and readers. */
void nest_read_homes(Nest *n);
/* Puts a result of a loop or branch, and what the loop carries for it, into the buffer. */
void nest_set_slot(Nest *n, TileOp *op, unsigned result, NestBuffer *slot);

/* ---- place_dot.c ---- */
/* Decides how the product reads its operands, and by which instruction it is computed. */
void nest_place_dot(Nest *n, TileOp *dot);
/* Chooses the buffers in which dots accumulate. */
void nest_join_dots(Nest *n);

/* ---- nest_dot.c ---- */
void nest_emit_dot(Nest *n, NestStatement *s);
/* The memory of a value that is computed only to be an operand of a dot: a panel of it. NULL: it is no such value. */
NestBuffer *nest_dot_panel(Nest *n, const NestStatement *s);

/* ---- schedule.c ---- */
/* The op's statements, or those that are copies; an op on scalars that depends on the batch, which follows there. */
void nest_schedule_op(Nest *n, const TileOp *op);
void nest_schedule_copies(Nest *n, const TileOp *op);
bool nest_is_scalar_op(const Nest *n, const TileOp *op);
bool nest_schedule_scalar(Nest *n, TileOp *op);
/* Is it emitted behind all that is scheduled? */
bool nest_ends_batch(Nest *n, const TileOp *op);
bool nest_batch_is_full(const Nest *n);
void nest_end_batch(Nest *n);
/* In how many loops around the statement all readers of its value are; *registers: in all, and none reads memory. */
unsigned nest_loops_with_readers(const NestStatement *s, bool *registers);

/* ---- loops.c ---- */
void nest_write_loops(Nest *n);
/* Reads the loops and buffers of all statements, and erases what was said of them. */
void nest_read_loops(Nest *n);

/* ---- nest_ops.c ---- */
TileValue *nest_constant(Nest *n, int64_t value);
/* The number of the open loop in which the value is defined; a builder at the end of one, or in front of the loop inside of
 * it; one at the outermost loop in which all of the values are defined. */
unsigned nest_level(const Nest *n, const TileValue *value);
TileBuilder nest_builder_at(Nest *n, unsigned level, const TileOp *like);
TileBuilder nest_builder(Nest *n, TileValue *const *values, unsigned count, const TileOp *like);
/* Builds an op on i64, and folds constants. */
TileValue *nest_binary(Nest *n, TileOpId id, TileValue *x, TileValue *y);
TileValue *nest_offset(Nest *n, TileValue *pointer, TileValue *bytes);
TileValue *nest_bits(Nest *n, TileScalar scalar, uint64_t bits);
/* Any op on scalars, with the attributes of `like`. */
TileValue *nest_op(Nest *n, TileOpId id, TileValue *const *operands, unsigned count, TileScalar result,
                   const TileOp *like);
TileValue *nest_scalar(Nest *n, TileValue *value);

/* ---- pull.c ---- */
TileValue *nest_pull(Nest *n, TileValue *value, TileValue *const *index);
/* The same for the statement that computes a kept value. */
TileValue *nest_compute(Nest *n, TileValue *value, TileValue *const *index);
/* The value of a sum. */
TileValue *nest_sum_value(Nest *n, const NestSum *sum);
void nest_remember(Nest *n, TileValue *value, TileValue *const *index, TileValue *result);
void nest_forget(Nest *n, uint32_t count);
TileValue *nest_buffer_address(Nest *n, NestBuffer *buffer, unsigned rank, TileValue *const *index);
TileValue *nest_buffer_pointer(Nest *n, NestBuffer *buffer);
/* The value of a load of rank 0, loaded at the current position. */
TileValue *nest_load_scalar(Nest *n, TileValue *value);
/* The address of a point of an access; *mask is NULL if it is certainly in bounds; both are valid in open[*level]. */
TileValue *nest_address(Nest *n, const TileOp *op, TileValue *const *index, TileValue **mask, unsigned *level);
TileValue *nest_stride(Nest *n, const TileValue *tensor, unsigned dimension);
void nest_bounds(Nest *n, const NestAtoms *atoms, int64_t extent, TileValue **lo, TileValue **hi);
/* Stores are emitted in the innermost open loop. */
void nest_store(Nest *n, TileValue *value, TileValue *address, TileValue *mask, const TileOp *like);
/* The value's index at the current point of the open loops. */
void nest_point(Nest *n, const NestStatement *s, unsigned rank, TileValue **index);
TileValue *nest_first_lane(Nest *n, TileValue *value);

/* ---- nest_points.c ---- */
/* Defines the statement's value at the current point of the open loops. */
void nest_define(Nest *n, NestStatement *s, TileValue *const *index, TileValue *result);
/* Clones an op on scalars into the new function. */
void nest_emit_scalar(Nest *n, TileOp *op);
/* Emits the statements of a block, all points of one iteration of its loops together. */
void nest_emit_block(Nest *n, const NestNode *node);
/* Emits a statement inside of its loops; not for reductions, folds and scans. */
void nest_emit_statement(Nest *n, NestStatement *s);

/* ---- nest_emit.c ---- */
void nest_flush(Nest *n);

/* ---- nest_fold.c ---- */
bool nest_is_fold(const NestNode *node);
void nest_emit_fold(Nest *n, const NestNode *node);

/* ---- nest_control.c ---- */
void nest_block(Nest *n, TileBlock *old, TileBlock *block);

#endif
