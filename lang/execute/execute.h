/* The executor: runs functions of both forms as ops.def and eval.def define them, one op after the other. It is the
 * reference that every pass and every back end is compared with, so it checks what compiled code takes for granted:
 * every access against the memory object that its pointer came from, and that no poison (lanes that are invalid,
 * memory never written) reaches a stored lane, an address, a branch or the host.
 *
 * It can be stopped after any number of steps and resumed: its state is an array of frames, not the C stack. Each
 * frame has a set of active lanes; a CPU kernel is one lane. */
#ifndef TILE_LANG_EXECUTE_EXECUTE_H
#define TILE_LANG_EXECUTE_EXECUTE_H

#include "base/print_line.h"
#include "lang/ir/ir.h"

typedef enum TileExecution {
    TILE_EXECUTION_DONE,
    TILE_EXECUTION_PAUSED,    /* all steps used up: run again to go on */
    TILE_EXECUTION_FAULT,     /* the function did what it must not do */
    TILE_EXECUTION_ASSERT,    /* an assert is false */
    TILE_EXECUTION_REQUIRE,   /* a require is false: the kernel is not to be launched so */
    TILE_EXECUTION_CHECK_DIM, /* an argument has the wrong extent: likewise */
    TILE_EXECUTION_OUT_OF_MEMORY,
    TILE_EXECUTION_RACE, /* programs of one grid, which nothing orders, meet at an element */
    TILE_EXECUTION_UNDEFINED, /* what comes of an element of a temporary that nothing has stored is used */
} TileExecution;

typedef struct TileExecutorOptions {
    bool no_poison; /* faster: poison is not tracked; invalid lanes are all ones */
    uint64_t seed;  /* other than 0: programs of a grid and points of a parallel loop run in a random order */
    bool phases;    /* the kernel's phases run in place of its grids' regions */
    unsigned chunks; /* of programs for each phase, cut at random where there is a seed; 0: one */
    uint64_t most_bytes;   /* of memory for values, temps and buffers; 0: no limit */
    unsigned vector_scale; /* scalable vectors are this many times as long as they say; 0: 1 */
    TilePrintLine print;   /* takes what `print` writes; NULL: nobody does */
    void *print_host;
    const TileOp **assertion; /* set to the assert that is false; may be NULL */
    /* Counts what ran under a mask: accesses, and mask_lt, which makes one. What the mask of an access tells apart are
     * lanes that exist and such that do not: one that is true for the same threads of every block, and not for others,
     * tells apart threads that hold the same element, and does not count. May be NULL. */
    uint64_t *masked;
    bool slack;       /* of tile form: how far sums in another order may lead; see TileExecutorTensor.slack */
    TileText *values; /* set to what its message shows of values, "n = 7", or ""; may be NULL */
} TileExecutorOptions;

/* Memory of an argument: bytes data - below .. data + above may be touched. */
typedef struct TileExecutorTensor {
    void *data;
    uint64_t below, above;
    int64_t extent[TILE_MAX_TENSOR_RANK];
    int64_t stride[TILE_MAX_TENSOR_RANK]; /* bytes */
    /* With options.slack: for each element of below + above bytes, by how much it may differ from what the kernel computes
     * where sums of floats are added in another order; infinite where nothing is known. Set for what is stored; or NULL. */
    double *slack;
} TileExecutorTensor;

typedef struct TileExecutor TileExecutor;

/* The function has to be verified, and may not change while the executor lives. Values are numbered anew, so a module
 * has one executor in one thread at a time being created or deciding on a call. NULL if out of memory. */
TileExecutor *tile_executor_create(TileFunc *func, const TileExecutorOptions *options);
void tile_executor_destroy(TileExecutor *executor);

/* Binding: by the number of the function's parameter and fitting its type. Tiles take one element for each lane. */
void tile_executor_bind_tensor(TileExecutor *executor, unsigned parameter, const TileExecutorTensor *tensor);
void tile_executor_bind_pointer(TileExecutor *executor, unsigned parameter, void *data, uint64_t below, uint64_t above,
                                bool writable);
void tile_executor_bind_scalar(TileExecutor *executor, unsigned parameter, uint64_t bits);
void tile_executor_bind_lanes(TileExecutor *executor, unsigned parameter, const uint64_t *bits);

/* Goes on for at most max_steps operations (0: without end). Results are in the arguments' memory. */
TileExecution tile_executor_run(TileExecutor *executor, uint64_t max_steps);
/* Why it stopped, with the op's location and text; "" when done or paused. */
const char *tile_executor_message(const TileExecutor *executor);
uint64_t tile_executor_steps(const TileExecutor *executor);
/* Lanes of a result of a function that is done; `poison`, which may be NULL, gets a byte for each lane. */
const uint64_t *tile_executor_result(const TileExecutor *executor, unsigned index, const uint8_t **poison);

/* Can it run this operation? A test holds it to yes for all of ops.def. */
bool tile_executor_knows(TileOpId id);

/* One argument of a kernel. */
typedef struct TileExecutorArgument {
    TileExecutorTensor tensor; /* where the parameter is a tensor */
    uint64_t bits;             /* where it is a scalar */
} TileExecutorArgument;

/* Runs a whole kernel: its host ops and all its grids, or its phases in their place. */
TileExecution tile_execute_kernel(TileFunc *kernel, const TileExecutorArgument *arguments,
                                  const TileExecutorOptions *options, TileText *message);

#endif
