/* The executor's state, shared by its files:
 *   frame.c       frames of functions, faults
 *   activation.c  registers of a function that runs
 *   execute.c     public interface
 *   decode.c      functions to instructions
 *   values.c      elementwise ops, shapes, vectors
 *   reduce.c      reductions, dot
 *   fold.c        folds and scans by combiners, of tiles and of points
 *   memory.c      objects, tensors, accesses of both forms
 *   control.c     regions, loops, calls
 *   phases.c      grids run by phase functions
 *   block.c       phases of GPUs: blocks of threads, and their scheduler
 *   warp.c        what the lanes of a warp do together: exchanges, matrices
 *   copy.c        copies to shared memory that go on beside the threads
 *   mbarrier.c    mbarriers, and bulk copies that they count
 *   race.c        accesses of several threads to the same memory
 *   records.c     what blocks of threads print, and their assertions
 *
 * Every value has a register: a run of 64-bit lanes in the file of its function's activation. A pointer takes two,
 * the number of a memory object and the offset in it; a tensor one, the number of its descriptor. */
#ifndef TILE_LANG_EXECUTE_STATE_H
#define TILE_LANG_EXECUTE_STATE_H

#include "lang/ir/eval.h"
#include "lang/execute/execute.h"

typedef struct ExecInstruction ExecInstruction;
typedef struct ExecProgram ExecProgram;
typedef struct ExecShadow ExecShadow;
typedef struct ExecRaces ExecRaces;
typedef struct ExecCopies ExecCopies;
typedef struct ExecRecords ExecRecords;
typedef struct ExecMbarriers ExecMbarriers;

/* False: the executor stops, for the reason noted in it. */
typedef bool (*ExecHandler)(TileExecutor *e, const ExecInstruction *in);

/* Why a lane or a byte is poison. What a program loads from a temporary before anything stored it is undefined by the
 * program's mistake, and every such load has a bit of its own while there are enough; all else must not reach what the
 * executor looks at. */
typedef enum ExecPoison {
    EXEC_POISON = 1,
    EXEC_FIRST_UNDEFINED = 2,
    EXEC_MOST_UNDEFINED = 7, /* loads; the last stands for all further ones */
} ExecPoison;

typedef struct ExecUndefined {
    struct {
        const TileOp *load, *temp;
        const int64_t *extent;
        int64_t element; /* the first that was undefined, in row-major order */
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

struct ExecInstruction {
    ExecHandler run;
    const TileOp *op;
    ExecCode *regions;
    uint32_t *operands; /* registers */
    uint32_t operand_count;
    uint32_t result; /* first register of the results */
    uint32_t hidden; /* register of the op's own state, where it has one */
    uint32_t lanes;  /* of the first result */
    uint32_t number; /* grids: which of the kernel's */
    TileScalar from, to;
    TileEvalLoop loop;
    const uint32_t *map; /* lanes of the operands that become the lanes of the result */
    int mask, fill;      /* operand numbers, -1 where absent */
    bool chooses;        /* the mask chooses among the threads of a block and says nothing of what exists */
    bool staged;         /* yields that overwrite what they read */
    bool stripes;
    int64_t align;
};

/* A function, decoded. Constants are set once for each activation. */
struct ExecProgram {
    TileFunc *func;
    ExecProgram *next;
    ExecRegister *registers;
    uint32_t register_count, vector_scale;
    size_t lane_count;
    TILE_LIST(const TileOp *) constants;
    ExecCode body;
};

typedef struct ExecActivation {
    ExecProgram *program;
    uint64_t *lanes;
    uint8_t *poison; /* one for each lane: bits of ExecPoison */
    uint8_t *any;    /* one for each register: some lane may be poison. Lanes' poison is valid only where it is set. */
    double *slack;   /* one for each lane, where it is asked for (slack.c); else NULL */
    size_t first_object;
} ExecActivation;

typedef struct ExecFrame {
    ExecActivation *activation;
    const ExecCode *code; /* NULL: a frame that runs the phases of a grid */
    uint32_t next;
    const ExecInstruction *owner; /* the op whose region this is; NULL for a function's body */
    uint64_t active;              /* set of lanes */
    int64_t index, end, step;     /* loops: this point, the end, the step; by number where `scrambled` */
    int64_t base;                 /* first point */
    uint64_t factor, shift;       /* point number n is base + (n * factor + shift) mod end */
} ExecFrame;

/* How many slots of a channel have been acquired so far, and so on: no more than `slots` from the first to the last. */
typedef struct ExecChannel {
    uint64_t acquired, committed, waited, released, slots;
} ExecChannel;

typedef struct ExecObject {
    unsigned char *base;
    int64_t size;
    uint8_t *poison;     /* a byte for each: bits of ExecPoison; NULL: all defined */
    const TileOp *temp;  /* that made it; what is undefined in it is the program's business */
    int64_t *extent;     /* of a temp: for each dimension */
    bool writable;
    bool keeps_poison; /* scratch: poison may be stored */
    bool dead;
    double *slack; /* one for each element, of the size that it is accessed in; NULL: none */
    void *owned;   /* freed with the object */
    uint64_t owned_bytes;
    ExecShadow *shadow; /* of memory that threads share; NULL elsewhere */
    ExecChannel channel; /* whose slots it is; no slots: it is none */
} ExecObject;

typedef struct ExecTensor {
    uint32_t object;
    int64_t offset; /* of its first element in the object */
    int64_t extent[TILE_MAX_TENSOR_RANK], stride[TILE_MAX_TENSOR_RANK];
} ExecTensor;

struct TileExecutor {
    TileArena *arena; /* decoded programs, messages */
    TileFunc *func;
    TileExecutorOptions options;
    ExecProgram *programs;
    ExecFrame *frames;
    size_t depth, frame_capacity;
    ExecActivation *root; /* lives until the executor ends: it holds the results */
    ExecObject *objects;
    size_t object_count, object_capacity;
    ExecTensor *tensors;
    size_t tensor_count, tensor_capacity;
    void *scratch; /* of one op */
    size_t scratch_size;
    uint64_t steps, random, bytes;
    ExecUndefined *undefined; /* of all threads */
    bool undecided;           /* slack may change what runs, or where it is stored */
    uint32_t *results; /* registers of the root's results */
    TileExecution state;
    bool started;
    TileText message;
    unsigned values_line, values_column; /* the assertion whose values options.values has */
    /* Of one thread of a block; elsewhere a block of one. */
    uint32_t thread, thread_count;
    int64_t block, block_count;
    const ExecInstruction *meeting; /* what the thread waits at for others; NULL: it can go on */
    ExecCopies *copies;             /* that it has begun; NULL: none */
    ExecRecords *records;           /* of all threads of a phase; NULL: it has nothing to say */
    ExecMbarriers *mbarriers;       /* of the block; NULL: its function has none */
    uint32_t awaited, parity;       /* `meeting` is a wait: number of the mbarrier, from 1 on; 0: it is none */
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

/* Marks a lane; the value's other lanes must have been cleared or set since `any` was. */
void tile_exec_clear_poison(ExecValue value);
void tile_exec_set_poison(TileExecutor *e, ExecValue value, uint32_t lane, uint8_t poison);
void tile_exec_set_scalar(ExecValue value, uint64_t bits);
void tile_exec_copy(ExecValue from, ExecValue to);

/* ---- frame.c, activation.c ---- */

bool tile_exec_stop(TileExecutor *e, const ExecInstruction *in, TileExecution state, const char *format, ...)
    TILE_PRINTF(4, 5);
bool tile_exec_out_of_memory(TileExecutor *e);
/* The op and where it stands. */
void tile_exec_print_op(const TileExecutor *e, const TileOp *op, TileText *text);
/* Counts memory that is about to be allocated; false, and the executor stops, beyond the limit. */
bool tile_exec_count_bytes(TileExecutor *e, uint64_t bytes);
#define tile_exec_fault(e, in, ...) tile_exec_stop((e), (in), TILE_EXECUTION_FAULT, __VA_ARGS__)
/* Stops because of poison: where it only comes of undefined elements of temporaries, as the program's mistake, `what`
 * saying what the op would do with them, else as a fault. */
bool tile_exec_poison(TileExecutor *e, const ExecInstruction *in, uint8_t poison, const char *what, const char *format,
                      ...) TILE_PRINTF(5, 6);
/* Memory for one op; NULL, and the executor stops, where there is none. */
void *tile_exec_scratch(TileExecutor *e, size_t size);
uint64_t tile_exec_random(TileExecutor *e);
/* NULL, and the executor stops, where there is no memory. */
ExecFrame *tile_exec_push(TileExecutor *e, const ExecFrame *frame);
ExecActivation *tile_exec_activate(TileExecutor *e, ExecProgram *program);
/* As it was when it was made. */
void tile_exec_reset(ExecActivation *activation);
void tile_exec_deactivate(TileExecutor *e, ExecActivation *activation);
/* The operand's only lane, which must not be poison; `what` says what it is for. */
bool tile_exec_integer(TileExecutor *e, const ExecInstruction *in, unsigned operand, const char *what, int64_t *value);

/* ---- decode.c ---- */

ExecProgram *tile_exec_decode(TileExecutor *e, TileFunc *func);

/* ---- memory.c ---- */

/* The items, or a larger copy of them, with room for one more; NULL where there is no memory. */
void *tile_exec_grow(void *items, size_t count, size_t *capacity, size_t size);
/* The number of a new object, or false. */
bool tile_exec_add_object(TileExecutor *e, const ExecObject *object, uint32_t *number);
/* New memory, aligned to 64 bytes at least, all poison. */
bool tile_exec_allocate(TileExecutor *e, uint64_t size, uint64_t align, bool keeps_poison, uint32_t *number);
/* The object of the op's own (`hidden`) in this activation; each execution makes its bytes undefined again. */
bool tile_exec_own_object(TileExecutor *e, const ExecInstruction *in, int64_t bytes, int64_t align, uint64_t *number);
bool tile_exec_add_tensor(TileExecutor *e, const ExecTensor *tensor, uint32_t *number);
void tile_exec_release(TileExecutor *e, size_t first_object);
/* The object, if bytes offset .. offset + size may be accessed in it; else NULL, and the executor stops. */
ExecObject *tile_exec_reach(TileExecutor *e, const ExecInstruction *in, uint64_t number, int64_t offset, int64_t size,
                            bool write);
/* One element at an offset in an object. */
bool tile_exec_load_element(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset,
                            TileScalar scalar, uint64_t *bits, uint8_t *poison);
bool tile_exec_store_element(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset,
                             TileScalar scalar, uint64_t bits, uint8_t poison);
/* Why some of the bytes, which the op reads, are poison; 0: none is. */
uint8_t tile_exec_read_poison(TileExecutor *e, const ExecInstruction *in, const ExecObject *object, int64_t offset,
                              int64_t size);

/* An atomic op on one element: lane `lane` of the operands `first` (the value) and behind it (the expected one). */
bool tile_exec_update_element(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset,
                              TileScalar scalar, uint32_t lane, unsigned first);

/* ---- phases.c ---- */

/* Runs the instructions of the innermost frame and what they enter, up to `limit` steps in all. */
TileExecution tile_exec_run(TileExecutor *e, uint64_t limit);
bool tile_exec_start_phases(TileExecutor *e, const ExecInstruction *in, int64_t programs);
bool tile_exec_next_phase(TileExecutor *e);

/* ---- block.c ---- */

/* Runs a phase whose activation has its parameters, but for the shared memory that is its last: `block_count` blocks of
 * func->threads threads. */
bool tile_exec_blocks(TileExecutor *e, const ExecInstruction *grid, const ExecActivation *phase, int64_t block_count);

/* ---- warp.c ---- */

/* The threads of a warp have all come to the same op, which then is done for all. Otherwise one of them has failed. */
bool tile_exec_warp(TileExecutor *threads, uint32_t count, uint32_t *failed);

/* ---- copy.c ---- */

/* Copies of the thread's may arrive now, as it happens. */
void tile_exec_land_some(TileExecutor *host, TileExecutor *e);
void tile_exec_forget_copies(TileExecutor *e);
void tile_exec_free_copies(TileExecutor *e);

/* ---- mbarrier.c ---- */

enum { EXEC_MBARRIER_BYTES = 8, EXEC_MOST_MBARRIERS = 2048 };

/* Where the functions of the module have any: NULL in `mbarriers` if not. False, and the executor stops, where there is
 * no memory. */
bool tile_exec_create_mbarriers(TileExecutor *host, const TileFunc *func, ExecRaces *races, ExecMbarriers **mbarriers);
void tile_exec_free_mbarriers(ExecMbarriers *mbarriers);
/* A block begins, with none. */
void tile_exec_forget_mbarriers(ExecMbarriers *mbarriers);
/* Has the phase completed that the thread waits for? Then it may go on. */
bool tile_exec_may_go_on(const TileExecutor *e);
void tile_exec_go_on(TileExecutor *e);
/* What the phase that the thread waits for still lacks. */
void tile_exec_print_lacking(const TileExecutor *e, TileText *text);
/* The thread of a bulk copy that has not landed; NULL: there is none. */
TileExecutor *tile_exec_bulk_thread(const ExecMbarriers *mbarriers, const ExecInstruction **in);
/* One of the copies lands, if there is any. False: its thread has failed. */
bool tile_exec_land_bulk(TileExecutor *host, ExecMbarriers *mbarriers, TileExecutor **failed);

/* ---- race.c ---- */

/* What somebody knows of all threads and mbarriers in an era: up to which of its own times. */
typedef struct ExecClock {
    uint32_t era;
    uint32_t *times;
} ExecClock;

/* From now on all objects are shared by threads; NULL, and the executor stops, where there is no memory. */
ExecRaces *tile_exec_watch(TileExecutor *e);
void tile_exec_unwatch(TileExecutor *e, ExecRaces *races);
/* Mbarriers, of which there are those that fit into so many bytes, order threads too. */
bool tile_exec_keep_clocks(TileExecutor *e, ExecRaces *races, uint32_t threads, uint64_t bytes);
bool tile_exec_clock_create(const ExecRaces *races, ExecClock *clock);
/* What the thread knows, and has done so far, is in the clock too; false, and it stops, where its time is up. */
bool tile_exec_publish(TileExecutor *e, const ExecInstruction *in, const ExecRaces *races, ExecClock *clock);
/* The thread knows what is in the clock. */
void tile_exec_learn(const ExecRaces *races, uint32_t thread, const ExecClock *clock);
/* The clock has what bulk copies did up to this phase of the mbarrier. */
void tile_exec_tick(const ExecRaces *races, ExecClock *clock, uint32_t mbarrier, uint32_t phase);
/* A block begins, with shared memory that nobody has touched. */
bool tile_exec_begin_block(TileExecutor *e, ExecRaces *races, int64_t number, const ExecObject *shared);
/* The block's threads have all come to a barrier. */
void tile_exec_next_era(ExecRaces *races);
/* The thread accesses bytes of an object that has a shadow; false, and it stops, where another thread's access to one
 * of them is not ordered with this one. */
bool tile_exec_share(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset, int64_t bytes,
                     bool write);

/* The thread uses an mbarrier there. */
bool tile_exec_share_mbarrier(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset);
/* Of the thread's bulk copy, whose accesses there are ordered with nobody's yet: whoever knows of the phase of the
 * mbarrier knows them. */
void tile_exec_share_landed(const TileExecutor *e, const ExecInstruction *copy, uint64_t object, int64_t offset,
                            int64_t bytes, uint32_t mbarrier, uint32_t phase);

uint32_t tile_exec_era(const TileExecutor *e, uint64_t object);
/* A copy that the thread began to write there in the given era has arrived, which it now knows: nobody may have
 * accessed the bytes in between. */
bool tile_exec_share_arrival(TileExecutor *e, const ExecInstruction *in, uint64_t object, int64_t offset, int64_t bytes,
                             uint32_t begun);

/* ---- records.c ---- */

/* What the phase's threads say from now on is kept, as on a GPU: their programs go on behind an assertion that fails.
 */
bool tile_exec_open_records(TileExecutor *e, TileFunc *func);
/* Hands over the lines; false, and the executor stops, where an assertion has failed. Where the run did not come to its
 * end (`going` is false) there is nothing to be handed over. */
bool tile_exec_close_records(TileExecutor *e, bool going);
void tile_exec_note_assertion(TileExecutor *e, const ExecInstruction *in);

/* ---- slack.c: where values have slack ---- */

/* The value decides what runs, or where it is stored. */
void tile_exec_slack_unknown(TileExecutor *e, ExecValue value);
void tile_exec_slack_elementwise(TileExecutor *e, const ExecInstruction *in);
void tile_exec_slack_select(ExecValue c, ExecValue x, ExecValue y, ExecValue result, TileScalar scalar);
/* Lines of `extent` lanes with `inner` in between. */
void tile_exec_slack_reduce(const ExecInstruction *in, ExecValue x, ExecValue result, size_t extent, size_t inner);
void tile_exec_slack_arg(const ExecInstruction *in, ExecValue x, ExecValue index, ExecValue result, size_t extent,
                         size_t inner);
/* `precision`: what the rounding of its operands may change, relative to the sum of magnitudes. */
void tile_exec_slack_dot(const ExecInstruction *in, ExecValue a, ExecValue b, ExecValue acc, ExecValue result, size_t m,
                         size_t k, size_t n, double precision);
typedef struct ExecFolded {
    ExecValue x, result;
    const ExecValue *init, *mask; /* or NULL */
    size_t extent, inner;
    bool scan;
} ExecFolded;
/* Of one of the values that are folded together. */
void tile_exec_slack_fold(const ExecInstruction *in, unsigned value, const ExecFolded *folded);

/* ---- handlers ---- */

bool tile_exec_elementwise(TileExecutor *e, const ExecInstruction *in);
#define EXECUTE(id, function) bool tile_exec_##function(TileExecutor *e, const ExecInstruction *in);
#include "lang/execute/execute.def"
#undef EXECUTE

/* Ends a point of a fold_loop. */
bool tile_exec_next_fold_point(TileExecutor *e, ExecFrame *frame, const ExecInstruction *yield);

/* Is x, with index i, to take the place of the best so far in an arg_max (or arg_min)? */
bool tile_exec_is_better(bool maximum, TileScalar scalar, uint64_t x, int64_t i, uint64_t best, int64_t best_index);

#endif
