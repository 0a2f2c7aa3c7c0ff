/* The executor's state, shared by its files:
 *  frame.c       frames of functions, faults
 *  activation.c  registers of a function's execution
 *  execute.c     public interface
 *  masks.c       what masks depend on, for TileExecutorOptions.masked
 *  decode.c      decoding of functions to instructions
 *  values.c      elementwise ops, shapes, vectors
 *  reduce.c      reductions, dot
 *  fold.c        folds and scans with combiners, of tiles and of points
 *  memory.c      memory objects, accesses of machine form
 *  tensor.c      tensors, accesses of tile form
 *  observe.c     statements, and what observers read
 *  control.c     regions, loops, calls
 *  phases.c      grids run as phase functions
 *  block.c       phases of GPUs: blocks of threads, and their scheduler
 *  warp.c        warp-level ops: shuffles, matrices
 *  matrix.c      matrices in shared memory that descriptors describe, and their products
 *  wgmma.c       ops of a warpgroup: products under way
 *  amx.c         tile registers of a CPU, and their products; products of words in vectors
 *  copy.c        asynchronous copies to shared memory
 *  store.c       stores of boxes by tensor maps
 *  channel.c     channels, in tile form
 *  box.c         boxes of tensors that tensor maps describe
 *  mbarrier.c    mbarriers, and the bulk copies that they count
 *  clocks.c      what threads know of one another, and of fences
 *  race.c        detection of data races
 *  records.c     prints and assertions of blocks of threads
 *  slack.c       bounds on the effect of the order of sums
 *
 * Every value has a register: a sequence of 64-bit lanes in the register file of its function's activation. A pointer
 * has two, the number of a memory object and the offset in it; a tensor has one, the number of its descriptor. */
#ifndef TILE_LANG_EXECUTE_STATE_H
#define TILE_LANG_EXECUTE_STATE_H

#include "lang/ir/eval.h"
#include "lang/execute/execute.h"

typedef struct ExecInstruction ExecInstruction;
typedef struct ExecProgram ExecProgram;
typedef struct ExecShadow ExecShadow;
typedef struct ExecRaces ExecRaces;
typedef struct ExecCopies ExecCopies;
typedef struct ExecStores ExecStores;
typedef struct ExecRecords ExecRecords;
typedef struct ExecMbarriers ExecMbarriers;
typedef struct ExecWarpgroups ExecWarpgroups;
typedef struct ExecAmx ExecAmx;
typedef struct ExecMasks ExecMasks;

/* False: the executor stops, for the reason that it has recorded. */
typedef bool (*ExecHandler)(TileExecutor *e, const ExecInstruction *in);

/* Why a lane or a byte is poison. Values that a program loads from uninitialised elements of a temporary are undefined
 * by a mistake of the program: each such load op has its own bit, as far as there are bits. Other poison that reaches a
 * checked use is a fault. */
typedef enum ExecPoison {
    EXEC_POISON = 1,
    EXEC_FIRST_UNDEFINED = 2,
    EXEC_MOST_UNDEFINED = 7, /* loads; the last bit is for all further ones */
} ExecPoison;

typedef struct ExecUndefined {
    struct {
        const TileOp *load, *temp;
        const int64_t *extent;
        int64_t element; /* the first uninitialised one, in row-major order */
    } loads[EXEC_MOST_UNDEFINED];
    unsigned count;
} ExecUndefined;

typedef struct ExecRegister {
    size_t offset;
    uint32_t lanes;
} ExecRegister;

typedef struct ExecCode {
    ExecInstruction *items;
    uint32_t count;
    uint32_t first_argument, argument_count; /* registers */
} ExecCode;

/* What the mask of an instruction depends on: `threads` is true for the same threads of every block alone; of `data` each
 * part of the conjunction depends on what was loaded, or chooses threads; `lanes` are all others. */
typedef enum ExecMask { EXEC_MASK_NONE, EXEC_MASK_THREADS, EXEC_MASK_DATA, EXEC_MASK_LANES } ExecMask;

struct ExecInstruction {
    ExecHandler run;
    const TileOp *op;
    ExecCode *regions;
    uint32_t *operands; /* registers */
    uint32_t operand_count;
    uint32_t result; /* first register of the results */
    uint32_t hidden; /* register of the op's own state, if it has any */
    uint32_t lanes;  /* of the first result */
    uint32_t number; /* grids: index among the kernel's grids */
    TileScalar from, to;
    TileEvalLoop loop;
    const uint32_t *map; /* for each lane of the result, the lane of the operands that it is */
    int mask, fill;      /* operand indices, -1 if absent */
    ExecMask reason;     /* with options.masked: what the mask depends on */
    bool staged;         /* yields that overwrite their own operands */
    bool stripes;
    int64_t align;
};

/* A decoded function. Constants are set once for each activation. */
struct ExecProgram {
    TileFunc *func;
    ExecProgram *next;
    ExecRegister *registers;
    uint32_t register_count, vector_scale;
    bool times_registers; /* it is noted when registers are written: a wgmma takes some */
    size_t lane_count;
    TILE_LIST(const TileOp *) constants;
    ExecCode body;
};

typedef struct ExecActivation {
    ExecProgram *program;
    uint64_t *lanes;
    uint8_t *poison; /* one for each lane: a set of ExecPoison */
    uint8_t *any;    /* one for each register: may any lane be poison? The lanes' poison is only valid if it is set. */
    double *slack;   /* one for each lane, if asked for (slack.c); else NULL */
    uint64_t *written; /* one for each register: the step in which it was written; NULL if nobody asks */
    size_t first_object;
} ExecActivation;

typedef struct ExecFrame {
    ExecActivation *activation;
    const ExecCode *code; /* NULL: a frame that runs the phases of a grid */
    uint32_t next;
    const ExecInstruction *owner; /* the op whose region is executed; NULL for a function's body */
    uint64_t active;              /* bit set of lanes */
    int64_t index, end, step;     /* loops: current value, end, step; iteration numbers if `scrambled` */
    int64_t base;                 /* first point */
    uint64_t factor, shift;       /* iteration n is at base + (n * factor + shift) mod end */
} ExecFrame;

/* Counts of a channel's acquires, commits, waits and releases; the first exceeds the last by at most `slots`. */
typedef struct ExecChannel {
    uint64_t acquired, committed, waited, released, slots;
} ExecChannel;

typedef struct ExecObject {
    unsigned char *base;
    int64_t size;
    uint8_t *poison;     /* a byte for each: a set of ExecPoison; NULL: all defined */
    const TileOp *temp;  /* the op that created it; uninitialised elements are the program's mistake */
    int64_t *extent;     /* of a temp: of each dimension */
    bool writable;
    bool keeps_poison; /* scratch: poison may be stored */
    bool dead;
    double *slack; /* one for each element, of the size that it is accessed with; NULL: none */
    void *owned;   /* freed with the object */
    uint64_t owned_bytes;
    ExecShadow *shadow; /* of memory that threads share; else NULL */
    ExecChannel channel; /* the channel whose slots it has; its `slots` is 0 if there is none */
} ExecObject;

typedef struct ExecTensor {
    uint32_t object;
    int64_t offset; /* of its first element in the object */
    int64_t extent[TILE_MAX_TENSOR_RANK], stride[TILE_MAX_TENSOR_RANK];
} ExecTensor;

/* Partitions in tile form are coroutines: the frames of the one that is not running. */
typedef struct ExecPartition {
    ExecFrame *frames; /* NULL: no partitions are being executed */
    size_t depth, capacity;
    size_t base, own_base; /* depth at which this one, and the running one, have ended */
    bool is_first;         /* it executes region 0, and its frames go on behind the partitions */
    bool waits;            /* it waits for a channel, and nothing has happened to channels since */
} ExecPartition;

struct TileExecutor {
    TileArena *arena; /* decoded functions, messages */
    TileFunc *func;
    TileExecutorOptions options;
    ExecProgram *programs;
    ExecFrame *frames;
    size_t depth, frame_capacity;
    ExecPartition other;
    uint64_t turns; /* of programs that have ended, in tile form */
    bool in_turn;
    ExecActivation *root; /* freed with the executor: it has the results */
    ExecObject *objects;
    size_t object_count, object_capacity;
    ExecTensor *tensors;
    size_t tensor_count, tensor_capacity;
    void *scratch; /* memory for one op */
    size_t scratch_size;
    uint64_t steps, random, bytes;
    ExecUndefined *undefined; /* for all threads */
    bool undecided;           /* slack may affect control flow or the address of a store */
    uint32_t *results; /* registers of the root function's results */
    TileExecution state;
    bool started;
    TileText message;
    unsigned values_line, values_column; /* the assertion that options.values is about */
    /* For one thread of a block; on a CPU, a block of one thread. */
    uint32_t thread, thread_count; /* its number, which goes on through the blocks of a cluster; those of one block */
    uint32_t rank, ranks;          /* of its block in a cluster, and the cluster's blocks */
    int64_t block, block_count;
    const ExecInstruction *meeting; /* the op at which the thread waits for others; NULL: it can run */
    ExecCopies *copies;             /* started by the thread; NULL: none */
    ExecStores *stores;             /* likewise */
    ExecRecords *records;           /* of all threads of a phase; NULL: it has no prints or assertions */
    uint32_t shared;                /* the object of the block's shared memory; those of a cluster's blocks are neighbours */
    uint64_t fenced;                /* the step of the thread's last wgmma_fence */
    ExecWarpgroups *warpgroups;     /* of the block; NULL: its function has none */
    ExecAmx *amx;                   /* tile registers; NULL: none have been configured */
    ExecRaces *races;               /* of the block; NULL: there is none */
    ExecMbarriers *mbarriers;       /* of the block; NULL: its function has none */
    ExecMasks *masks;               /* of the function that was decoded last, with options.masked; or NULL */
    uint32_t awaited, parity;       /* if `meeting` is a wait: number of the mbarrier, from 1; else 0 */
};

/* ---- registers ---- */

typedef struct ExecValue {
    uint64_t *lanes;
    uint8_t *poison, *any;
    uint32_t count;
    double *slack; /* or NULL */
} ExecValue;

static inline ExecFrame *tile_exec_frame(TileExecutor *e) { return &e->frames[e->depth - 1]; }

static inline ExecValue tile_exec_register(const ExecActivation *activation, uint32_t number) {
    ExecRegister r = activation->program->registers[number];
    double *slack = activation->slack ? activation->slack + r.offset : NULL;
    return (ExecValue){activation->lanes + r.offset, activation->poison + r.offset, activation->any + number, r.lanes,
                       slack};
}

static inline ExecValue tile_exec_value(TileExecutor *e, uint32_t number) {
    return tile_exec_register(tile_exec_frame(e)->activation, number);
}
static inline ExecValue tile_exec_operand(TileExecutor *e, const ExecInstruction *in, unsigned index) {
    return tile_exec_value(e, in->operands[index]);
}
static inline ExecValue tile_exec_result(TileExecutor *e, const ExecInstruction *in) {
    return tile_exec_value(e, in->result);
}
static inline uint8_t tile_exec_poisoned(ExecValue value, uint32_t lane) {
    return *value.any ? value.poison[lane] : 0;
}

/* Sets a lane's poison; the value's other lanes must have been cleared or set since `any` was set. */
void tile_exec_clear_poison(ExecValue value);
void tile_exec_set_poison(TileExecutor *e, ExecValue value, uint32_t lane, uint8_t poison);
void tile_exec_set_scalar(ExecValue value, uint64_t bits);
void tile_exec_copy(ExecValue from, ExecValue to);

/* The thread's number in its own block. */
static inline uint32_t tile_exec_own_thread(const TileExecutor *e) { return e->thread - e->rank * e->thread_count; }

/* ---- frame.c, activation.c ---- */

/* The items, grown if needed to have room for one more; NULL if out of memory. */
void *tile_exec_grow(void *items, size_t count, size_t *capacity, size_t size);
bool tile_exec_stop(TileExecutor *e, const ExecInstruction *in, TileExecution state, const char *format, ...)
    TILE_PRINTF(4, 5);
bool tile_exec_out_of_memory(TileExecutor *e);
/* The op and its location, for messages. */
void tile_exec_print_op(const TileExecutor *e, const TileOp *op, TileText *text);
/* Counts memory that is about to be allocated; false, and the executor stops, if that exceeds the limit. */
bool tile_exec_count_bytes(TileExecutor *e, uint64_t bytes);
#define tile_exec_fault(e, in, ...) tile_exec_stop((e), (in), TILE_EXECUTION_FAULT, __VA_ARGS__)
/* Stops because of poison: if it comes only from uninitialised elements of temporaries, with a message on the program's
 * mistake, in which `what` says what the op would do with them; else as a fault. */
bool tile_exec_poison(TileExecutor *e, const ExecInstruction *in, uint8_t poison, const char *what, const char *format,
                      ...) TILE_PRINTF(5, 6);
/* Scratch memory for one op; NULL, and the executor stops, if out of memory. */
void *tile_exec_scratch(TileExecutor *e, size_t size);
uint64_t tile_exec_random(TileExecutor *e);
/* NULL, and the executor stops, if out of memory. */
ExecFrame *tile_exec_push(TileExecutor *e, const ExecFrame *frame);
ExecActivation *tile_exec_activate(TileExecutor *e, ExecProgram *program);
/* Resets it to its initial state. */
void tile_exec_reset(ExecActivation *activation);
void tile_exec_deactivate(TileExecutor *e, ExecActivation *activation);
/* The operand's single lane, which must not be poison; `what` describes it in messages. */
bool tile_exec_integer(TileExecutor *e, const ExecInstruction *in, unsigned operand, const char *what, int64_t *value);

/* ---- masks.c ---- */

/* What the mask, or a value that is a part of one, depends on. */
ExecMask tile_exec_mask_of(TileExecutor *e, const TileOp *op, TileValue *mask);
/* Counts the instruction, which is executed, by its mask. */
void tile_exec_count_mask(TileExecutor *e, const ExecInstruction *in);

/* ---- decode.c ---- */

ExecProgram *tile_exec_decode(TileExecutor *e, TileFunc *func);

/* ---- tensor.c ---- */

/* From dimension `from` on, are there no gaps between the elements of `bytes` each, in row-major order? */
bool tile_exec_is_dense(const int64_t *extent, const int64_t *stride, unsigned rank, unsigned from, int64_t bytes);

/* ---- memory.c ---- */

/* The number of a new object; false if out of memory. */
bool tile_exec_add_object(TileExecutor *e, const ExecObject *object, uint32_t *number);
/* New memory, aligned to at least 64 bytes, all poison. */
bool tile_exec_allocate(TileExecutor *e, uint64_t size, uint64_t align, bool keeps_poison, uint32_t *number);
/* The op's own object (`hidden`) in this activation; each execution makes its bytes poison again. */
bool tile_exec_own_object(TileExecutor *e, const ExecInstruction *in, int64_t bytes, int64_t align, uint64_t *number);
bool tile_exec_add_tensor(TileExecutor *e, const ExecTensor *tensor, uint32_t *number);
void tile_exec_release(TileExecutor *e, size_t first_object);
/* The object, if bytes offset .. offset + size are in bounds; else NULL, and the executor stops. */
ExecObject *tile_exec_reach(TileExecutor *e, const ExecInstruction *in, uint64_t number, int64_t offset, int64_t size,
                            bool write);
/* One element at an offset in an object. */
bool tile_exec_load_element(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset,
                            TileScalar scalar, uint64_t *bits, uint8_t *poison);
bool tile_exec_store_element(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset,
                             TileScalar scalar, uint64_t bits, uint8_t poison);
/* The union of the poison of the bytes that the op reads; 0: none is poison. */
uint8_t tile_exec_read_poison(TileExecutor *e, const ExecInstruction *in, const ExecObject *object, int64_t offset,
                              int64_t size);

/* An atomic op on one element: lane `lane` of the value, operand `first`, and of the expected value, the next
 * operand. */
bool tile_exec_update_element(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset,
                              TileScalar scalar, uint32_t lane, unsigned first);

/* ---- amx.c ---- */

enum { EXEC_AMX_DEPTH = 32 /* bf16 that one amx_dot multiplies along k */ };
enum { EXEC_WORD_BF16 = 2 /* bf16 of a word */ };
/* c plus the products of bf16, given as f32, as dot_words adds them, word by word; one that is missing to the last word is 0. */
float tile_exec_word_sum(float c, const float *a, size_t a_step, const float *b, size_t b_step, size_t k);
/* c plus the sum of products of up to EXEC_AMX_DEPTH bf16, given as f32, as AMX adds them. */
float tile_exec_amx_sum(float c, const float *a, size_t a_step, const float *b, size_t b_step, size_t k);

/* ---- partitions.c ---- */

/* The op waits for a channel: the other partition runs first, and then the op again. False, and the executor stops, if
 * there is no other partition, or it waits too; `why` is what the op waits for. */
bool tile_exec_wait_for_partition(TileExecutor *e, const ExecInstruction *in, const char *why);
/* Something has happened to a channel, for which the other partition may have waited. */
bool tile_exec_wake_partition(TileExecutor *e);
/* Ends the region that the yield ends. */
bool tile_exec_end_partition(TileExecutor *e);
void tile_exec_free_partition(TileExecutor *e);

/* ---- phases.c ---- */

/* Runs the innermost frame and the frames that it pushes, for at most `limit` steps. */
TileExecution tile_exec_run(TileExecutor *e, uint64_t limit);
bool tile_exec_start_phases(TileExecutor *e, const ExecInstruction *in, int64_t programs);
bool tile_exec_next_phase(TileExecutor *e);

/* ---- block.c ---- */

/* Runs a phase whose activation has its parameters, except for the last, the shared memory: `block_count` blocks of
 * func->threads threads. */
bool tile_exec_blocks(TileExecutor *e, const ExecInstruction *grid, const ExecActivation *phase, int64_t block_count);

/* ---- warp.c ---- */

/* All threads of a warp have arrived at the same op, which is executed for all. On an error one of them has stopped. */
bool tile_exec_warp(TileExecutor *threads, uint32_t count, uint32_t *failed);

/* ---- wgmma.c ---- */

/* For so many blocks, of so many threads each; NULL if out of memory. */
ExecWarpgroups *tile_exec_create_warpgroups(uint32_t threads, uint32_t blocks);
void tile_exec_free_warpgroups(ExecWarpgroups *warpgroups);
/* Resets them at the start of a block, whose threads begin with so many registers. */
void tile_exec_forget_warpgroups(ExecWarpgroups *warpgroups, uint32_t registers);
/* All threads of a warpgroup have arrived at the same op, which is executed for all. On an error one of them has
 * stopped. If it has to wait for registers, `meeting` stays. */
bool tile_exec_warpgroup(TileExecutor *threads, uint32_t *failed);
/* Reads the operands of one of the products under way, if there are any. */
bool tile_exec_read_early(TileExecutor *host, ExecWarpgroups *warpgroups);
/* The first thread of a warpgroup that has a product under way; NULL: there is none. */
TileExecutor *tile_exec_product_thread(const ExecWarpgroups *warpgroups, const ExecInstruction **in);

/* ---- copy.c ---- */

/* Completes some of the thread's pending copies, at random. */
void tile_exec_complete_copies(TileExecutor *host, TileExecutor *e);
void tile_exec_forget_copies(TileExecutor *e);
void tile_exec_free_copies(TileExecutor *e);

/* ---- store.c ---- */

/* As of copies; false if a store fails, and with it the thread. */
bool tile_exec_complete_stores(TileExecutor *host, TileExecutor *e);
void tile_exec_forget_stores(TileExecutor *e);
void tile_exec_free_stores(TileExecutor *e);
/* The thread has ended: false, and it fails, if one of its stores may still read shared memory. */
bool tile_exec_end_stores(TileExecutor *e);

/* ---- box.c ---- */

/* A box of a tensor: its first element, which may lie outside, and the tensor that it is cut from. A row of a box of positions is one of
 * these: of each axis of an image the first one's number, how many there are, the corner from which they are counted, and what is
 * added to each. */
typedef struct ExecBox {
    uint32_t rank, rows, row_bytes, swizzle;
    uint32_t size[TILE_MAP_MOST_RANK], step[TILE_MAP_MOST_RANK];
    int64_t at[TILE_MAP_MOST_RANK], extent[TILE_MAP_MOST_RANK], stride[TILE_MAP_MOST_RANK];
    int64_t element_bytes;
    uint64_t object; /* the tensor's */
    int64_t offset;  /* of the tensor's first element */
    uint32_t image_axes; /* 0: the map's mode is tiled */
    int64_t number[TILE_MAP_MOST_IMAGE_AXES], count[TILE_MAP_MOST_IMAGE_AXES], corner[TILE_MAP_MOST_IMAGE_AXES], added[TILE_MAP_MOST_IMAGE_AXES];
} ExecBox;

/* Bytes from .. from + bytes of the tensor's object are those of the box from `first` on, where the box is dense. */
typedef struct ExecBoxPart {
    int64_t from, first, bytes;
} ExecBoxPart;

static inline int64_t tile_exec_box_bytes(const ExecBox *box) { return (int64_t)box->rows * box->row_bytes; }
/* The box of the map, operand `map`, at the coordinates from operand `first` on. */
bool tile_exec_box_read(TileExecutor *e, const ExecInstruction *in, unsigned map, unsigned first, ExecBox *box);
/* Is the place in shared memory aligned as the box's swizzle needs it? False, and the executor stops, if not. */
bool tile_exec_box_place(TileExecutor *e, const ExecInstruction *in, const ExecBox *box, uint64_t object,
                         int64_t offset);
/* The part of a row that lies in the tensor; false: there is none. */
bool tile_exec_box_part(const ExecBox *box, uint32_t row, ExecBoxPart *part);
/* Records that the thread accesses the box's elements in the tensor, which it may. */
bool tile_exec_box_share(TileExecutor *e, const ExecInstruction *in, const ExecBox *box, bool write);
/* Copies the box from the place to the tensor; false, and the executor stops, if an element of it is poison. */
bool tile_exec_box_store(TileExecutor *e, const ExecInstruction *in, const ExecBox *box, uint64_t object,
                         int64_t offset);
/* Copies the box to the place, with poison; what lies outside of the tensor is 0. */
void tile_exec_box_load(TileExecutor *e, const ExecInstruction *in, const ExecBox *box, uint64_t object,
                        int64_t offset);

/* ---- mbarrier.c ---- */

enum { EXEC_MBARRIER_BYTES = 8, EXEC_MOST_MBARRIERS = 2032, EXEC_MOST_THREADS = TILE_MAX_CLUSTER_THREADS };

/* If the module's functions have any; else `mbarriers` is set to NULL. False, and the executor stops, if out of
 * memory. */
bool tile_exec_create_mbarriers(TileExecutor *host, const TileFunc *func, uint32_t blocks, ExecRaces *races,
                                ExecMbarriers **mbarriers);
void tile_exec_free_mbarriers(ExecMbarriers *mbarriers);
/* Resets them at the start of a block. */
void tile_exec_forget_mbarriers(ExecMbarriers *mbarriers);
/* Has the phase that the thread waits for completed, so that the thread can continue? */
bool tile_exec_may_go_on(const TileExecutor *e);
void tile_exec_go_on(TileExecutor *e);
/* What is missing for the phase that the thread waits for, for messages. */
void tile_exec_print_lacking(const TileExecutor *e, TileText *text);
/* The thread of a pending bulk copy; NULL: there is none. */
TileExecutor *tile_exec_bulk_thread(const ExecMbarriers *mbarriers, const ExecInstruction **in);
/* Completes one of the pending copies, if there are any. On false its thread has failed. */
bool tile_exec_complete_bulk_copy(TileExecutor *host, ExecMbarriers *mbarriers, TileExecutor **failed);

/* ---- race.c, clocks.c ---- */

/* A vector clock: for each thread, mbarrier and warpgroup, the latest of its times in this era that happened before. */
typedef struct ExecClock {
    uint32_t era;
    uint32_t *times;
} ExecClock;

/* From now on all objects are shared by threads; NULL, and the executor stops, if out of memory. */
ExecRaces *tile_exec_watch(TileExecutor *e);
void tile_exec_unwatch(TileExecutor *e, ExecRaces *races);
/* From now on mbarriers order threads, too: as many as fit into so many bytes. */
bool tile_exec_keep_clocks(TileExecutor *e, ExecRaces *races, uint32_t threads, uint64_t bytes);
bool tile_exec_clock_create(const ExecRaces *races, ExecClock *clock);
/* Joins the thread's clock into `clock` (release); false, and it stops, if its own time overflows. */
bool tile_exec_publish(TileExecutor *e, const ExecInstruction *in, const ExecRaces *races, ExecClock *clock);
/* Joins `clock` into the thread's (acquire). */
void tile_exec_learn(const ExecRaces *races, uint32_t thread, const ExecClock *clock);
/* The place of an mbarrier, or of a thread's warpgroup, in clocks; and adds to one what is known of such a place. */
uint32_t tile_exec_mbarrier_entry(const ExecRaces *races, uint32_t mbarrier);
uint32_t tile_exec_warpgroup_entry(const ExecRaces *races, uint32_t thread);
void tile_exec_tick(const ExecRaces *races, ExecClock *clock, uint32_t entry, uint32_t time);
/* Of accesses of a wgmma: finds what all threads of the warpgroup know, which is what such an access comes behind. */
void tile_exec_find_common(ExecRaces *races, uint32_t first_thread);
/* All threads of a warpgroup have waited for products, the `waits`-th time; false: the first one stops. */
bool tile_exec_finish_products(TileExecutor *threads, const ExecInstruction *in, uint32_t waits);
/* Starts a block, with fresh shared memory. */
bool tile_exec_begin_block(TileExecutor *e, ExecRaces *races, int64_t number, const ExecObject *shared, uint32_t objects);
/* All threads of the block have arrived at a barrier. */
void tile_exec_next_era(ExecRaces *races);
/* Records that the thread accesses bytes of an object that has a shadow; false, and it stops, if another thread's
 * access to one of them is unordered with it. */
bool tile_exec_share(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset, int64_t bytes,
                     bool write);

/* Records that the thread uses the mbarrier there. */
bool tile_exec_share_mbarrier(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset);
/* The bytes that a bulk copy or a wgmma of the thread accesses, which was unordered with all others until now, have been
 * waited for: the accesses belong to an entry of clocks and a time of it. */
void tile_exec_share_completed(const TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset,
                               int64_t bytes, uint32_t entry, uint32_t time);

uint32_t tile_exec_era(const TileExecutor *e, uint64_t object);
/* The thread's copy to these bytes, started in the given era, has completed and the thread has waited for it: there
 * must have been no other access in between. */
bool tile_exec_share_arrival(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset, int64_t bytes,
                             uint32_t begun);

/* ---- records.c ---- */

/* From now on prints and assertions of the phase's threads are recorded as on a GPU: programs continue after a failed
 * assertion. */
bool tile_exec_open_records(TileExecutor *e, TileFunc *func);
/* Passes the recorded lines on; false, and the executor stops, if an assertion failed. If the run was stopped early
 * (`going` is false), nothing is passed on. */
bool tile_exec_close_records(TileExecutor *e, bool going);
void tile_exec_note_assertion(TileExecutor *e, const ExecInstruction *in);

/* ---- slack.c: where values have slack ---- */

/* The value affects control flow or the address of a store. */
void tile_exec_slack_unknown(TileExecutor *e, ExecValue value);
void tile_exec_slack_elementwise(TileExecutor *e, const ExecInstruction *in);
void tile_exec_slack_select(ExecValue c, ExecValue x, ExecValue y, ExecValue result, TileScalar scalar);
/* Lines of `extent` lanes, `inner` lanes apart. */
void tile_exec_slack_reduce(const ExecInstruction *in, ExecValue x, ExecValue result, size_t extent, size_t inner);
void tile_exec_slack_arg(const ExecInstruction *in, ExecValue x, ExecValue index, ExecValue result, size_t extent,
                         size_t inner);
/* `precision`: a bound on the effect of rounding the operands, relative to the sum of magnitudes. */
void tile_exec_slack_dot(const ExecInstruction *in, ExecValue a, ExecValue b, ExecValue acc, ExecValue result, size_t m,
                         size_t k, size_t n, double precision);
typedef struct ExecFolded {
    ExecValue x, result;
    const ExecValue *init, *mask; /* or NULL */
    size_t extent, inner;
    bool scan;
} ExecFolded;
/* For one of the values that are folded together. */
void tile_exec_slack_fold(const ExecInstruction *in, unsigned value, const ExecFolded *folded);

/* ---- handlers ---- */

bool tile_exec_elementwise(TileExecutor *e, const ExecInstruction *in);
#define EXECUTE(id, function) bool tile_exec_##function(TileExecutor *e, const ExecInstruction *in);
#include "lang/execute/execute.def"
#undef EXECUTE

/* Ends an iteration of a fold_loop. */
bool tile_exec_next_fold_point(TileExecutor *e, ExecFrame *frame, const ExecInstruction *yield);

/* Does x, with index i, replace the best one so far of an arg_max (or arg_min)? */
bool tile_exec_is_better(bool maximum, TileScalar scalar, uint64_t x, int64_t i, uint64_t best, int64_t best_index);

#endif
