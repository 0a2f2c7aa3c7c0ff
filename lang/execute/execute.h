/* The executor: interprets functions of both forms as ops.def and eval.def define them, op by op. It is the reference
 * for every pass and every back end, so it checks what compiled code assumes: that every access is in bounds of the
 * memory object that its pointer was derived from, and that no poison (invalid lanes, uninitialised memory) reaches a
 * stored lane, an address, a branch or the host.
 *
 * It can be stopped after any number of steps and resumed: its state is an array of frames, not the C stack. Each frame
 * has a set of active lanes; a CPU kernel has one lane. */
#ifndef TILE_LANG_EXECUTE_EXECUTE_H
#define TILE_LANG_EXECUTE_EXECUTE_H

#include "base/print_line.h"
#include "lang/ir/ir.h"

typedef enum TileExecution {
    TILE_EXECUTION_DONE,
    TILE_EXECUTION_PAUSED,    /* the step limit was reached: run again to continue */
    TILE_EXECUTION_FAULT,     /* an operation with undefined behaviour */
    TILE_EXECUTION_ASSERT,    /* an assert is false */
    TILE_EXECUTION_REQUIRE,   /* a require is false: the kernel must not be launched with these arguments */
    TILE_EXECUTION_CHECK_DIM, /* an argument has a wrong extent: likewise */
    TILE_EXECUTION_OUT_OF_MEMORY,
    TILE_EXECUTION_RACE,      /* unordered programs of a grid have conflicting accesses to an element */
    TILE_EXECUTION_UNDEFINED, /* a value that depends on an uninitialised element of a temporary is used */
    TILE_EXECUTION_STOPPED,   /* the observer wanted no more */
} TileExecution;

typedef struct TileExecutor TileExecutor;

/* Told of each statement of the source before it is executed (ops `statement`, which are there if the text was lowered
 * with TileLowerOptions.statements), and by tile_execute_kernel of an execution that fails, while its values can still
 * be read. It may read them, and change nothing. */
typedef struct TileExecutionObserver {
    bool (*statement)(void *host, const TileExecutor *executor, const TileOp *statement); /* false: stop */
    void (*failure)(void *host, const TileExecutor *executor, TileExecution state);
    void *host;
} TileExecutionObserver;

/* What was executed under a mask. A mask that is true for the same threads in every block selects one of several threads
 * that hold the same element, and does not count. */
typedef struct TileMaskedCounts {
    uint64_t lanes; /* by masks that distinguish existing lanes from missing ones */
    uint64_t data;  /* by such that depend on what was loaded from tensors, and on nothing else */
} TileMaskedCounts;

typedef struct TileExecutorOptions {
    bool no_poison;  /* faster: poison is not tracked; the bits of invalid lanes are all ones */
    uint64_t seed;   /* not 0: programs of a grid and iterations of a parallel loop run in a random order */
    bool phases;     /* the kernel's phases are run instead of its grids' regions */
    unsigned chunks; /* of programs, or bands, for each phase of a CPU, of random sizes if there is a seed; 0: one */
    uint64_t most_bytes;   /* of memory for values, temps and buffers; 0: no limit */
    unsigned vector_scale; /* scalable vectors have this many times their minimum length; 0: 1 */
    TilePrintLine print;   /* called for what `print` prints; NULL: dropped */
    void *print_host;
    const TileOp **assertion; /* set to the assert that failed; may be NULL */
    TileMaskedCounts *masked; /* counts executed masked accesses, and mask_lt ops, which create masks; may be NULL */
    bool slack;       /* of tile form: bounds the effect of the order of sums; see TileExecutorTensor.slack */
    TileText *values; /* set to the values in the failed assert's message, "n = 7", or ""; may be NULL */
    const TileExecutionObserver *observer; /* of tile form; may be NULL */
} TileExecutorOptions;

/* Memory of an argument: bytes data - below .. data + above may be accessed. */
typedef struct TileExecutorTensor {
    void *data;
    uint64_t below, above;
    int64_t extent[TILE_MAX_TENSOR_RANK];
    int64_t stride[TILE_MAX_TENSOR_RANK]; /* in bytes */
    /* With options.slack: for each element of the below + above bytes, a bound on the difference to what the kernel
     * computes if sums of floats are added in another order; infinite if none is known. Set for stored elements; or
     * NULL. */
    double *slack;
} TileExecutorTensor;

/* The function must have been verified, and must not change during the executor's life. Values are renumbered, so per
 * module only one thread at a time may create an executor or check a call. NULL if out of memory. */
TileExecutor *tile_executor_create(TileFunc *func, const TileExecutorOptions *options);
void tile_executor_destroy(TileExecutor *executor);

/* Binding, by parameter number; the argument must have the parameter's type. Tiles have one element for each lane. */
void tile_executor_bind_tensor(TileExecutor *executor, unsigned parameter, const TileExecutorTensor *tensor);
void tile_executor_bind_pointer(TileExecutor *executor, unsigned parameter, void *data, uint64_t below, uint64_t above,
                                bool writable);
void tile_executor_bind_scalar(TileExecutor *executor, unsigned parameter, uint64_t bits);
void tile_executor_bind_lanes(TileExecutor *executor, unsigned parameter, const uint64_t *bits);

/* Executes at most max_steps more operations (0: no limit). Results are in the arguments' memory. */
TileExecution tile_executor_run(TileExecutor *executor, uint64_t max_steps);
/* Why it stopped, with the op's location and text; "" if done or paused. */
const char *tile_executor_message(const TileExecutor *executor);
uint64_t tile_executor_steps(const TileExecutor *executor);
/* The lanes of a result of a finished function; `poison`, which may be NULL, is set to a byte for each lane. */
const uint64_t *tile_executor_result(const TileExecutor *executor, unsigned index, const uint8_t **poison);

/* For observers, values of the function that is executed: the lanes of a scalar or tile, of which those are undefined
 * whose byte of `poison` is set; the extents of a tensor; one of its elements, false if it is undefined or lies
 * outside. */
const uint64_t *tile_executor_lanes(const TileExecutor *executor, const TileValue *value, const uint8_t **poison);
void tile_executor_extents(const TileExecutor *executor, const TileValue *tensor, int64_t *extent);
bool tile_executor_element(const TileExecutor *executor, const TileValue *tensor, const int64_t *index, uint64_t *bits);

/* Is there a handler for this operation? A test checks that there is one for all of ops.def. */
bool tile_executor_knows(TileOpId id);

/* An argument of a kernel. */
typedef struct TileExecutorArgument {
    TileExecutorTensor tensor; /* if the parameter is a tensor */
    uint64_t bits;             /* if it is a scalar */
} TileExecutorArgument;

/* Runs a kernel: its host ops, and all its grids or their phases. */
TileExecution tile_execute_kernel(TileFunc *kernel, const TileExecutorArgument *arguments,
                                  const TileExecutorOptions *options, TileText *message);

#endif
