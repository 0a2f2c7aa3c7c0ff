/* Internals of gpu-machine, shared by its files:
 *   registers.c      what all ask: registers, indices, predicates
 *   parameters.c     the parameters in machine form
 *   machine.c        the pass: blocks, control
 *   values.c         elementwise ops, constants, shapes
 *   access.c         load_tile and store_tile
 *   updates.c        atomic_tile
 *   collected.c      updates that a block collects in shared memory
 *   store_order.c    which stores need barriers around them
 *   transfer.c       values from thread to thread
 *   exchanges.c      conversions of narrow elements between lanes
 *   move.c           conversions between layouts
 *   reduce.c         reductions
 *   fold.c           folds and scans by a combiner
 *   dot.c            products by fused multiply-adds
 *   mma.c            products by tensor cores, in warps
 *   wgmma.c          products by tensor cores, in warpgroups
 *   boxes.c          copies and stores by tensor maps
 *   channels.c       channels between partitions of warps
 *   turns.c          programs that take turns
 *   partitions.c     those partitions
 *   print.c          records of printed lines and assertions
 *   shared_tiles.c   tiles in shared memory, and copies to them
 *   remark.c         remarks for `tilec explain`
 *
 * A tile becomes a vector of the thread's registers, or a scalar if it has one register. Every thread computes all
 * scalars. Private to ptx/. */
#ifndef TILE_PTX_LOWERING_MACHINE_H
#define TILE_PTX_LOWERING_MACHINE_H

#include "lang/ir/build.h"
#include "ptx/layouts/blocked.h"
#include "ptx/target/dot.h"
#include "lang/layout/layout.h"
#include "ptx/passes.h"
#include "ptx/lowering/swizzle.h"

/* A tensor parameter in machine form; extents and strides in bytes by dimension. */
typedef struct GpuTensor {
    TileValue *pointer, *extent[TILE_MAX_TENSOR_RANK], *stride[TILE_MAX_TENSOR_RANK];
    TileParameter *parameter;
} GpuTensor;

/* What a scan comes to, for each register of a line's result, in the tile's own layout. */
typedef struct GpuScanned {
    const TileOp *scan; /* NULL: none yet */
    TileValue **totals; /* by one op, without its initial value; NULL: the scan is by another function */
    TileValue **ends;   /* with it, of one value after the other; NULL: it goes from the end */
} GpuScanned;

/* The sums of a product by wgmma, one value for each instruction, and the registers of the layout that they become. */
typedef struct GpuPendingSums {
    unsigned count;
    TileValue **sums;
    int64_t **lanes;
    TileValue **promoted; /* registers of the layout, to which they are added (NULL: to 0); NULL: to none */
    TileValue **factors;  /* of these registers, which are multiplied in the same fma; NULL: of none */
} GpuPendingSums;

typedef struct GpuChannels GpuChannels;

typedef struct Gpu {
    TilePassContext *context;
    TileModule *module;
    TileArena *arena;
    TileFunc *func;
    TileBuilder b;
    TileMap values;  /* old TileValue to new */
    TileMap tensors; /* old TileValue to GpuTensor */
    TileMap beside;  /* old TileValue, of a load of a window, to that of the first load of its row */
    TileMap ordered; /* old stores, updates and loops around these that need barriers around them (store_order.c) */
    TileMap pending; /* old TileValue, of a product by wgmma, to GpuPendingSums */
    TileMap stored;  /* TileOp, a store by a tensor map, to the buffer that it stores from */
    bool stores_apart; /* warpgroups begin stores of their own */
    TileMap collected; /* old atomic_tile to what the block collects */
    TileMap shared_ahead; /* combinations of a cluster whose own value has been stored */
    GpuChannels *channels; /* between partitions */
    int64_t sums;          /* elements of sums of products by tensor cores */
    int64_t promoted;      /* registers of a thread for sums that are added to those */
    int64_t carried;       /* registers of a thread for other tiles that loops carry */
    bool uses_sums;        /* a loop computes with the sums of its products */
    int64_t read_bytes;    /* of tiles that threads read from slots between partitions */
    uint32_t block_threads; /* of all partitions */
    unsigned products; /* shapes of sums that mma computes */
    unsigned log_warps;
    TileValue *thread;     /* i64 */
    TileValue *warpgroup;  /* i64: number of the thread's warpgroup among those of its program; in partitions */
    TileValue *turn;       /* i64: number of the thread's part of the first partition; NULL: programs do not take turns */
    TileValue *order;      /* an mbarrier for each turn, which completes a phase when the turn before it has ended */
    int64_t groups_in_turn; /* so many warpgroups of a program take turns; 0: none */
    TILE_LIST(TileOp *) orders; /* waits for the turns of warpgroups, and what ends each of them, alternately */
    int64_t turns;         /* in the first partition: so many programs take turns; else 1 */
    TileValue *shared;     /* the buffer for temporaries of the current op */
    GpuScanned scanned;    /* of the last scan */
    TileIndices *supposed[5]; /* what extents that are multiples of 2, 4, 8, 16 make multiples; NULL: not yet needed */
    int64_t aliasing_stores; /* number of stores so far whose lanes may alias */
    const TileOp *refused; /* the first op that is not supported, and why */
    const char *why;
} Gpu;

/* ---- registers.c ---- */
TileValue *gpu_value(Gpu *gpu, const TileValue *old);
/* Records a failure. Only the first one is reported; lowering continues with any value. */
void gpu_refuse(Gpu *gpu, const TileOp *op, const char *why);
/* The type of a tile's registers. */
const TileType *gpu_type(Gpu *gpu, const TileLayout *layout, TileScalar scalar);
static inline TileValue *gpu_i64(Gpu *gpu, int64_t number) { return tile_build_i64(&gpu->b, number); }
static inline TileValue *gpu_binary(Gpu *gpu, TileOpId id, TileValue *x, TileValue *y) {
    return tile_build_binary(&gpu->b, id, x, y);
}
TileValue *gpu_and(Gpu *gpu, TileValue *x, TileValue *y); /* either may be NULL: true */
/* The same if `y` may be undefined where `x` is false: a mask that is a tile, in the padding of its layout. */
TileValue *gpu_both(Gpu *gpu, TileValue *x, TileValue *y);
/* Extracts one register; joins registers to a vector. */
TileValue *gpu_register(Gpu *gpu, TileValue *value, uint32_t reg);
TileValue *gpu_join(Gpu *gpu, TileValue *const *registers, uint32_t count);
/* The index along an axis is the sum of the thread's part (i64) and the register's part. */
TileValue *gpu_thread_index(Gpu *gpu, const TileLayout *layout, unsigned axis);
int64_t gpu_register_index(const TileLayout *layout, unsigned axis, uint32_t reg);
/* The indices of all registers as i64. */
TileValue *gpu_indices(Gpu *gpu, const TileLayout *layout, unsigned axis);
/* The registers of a layout of two axes by the thread's part of row and column: index row * columns + column. */
uint32_t *gpu_index_registers(Gpu *gpu, const TileLayout *layout);
/* The bits of a thread's lane or warp number that belong to the axis. */
uint32_t gpu_axis_bits(const TileLayout *layout, TileLayoutDim dim, unsigned axis);
/* Is the index of a register in lo .. hi (i64)? NULL: certainly. */
TileValue *gpu_lies_between(Gpu *gpu, const TileLayout *layout, unsigned axis, uint32_t reg, TileValue *lo,
                            TileValue *hi);
/* Is the thread's register an element of the tile, and not padding of its layout? NULL: certainly. */
TileValue *gpu_is_element(Gpu *gpu, const TileType *tile, uint32_t reg);
/* Is this the lowest-numbered thread that holds these elements? NULL: no element has copies. */
TileValue *gpu_holds_first_copy(Gpu *gpu, const TileLayout *layout);

/* ---- parameters.c ---- */
/* Replaces the parameters; the old body is moved to `old`. */
void gpu_replace_signature(Gpu *gpu, TileBlock *old);
/* Do all offsets into the tensor fit into 31 bits? Records that the function relies on it. */
bool gpu_is_narrow(const GpuTensor *tensor);
/* The same i64, known to fit into 32 bits unsigned. */
TileValue *gpu_narrow(Gpu *gpu, TileValue *value);
/* Strides that are known become constants, or narrow. */
void gpu_use_facts(Gpu *gpu, const TileBlock *old);
/* Records in the kernel's parameters which facts were used. */
void gpu_report_uses(const Gpu *gpu);

/* ---- machine.c ---- */
/* Lowers the block's ops to where the builder is. */
void gpu_lower_block_here(Gpu *gpu, const TileBlock *old);

/* ---- values.c ---- */
bool gpu_lower_value(Gpu *gpu, TileOp *op);

/* ---- access.c ---- */
/* Loads what the loads of a row of a window have together, if this is the first of several, for all of them; false: it is to be loaded by itself. */
bool gpu_load_beside(Gpu *gpu, TileOp *op);
void gpu_lower_load(Gpu *gpu, TileOp *op);
void gpu_lower_store(Gpu *gpu, TileOp *op);

/* ---- collected.c ---- */
typedef TILE_LIST(TileOp *) GpuUpdates;
/* In front of a loop over programs, and behind it. */
GpuUpdates gpu_begin_collecting(Gpu *gpu, const TileOp *loop);
void gpu_end_collecting(Gpu *gpu, const GpuUpdates *updates);

/* ---- store_order.c ---- */
/* Fills `ordered`; before the function's body is taken apart. */
void gpu_find_order(Gpu *gpu);
/* Build the barriers that the store, update or loop needs in front of it and behind it. */
void gpu_order_before(Gpu *gpu, const TileOp *op);
void gpu_order_behind(Gpu *gpu, const TileOp *op);

/* ---- updates.c ---- */
void gpu_lower_atomic(Gpu *gpu, TileOp *op);

/* ---- transfer.c ---- */
/* exchange for a value of any scalar type. */
TileValue *gpu_exchange(Gpu *gpu, TileValue *value, uint32_t lanes);
/* The same; each lane has its own number (i32) of the lane that it takes the value of. */
TileValue *gpu_exchange_with(Gpu *gpu, TileValue *value, TileValue *lanes);
/* A buffer for the threads of a program. */
TileValue *gpu_build_own_buffer(Gpu *gpu, int64_t bytes, int64_t align);
/* Allocates a buffer for temporaries of one op; it becomes gpu->shared. gpu-barriers inserts the barriers between
 * writes and reads. */
enum { GPU_VECTOR_ALIGN = 16 };
void gpu_open_shared(Gpu *gpu, uint64_t bytes, unsigned align);
/* Addresses in shared memory: axis index i adds i * bytes to `offset`; indices from `extent` on are not stored. */
typedef struct GpuStrides {
    int64_t bytes[TILE_MAX_TILE_RANK], extent[TILE_MAX_TILE_RANK], offset;
} GpuStrides;
/* Converts through shared memory: elements of `from` are stored by `write`, those of `to` are loaded by `read`. */
TileValue *gpu_move_through_shared(Gpu *gpu, TileValue *value, TileScalar scalar, const TileLayout *from,
                                   const GpuStrides *write, const TileLayout *to, const GpuStrides *read,
                                   int64_t elements);
/* Its two steps. */
void gpu_write_shared(Gpu *gpu, TileValue *value, const TileLayout *layout, const GpuStrides *strides);
TileValue *gpu_read_shared(Gpu *gpu, TileScalar scalar, const TileLayout *layout, const GpuStrides *strides);
/* Broadcasts a scalar of one thread to all threads. */
TileValue *gpu_share_scalar(Gpu *gpu, TileValue *scalar, TileValue *has);
GpuStrides gpu_row_major(const TileLayoutShape *shape, unsigned scalar_bytes);
/* The thread's address in shared memory, and a register's offset from it. */
TileValue *gpu_shared_address(Gpu *gpu, const TileLayout *layout, const GpuStrides *strides);
int64_t gpu_shared_register_offset(const TileLayout *layout, const GpuStrides *strides, uint32_t reg);

/* ---- exchanges.c ---- */
/* Converts a tile of elements narrower than a word by exchanges of words between lanes; NULL: it takes something else. */
TileValue *gpu_swap_words(Gpu *gpu, TileValue *value, const TileLayout *from, const TileLayout *to);
TileValue *gpu_exchange_words(Gpu *gpu, TileValue *value, const TileLayout *from, const TileLayout *to);
/* Converts a tile of few registers, of which each lane takes what it wants from the lane that has it; NULL: it takes something else. */
TileValue *gpu_shuffle(Gpu *gpu, TileValue *value, const TileLayout *from, const TileLayout *to);

/* ---- move.c ---- */
/* Converts a tile of this type, whose own layout is ignored, from one layout to another. */
TileValue *gpu_move(Gpu *gpu, TileValue *value, const TileType *type, const TileLayout *from, const TileLayout *to);
/* Does that need no shared memory? `source` is as of tile_layout_conversion. */
bool gpu_stays_in_warp(const TileLayout *from, const TileLayout *to, TileLinear *source);

/* The tile with its lanes along the axis in reverse order, in the same layout; NULL: other warps have them. */
TileValue *gpu_flip_in_warp(Gpu *gpu, TileValue *value, const TileType *type, unsigned axis);

/* ---- reduce.c ---- */
void gpu_lower_reduce(Gpu *gpu, TileOp *op);
void gpu_lower_arg_reduce(Gpu *gpu, TileOp *op);
/* The rank of the warp among those that share a line: its number's bits that are set in `bits`, not 0, compressed. */
TileValue *gpu_warp_rank(Gpu *gpu, uint32_t bits);
/* Lines along an axis; all lanes of a warp have the same value for each register of `result`. */
typedef struct GpuLines {
    Gpu *gpu;
    TileLayout layout, result; /* of the tile; of one value for each line, without copies in registers */
    unsigned axis;
} GpuLines;
/* How many warps share a line. */
uint32_t gpu_line_warps(const GpuLines *lines);
enum { GPU_MOST_GATHERED = TILE_MAX_FOLD + 1 };
/* Of `count` values of each line, behind the same barriers, those of all warps that share the thread's lines: in each array
 * of `gathered` index w * registers + r is that of warp w for register r. */
void gpu_gather_lines(const GpuLines *lines, TileValue **const *values, unsigned count, TileValue ***gathered);

/* ---- fold.c ---- */
/* Lowers a fold or a scan. */
void gpu_lower_fold(Gpu *gpu, TileOp *op);

/* ---- remark.c: does nothing unless remarks are wanted ---- */
/* The layouts of the op's tiles. */
void gpu_remark_tiles(Gpu *gpu, const TileOp *op);
/* A conversion of a tile from one layout to another. */
typedef struct GpuMove {
    TileScalar scalar;
    const TileLayout *from, *to;
    const char *way;
    uint64_t bytes;                           /* of shared memory that it takes; 0: none */
    unsigned store_conflicts, load_conflicts; /* bank conflicts (tile_shared_conflicts) */
} GpuMove;
void gpu_remark_move(Gpu *gpu, const GpuMove *move);

/* The order of additions: of a product or a loop; of a reduction or fold, whose elements have the layout. */
void gpu_remark_order(Gpu *gpu, const TileOp *op);
void gpu_remark_reduction(Gpu *gpu, const TileOp *op, const TileLayout *layout, unsigned axis);
/* An access in vectors, and its L2 cache policy. */
void gpu_remark_access(Gpu *gpu, const TileOp *op, const TileParameter *tensor, TileName cache);

/* ---- dot.c ---- */
void gpu_lower_dot(Gpu *gpu, TileOp *op);

/* ---- wgmma.c ---- */
void gpu_lower_wgmma(Gpu *gpu, TileOp *op);
void gpu_lower_dot_wait(Gpu *gpu, TileOp *op);
/* peers.c */
void gpu_lower_cluster_reduce(Gpu *gpu, TileOp *op);
/* Counts barriers of the cluster: every thread comes to as many. */
void gpu_count_meetings(TileOp *op, void *count);

/* ---- channels.c ---- */
TileValue *gpu_uniform(Gpu *gpu, TileValue *value);
void gpu_find_channels(Gpu *gpu, TileBlock *body);
/* Of shared memory, that the slots of all channels take. */
int64_t gpu_channels_bytes(const Gpu *gpu);
void gpu_lower_channel(Gpu *gpu, TileOp *op);
void gpu_lower_take(Gpu *gpu, const TileOp *op);
void gpu_lower_take_end(Gpu *gpu, const TileOp *op);
/* Of the slot that an acquire has given: what completes when copies have filled it. */
TileValue *gpu_filled_mbarrier(const Gpu *gpu, const TileOp *acquire);
/* So many bytes (i32) of the slot do not come in this round. */
void gpu_miss_bytes(Gpu *gpu, const TileOp *acquire, TileValue *bytes);
/* Begins a branch that only some threads of a warp take; ends both of its regions. */
TileOp *gpu_begin_branch(Gpu *gpu, TileValue *condition, TileBuilder *outer);
/* A branch of one thread of the warp that begins with this one; all lanes of all warps come to it. */
TileOp *gpu_begin_thread(Gpu *gpu, int64_t first, TileBuilder *outer);
void gpu_end_branch(Gpu *gpu, TileOp *branch, const TileBuilder *outer);
enum { GPU_MBARRIER_BYTES = 8 };
/* Waits for the phase of a round, through a ring or the turns, which is an odd one or not; `before`: for the phase before
 * it. */
void gpu_build_phase_wait(Gpu *gpu, TileValue *mbarrier, TileValue *odd, bool before);
/* Tells of the last slots that the loop has read, where its releases are `pending`; once. */
void gpu_release_pending(Gpu *gpu, const TileOp *loop);
/* Each warp arrives at the mbarrier once. */
void gpu_arrive_by_warp(Gpu *gpu, TileValue *mbarrier);
/* The first thread of the block makes the mbarriers of all channels and turns, for so many warps of a program. */
void gpu_build_mbarriers(Gpu *gpu, int64_t readers);

/* ---- turns.c ---- */
/* Makes room for the mbarriers of turns. */
void gpu_open_turns(Gpu *gpu, const TileOp *partitions);
/* Warpgroups that exchange something through shared memory take no turns after all. */
void gpu_close_turns(Gpu *gpu);
/* How many mbarriers those are: one for each program of a block, or each warpgroup of a program, that takes turns. */
static inline int64_t gpu_count_orders(const Gpu *gpu) { return gpu->groups_in_turn ? gpu->groups_in_turn : gpu->turns > 1 ? gpu->turns : 0; }
/* The threads of each of a program's warpgroups, so many, wait for one another. */
void gpu_build_warpgroup_barrier(Gpu *gpu, int64_t groups);
/* Computes gpu->turn and gpu->warpgroup, and makes gpu->thread the number among the threads of a program. */
void gpu_number_turns(Gpu *gpu);
/* Lowers turn, turn_begin and turn_end. */
void gpu_lower_turn(Gpu *gpu, const TileOp *op);

/* ---- partitions.c ---- */
void gpu_lower_partitions(Gpu *gpu, const TileOp *op);

/* ---- boxes.c ---- */
void gpu_copy_by_map(Gpu *gpu, TileOp *op);
void gpu_store_by_map(Gpu *gpu, TileOp *op);
/* A visitor that makes room for what a store by a tensor map takes from shared memory; behind the last store. */
void gpu_find_stored(TileOp *op, void *gpu);
void gpu_end_stores(Gpu *gpu);

/* ---- print.c ---- */
void gpu_lower_print(Gpu *gpu, const TileOp *op);

/* ---- mma.c ---- */
void gpu_lower_mma(Gpu *gpu, TileOp *op);

/* ---- shared_tiles.c ---- */
/* Addresses of the registers of a layout in a swizzled tile in shared memory (ptx/target/dot.h). */
typedef struct GpuTileAddresses {
    Gpu *gpu;
    GpuSharedTile tile;
    TileLayout layout;
    unsigned axis[2];          /* of the layout, for the tile's rows and columns */
    TileValue *base, *offset;  /* pointer, and bytes to the thread's register 0 */
    TileValue *at[TILE_LANES]; /* addresses built so far, by what is exclusive-ored to the column */
} GpuTileAddresses;
GpuTileAddresses gpu_tile_addresses(Gpu *gpu, TileValue *pointer, const GpuSharedTile *tile, const TileLayout *layout,
                     bool transposed);
TileValue *gpu_register_address(GpuTileAddresses *places, uint32_t reg);
/* The layout of what lanes give the addresses of, where matrices of 8 x 8 move between such fragments and shared memory. */
TileLayout gpu_lanes_of_rows(const TileLayout *fragments);
/* The byte offset of a column in its row, swizzled by the row; the address of such an element. */
TileValue *gpu_swizzled_column(Gpu *gpu, const GpuSharedTile *tile, TileValue *row, TileValue *column);
TileValue *gpu_element_address(Gpu *gpu, const GpuSharedTile *tile, TileValue *pointer, TileValue *row, TileValue *column);
/* Stores all registers of a tile in shared memory, in the layout of the pointer type `stored`. */
void gpu_put_tile(Gpu *gpu, TileValue *value, const TileType *type, const TileType *stored, TileValue *pointer);
void gpu_lower_shared_tile(Gpu *gpu, TileOp *op);
void gpu_lower_put(Gpu *gpu, TileOp *op);
void gpu_lower_clear(Gpu *gpu, TileOp *op);

/* ---- copy.c ---- */
void gpu_lower_copy(Gpu *gpu, TileOp *op);

#endif
