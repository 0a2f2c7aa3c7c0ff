/* Running compiled kernels on tensors. Needs no compiler and no LLVM.
 *
 * A TileLibrary holds kernels; tile_library_kernel borrows one by name; tile_launch runs it on arguments in the
 * order of its parameters. Everything is checked before anything runs: a call that returns an error has written
 * nothing to any tensor, unless memory ran out or an assertion failed on the way (see tile_launch).
 *
 * All functions here may be called from any number of threads at once, unless said otherwise. None of them exits,
 * aborts, or changes errno or the locale. They need 256 KiB of stack; what compiles makes a stack of its own where that
 * of the caller's thread has less than 4 MiB left.
 *
 * Mistakes of the caller. Where a pointer is NULL, a number absurd or an enumeration's value none, functions of all
 * headers with a status give TILE_INVALID_ARGUMENT, those without give 0, false or NULL (texts may be ""), and neither
 * has done anything. NULL is good for options and what lies in them, `error`, `report`, `host`, streams and strides,
 * for what a function destroys, and where it is said. A struct_size is at least that of the first member; lists have
 * at most 65,536 entries; texts to compile at most 256 MiB. */
#ifndef TILE_LAUNCH_H
#define TILE_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tile/dlpack.h"
#include "tile/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TileLibrary TileLibrary;
typedef struct TileKernel TileKernel;
typedef struct TileThreadPool TileThreadPool;

enum { TILE_MAX_RANK = 8 };

/* What is wrong with an argument. X(ID, text) */
#define TILE_ERROR_LIST(X)                                                                                             \
    X(OTHER, "nothing about an argument")                                                                              \
    X(COUNT, "the number of arguments")                                                                                \
    X(KIND, "a tensor in the place of a scalar, or the other way round")                                               \
    X(TYPE, "element type")                                                                                            \
    X(RANK, "rank")                                                                                                    \
    X(EXTENT, "an extent")                                                                                             \
    X(DEVICE, "device")                                                                                                \
    X(ADDRESS, "no address, or one that is not aligned to the element, or leaves the address space")                   \
    X(READ_ONLY, "read-only memory that the kernel writes")                                                            \
    X(OVERLAP, "memory that is shared with another argument, or among elements")                                       \
    X(VALUE, "a scalar that its type cannot hold")                                                                     \
    X(REQUIRE, "a `require` clause")

typedef enum TileErrorCode {
#define TILE_ERROR_ENUM(id, text) TILE_ERROR_##id,
    TILE_ERROR_LIST(TILE_ERROR_ENUM)
#undef TILE_ERROR_ENUM
} TileErrorCode;

/* The message of a failure. The caller owns it and passes it to a call; the call fills it when it fails and does not
 * change it when it succeeds. One thread at a time per object. */
typedef struct TileError {
    tile_status status;
    TileErrorCode code;   /* of the first of several errors */
    int32_t argument;     /* index of the argument that it is about; -1: of none */
    uint32_t reserved[5]; /* zero; for members of later versions */
    char message[992]; /* always terminated; several errors on lines of their own; a longer text is truncated, "..." */
} TileError;

/* The complete diagnostics of a compilation or a launch: errors and warnings with their locations. One thread at a
 * time. */
typedef struct TileReport TileReport;

/* For people: file:line:column, the text, the source line with the location marked, notes and the proposed edit.
 * Borrowed from the report; "" if it is empty, and for NULL. */
TILE_API const char *tile_report_text(TileReport *report, bool colour);
/* For editors: one JSON array, an empty one for NULL. Borrowed from the report. */
TILE_API const char *tile_report_json(TileReport *report);
TILE_API size_t tile_report_error_count(const TileReport *report);
/* NULL is allowed. */
TILE_API void tile_report_destroy(TileReport *report);

/* ---- arguments ---- */

typedef enum TileArgKind {
    TILE_ARG_NONE, /* only where a function allows it */
    TILE_ARG_TENSOR,
    TILE_ARG_INTEGER,
    TILE_ARG_UNSIGNED,
    TILE_ARG_NUMBER,
    TILE_ARG_BOOL
} TileArgKind;

/* One argument of a kernel: a tensor, borrowed for the call, or a scalar, converted to the parameter's type (an
 * integer must fit, a number is rounded to nearest even). */
typedef struct TileArg {
    TileArgKind kind;
    uint32_t flags; /* TILE_ARG_READ_ONLY, TILE_ARG_PADDED */
    union {
        const DLTensor *tensor;
        int64_t integer;
        uint64_t unsigned_integer;
        double number;
    } value;
} TileArg;

enum {
    TILE_ARG_READ_ONLY = 1, /* the memory must not be written; refused for an `out` or `inout` parameter */
    TILE_ARG_PADDED = 4     /* elements of less than 8 bits have a byte each, which no kernel takes */
};

static inline TileArg tile_arg_tensor(const DLTensor *tensor) {
    TileArg arg = {TILE_ARG_TENSOR, 0, {tensor}};
    return arg;
}
static inline TileArg tile_arg_managed(const DLManagedTensorVersioned *managed) {
    uint64_t known = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED; /* TILE_ARG_.. */
    TileArg arg = {TILE_ARG_TENSOR, (uint32_t)(managed->flags & known), {&managed->dl_tensor}};
    return arg;
}
static inline TileArg tile_arg_integer(int64_t integer) {
    TileArg arg = {TILE_ARG_INTEGER, 0, {NULL}};
    arg.value.integer = integer;
    return arg;
}
static inline TileArg tile_arg_unsigned(uint64_t integer) {
    TileArg arg = {TILE_ARG_UNSIGNED, 0, {NULL}};
    arg.value.unsigned_integer = integer;
    return arg;
}
static inline TileArg tile_arg_number(double number) {
    TileArg arg = {TILE_ARG_NUMBER, 0, {NULL}};
    arg.value.number = number;
    return arg;
}
static inline TileArg tile_arg_bool(bool truth) {
    TileArg arg = {TILE_ARG_BOOL, 0, {NULL}};
    arg.value.integer = truth;
    return arg;
}

#define TILE_TENSOR(tensor) tile_arg_tensor(tensor) /* const DLTensor * */
#define TILE_MANAGED(managed)                                                                                          \
    tile_arg_managed(managed) /* const DLManagedTensorVersioned *: its flags count */
#define TILE_INTEGER(integer) tile_arg_integer(integer)
#define TILE_UNSIGNED(integer) tile_arg_unsigned(integer)
#define TILE_NUMBER(number) tile_arg_number(number)
#define TILE_TRUTH(truth) tile_arg_bool(truth)

/* ---- launching ---- */

/* Receives a line that a kernel prints, including its newline; not terminated. Called by the thread that launches, so
 * it may take locks that this thread holds. */
typedef void (*TilePrint)(void *host, const char *line, size_t length);

/* A launch as an observer sees it. */
typedef struct TileLaunchEvent {
    size_t struct_size; /* the library's sizeof(TileLaunchEvent) */
    const TileKernel *kernel;
    const TileArg *arguments; /* NULL: of a bound call */
    size_t argument_count;
    void *stream;
    tile_status status; /* `after`: the launch's; on a GPU the work may only be queued */
} TileLaunchEvent;

/* Called on the thread that launches, for profilers: ranges of NVTX, markers of perf. Either function may be NULL. */
typedef struct TileObserver {
    void (*before)(void *host, const TileLaunchEvent *event);
    void (*after)(void *host, const TileLaunchEvent *event);
    void *host;
} TileObserver;

/* Members after struct_size may be left zero. */
typedef struct TileLaunchOptions {
    size_t struct_size;      /* sizeof(TileLaunchOptions) */
    void *stream;            /* GPU: a CUstream, NULL the default one; a CPU has none: must be NULL */
    TileError *error;        /* filled when the launch fails; may be NULL */
    TileThreadPool *threads; /* runs the programs; NULL: the process's own pool (see tile_thread_pool_create) */
    TilePrint print;         /* called with what kernels print; NULL: written to standard error. Of a launch that a
                                graph captures, whenever it runs, by a thread of the driver; it calls no CUDA then */
    void *print_host;        /* its first argument */
    TileReport **report;     /* set when the launch fails, else to NULL: all errors, in full; the caller destroys it */
    const TileObserver *observer; /* told of each launch; NULL: nobody is */
    uint32_t flags;               /* TILE_LAUNCH_* */
} TileLaunchOptions;

enum {
    /* Only like one of the last launches, with the same types, shapes, strides and scalars, which the kernel remembers;
     * else TILE_NOT_FOUND, and nothing has run. For callers that hold a lock which they would let go of for longer.
     * tile_launch_bound: only with addresses for which tile_launch would take the same code, and would find no error;
     * for callers that bind what they launch often. Plans do not look at it. */
    TILE_LAUNCH_REMEMBERED = 1
};

/* Runs the kernel once, and returns when all of it is done; on a GPU, when all of it is queued on the stream, but for
 * grids that print or have assertions: those have ended, unless a graph captures them.
 *
 * `arguments` has one entry per parameter, in the order of the kernel's text. Tensors: shape in elements, strides in
 * elements (any sign, zero too for `in`; NULL means row-major without gaps), data + byte_offset the address of
 * element 0, aligned to the element. A tensor without elements is legal and may have NULL data, one of rank 0 NULL
 * shape. `out` and `inout`
 * tensors share no memory with any other argument. The memory of all tensors is the caller's and must stay alive
 * and, but for this call, unchanged until the call returns.
 *
 * Code for a kind of argument that the kernel has not seen is compiled first, where the library can compile; other
 * threads that need the same code wait for it.
 *
 * TILE_INVALID_ARGUMENT: the arguments do not fit, and the message names kernel, parameter, expected and given; or an
 * `assert` is false (the target interp checks all, others those compiled with TILE_COMPILE_DEBUG), and the message is
 * "kernel: file:line:column: assertion failed: text", of the first that came to be known where several fail. Programs
 * of its grid may go on and no later grid begins, so `out` and `inout` tensors may have been written.
 * TILE_INVALID_SOURCE: this instance of the kernel has errors, which were not to be seen before types and static values
 * were known; the report has each with its place, notes and edit, the message as much of that as it can hold.
 * TILE_OUT_OF_MEMORY, TILE_BACKEND, TILE_INTERNAL.
 *
 * On a GPU the thread's current context is what it was when the call returns; a stream may be capturing a graph. An
 * address that is not the device's, its kernel never having seen it before, is TILE_INVALID_ARGUMENT, a block that
 * needs more shared memory than there is TILE_UNAVAILABLE, an error of the driver TILE_DRIVER with the driver's name
 * for it. */
TILE_API tile_status tile_launch(TileKernel *kernel, const TileArg *arguments, size_t argument_count,
                                 const TileLaunchOptions *options) TILE_MUST_CHECK;

/* As tile_launch up to, but without, running: checks the arguments and compiles what they need. Code for a GPU is
 * loaded there, so that the first launch takes no longer than the next. A tensor needs no memory: where its data is
 * NULL, it is taken to lie on a multiple of 128 bytes, apart from all others. */
TILE_API tile_status tile_prepare(TileKernel *kernel, const TileArg *arguments, size_t argument_count,
                                  const TileLaunchOptions *options) TILE_MUST_CHECK;

/* ---- bound calls ---- */

/* A launch of which all but the addresses of its tensors is fixed and checked. */
typedef struct TileBound TileBound;

/* Checks and compiles as tile_prepare does, also without memory, and keeps the arguments: scalars, shapes, strides,
 * addresses. It does not keep the structs that `arguments` points to. *bound is set on success only; it is destroyed
 * before its library. */
TILE_API tile_status tile_bind(TileKernel *kernel, const TileArg *arguments, size_t argument_count,
                               const TileLaunchOptions *options, TileBound **bound) TILE_MUST_CHECK;
/* No launch of it may be running, nor queued on a GPU. NULL is allowed. */
TILE_API void tile_bound_destroy(TileBound *bound);

/* Launches it as tile_launch does. addresses: of element 0 of each tensor, data + byte_offset, an entry for each
 * parameter, those of scalars being ignored; NULL: the addresses that it was bound with. They are checked: alignment as
 * far as the code relies on it, and that what is written is shared with nothing. Any number of threads may launch one
 * bound call at once. */
TILE_API tile_status tile_launch_bound(const TileBound *bound, void *const *addresses,
                                       const TileLaunchOptions *options) TILE_MUST_CHECK;

/* A launch of a plan. */
typedef struct TileLaunchStep {
    const TileBound *bound;
    void *const *addresses; /* as for tile_launch_bound */
} TileLaunchStep;

/* Launches all steps, in order, in one call; the first that fails ends it. Steps may be of different libraries; on GPUs
 * all are queued on one stream. */
TILE_API tile_status tile_launch_steps(const TileLaunchStep *steps, size_t count,
                                       const TileLaunchOptions *options) TILE_MUST_CHECK;

/* Do the kernel's tensors lie on an NVIDIA GPU (kDLCUDA)? Otherwise in host memory. */
TILE_API bool tile_kernel_is_gpu(const TileKernel *kernel);

/* ---- GPU memory, for programs without another allocator ---- */

/* device: the number of an NVIDIA GPU, as in a DLTensor's device_id with kDLCUDA. Sizes in bytes; `memory` is a device
 * address. Reads and writes return when they are done; write and read see what was queued on the default stream before.
 * TILE_UNAVAILABLE: no GPU, or no driver, and `error`, which may be NULL, says why; TILE_OUT_OF_MEMORY; TILE_DRIVER. */
TILE_API tile_status tile_device_allocate(int device, size_t bytes, void **memory, TileError *error) TILE_MUST_CHECK;
/* NULL is allowed. */
TILE_API void tile_device_release(int device, void *memory);
TILE_API tile_status tile_device_write(int device, void *memory, const void *host, size_t bytes,
                                       TileError *error) TILE_MUST_CHECK;
TILE_API tile_status tile_device_read(int device, void *host, const void *memory, size_t bytes,
                                      TileError *error) TILE_MUST_CHECK;
/* Waits for all work queued on the stream (NULL: the default one). TILE_INVALID_ARGUMENT: an assertion failed in a
 * graph that has run on the device since the last call; the message is as of tile_launch. */
TILE_API tile_status tile_device_synchronize(int device, void *stream, TileError *error) TILE_MUST_CHECK;

/* ---- libraries, and the signatures of their kernels ---- */

/* Releases the library and its kernels. No launch may be running, nor queued on a GPU, and no CUDA graph that captured
 * one may run afterwards. NULL is allowed. */
TILE_API void tile_library_destroy(TileLibrary *library);
TILE_API size_t tile_library_kernel_count(const TileLibrary *library);
/* Borrowed from the library; NULL past the end. */
TILE_API TileKernel *tile_library_kernel_at(const TileLibrary *library, size_t index);
/* The kernel of this name, or the export (`export softmax[bf16] as softmax_bf16`), borrowed from the library; name
 * NULL: its only kernel. TILE_NOT_FOUND leaves *kernel alone. */
TILE_API tile_status tile_library_kernel(const TileLibrary *library, const char *name,
                                         TileKernel **kernel) TILE_MUST_CHECK;

typedef enum TileParameterKind { TILE_PARAMETER_TENSOR, TILE_PARAMETER_SCALAR } TileParameterKind;
typedef enum TileParameterAccess { TILE_PARAMETER_IN, TILE_PARAMETER_OUT, TILE_PARAMETER_INOUT } TileParameterAccess;

/* A parameter of a kernel. Texts live as long as the library. */
typedef struct TileParameterInfo {
    const char *name;
    TileParameterKind kind;
    TileParameterAccess access;
    const char *type;                      /* as written: "f32", or a type parameter such as "T" */
    DLDataType dtype;                      /* bits 0: a type parameter that the arguments bind */
    int rank;                              /* tensors; 0 to TILE_MAX_RANK */
    const char *dimensions[TILE_MAX_RANK]; /* as written: "N", "2 * N", "3" */
} TileParameterInfo;

TILE_API const char *tile_kernel_name(const TileKernel *kernel);
TILE_API size_t tile_kernel_parameter_count(const TileKernel *kernel);
/* False past the end. */
TILE_API bool tile_kernel_parameter(const TileKernel *kernel, size_t index, TileParameterInfo *info);
/* One line: softmax(x: in T[M, N], y: out T[M, N]). Lives as long as the library. */
TILE_API const char *tile_kernel_signature(const TileKernel *kernel);

/* The `///` comment before the kernel; "" where there is none, and of linked kernels. Lives as long as the library. */
TILE_API const char *tile_kernel_doc(const TileKernel *kernel);
/* Can a launch call `print`? False of linked kernels. */
TILE_API bool tile_kernel_prints(const TileKernel *kernel);

typedef enum TileSettingKind {
    TILE_SETTING_TYPE,     /* a type parameter, which arguments decide unless it is set */
    TILE_SETTING_CONSTANT, /* a `const` parameter */
    TILE_SETTING_FUNCTION, /* a function parameter */
    TILE_SETTING_STATIC,   /* a static dimension or scalar */
    TILE_SETTING_TUNE      /* a name of a `tune` clause */
} TileSettingKind;

enum { TILE_MAX_SETTING_TYPES = 32 };

/* What may be set when a kernel is compiled (TileSetting). Texts live as long as the library. */
typedef struct TileSettingInfo {
    size_t struct_size; /* the caller's sizeof(TileSettingInfo) */
    const char *name;
    TileSettingKind kind;
    const char *allowed;   /* TYPE: "f16 | bf16 | f32"; CONSTANT: its type; TUNE: "1, 4"; else "" */
    const char *value;     /* what it was set to; NULL: nothing */
    const char *otherwise; /* what it is where nothing is set; NULL: what the arguments say, or an error */
    const char *family;    /* TUNE: "cpu" or "gpu", on which alone the clause counts; NULL: on all */
    size_t type_count;     /* TYPE: of `types` */
    DLDataType types[TILE_MAX_SETTING_TYPES];
} TileSettingInfo;
/* In the order of the text; false past the end, and of linked kernels, which have none. */
TILE_API bool tile_kernel_setting(const TileKernel *kernel, size_t index, TileSettingInfo *info);

/* Infers one tensor argument from the others, so that a caller can allocate it: `arguments` as for tile_launch, with
 * kind TILE_ARG_NONE where the argument is not known yet (scalars must be known). On success dtype and shape
 * (TILE_MAX_RANK entries) hold the parameter's; *known has bit i set where dimension i is known, and shape[i] is -1
 * elsewhere. dtype->bits is 0 if the arguments do not determine it. Compiles if necessary, and fails as a launch does.
 * options may be NULL; of them `error` and `report` count. */
TILE_API tile_status tile_kernel_infer(TileKernel *kernel, const TileArg *arguments, size_t argument_count,
                                       size_t parameter, DLDataType *dtype, int64_t *shape, uint32_t *known,
                                       const TileLaunchOptions *options) TILE_MUST_CHECK;

/* Counters since the library was created. */
typedef struct TileKernelStats {
    uint64_t launches; /* that began to run */
    uint64_t misses;   /* calls, of tile_prepare too, that found no code for their arguments */
    uint64_t variants; /* compiled */
    uint64_t compile_ns;
    uint64_t evictions; /* variants that were evicted, least recently used first: a kernel keeps 64, on GPUs 256 */
    uint64_t hits;      /* launches that found their code */
    uint64_t guard_ns;  /* that all hits took before their code ran, estimated from one of 64 launches of a variant */
} TileKernelStats;
/* All zeros for NULL; stats may be NULL. */
TILE_API void tile_kernel_stats(const TileKernel *kernel, TileKernelStats *stats);

/* Prints, line by line, the code that the kernel has, what each variant relies on, how often it ran and how long it
 * took to compile, and for these arguments which of its guards fails: the given and the expected value. Compiles
 * nothing. TILE_INVALID_ARGUMENT as for tile_launch. `print` launches nothing of this kernel. options may be NULL; of
 * them `error` and `report` count. */
TILE_API tile_status tile_explain(TileKernel *kernel, const TileArg *arguments, size_t argument_count, TilePrint print,
                                  void *print_host, const TileLaunchOptions *options) TILE_MUST_CHECK;

/* ---- settings ---- */

/* What a launch does that finds no code for its arguments: */
typedef enum TileOnMiss {
    TILE_ON_MISS_WAIT = 1,   /* compiles it, or waits for the thread that does */
    TILE_ON_MISS_GENERAL,    /* compiles it; while another thread does, it runs the general code */
    TILE_ON_MISS_BACKGROUND, /* runs the general code, while a thread of the library compiles */
} TileOnMiss;
/* "wait", "general", "background"; NULL for no such value. */
TILE_API const char *tile_on_miss_name(TileOnMiss on_miss);

typedef enum TileLog {
    TILE_LOG_GUARDS = 1,  /* each miss: the guard, given and expected value, what was compiled, how long it took */
    TILE_LOG_COMPILE = 2, /* what is compiled, and what the disk cache had */
} TileLog;

/* Members that are zero come from the environment. An invalid value there is warned of, once in a process for each
 * variable, by a line that goes to the log's destination and names the value that is used instead. */
typedef struct TileSettings {
    size_t struct_size;
    const char *cpu_capability; /* TILE_CPU_CAPABILITY: a CPU target; code for better ones is neither made nor run */
    int threads;                /* TILE_NUM_THREADS; of the process's pool: only read */
    TileOnMiss on_miss;         /* TILE_ON_MISS; WAIT */
    int variant_limit;          /* TILE_VARIANT_LIMIT: specialised variants for the same types and static values; 8 */
    uint32_t log;               /* TILE_LOG, as in "guards,compile"; of TileLog */
    bool deterministic;         /* TILE_DETERMINISTIC=1: kernels that add floats atomically, and constants of tuning
                                   files that are not pinned, are refused */
    TilePrint log_print;        /* gets lines of the log; NULL: the error stream */
    void *log_host;
    bool allow_tf32;    /* TILE_ALLOW_TF32=1: GPUs may round the f32 operands of any dot to tf32, as dot[tf32] does */
    const char *tuning; /* TILE_TUNING: a tuning file whose constants take precedence; "off": none is read */
} TileSettings;

/* The settings of this process; struct_size is the caller's. */
TILE_API tile_status tile_settings_read(TileSettings *settings) TILE_MUST_CHECK;
/* Those of a library. */
TILE_API tile_status tile_library_settings(const TileLibrary *library, TileSettings *settings) TILE_MUST_CHECK;

/* ---- threads ---- */

/* Calls body(state, begin, end) over ranges that cover 0..count, each once, on any threads, and returns when all
 * are done. The library asks for about `pieces` ranges. */
typedef void (*TileParallelBody)(void *state, int64_t begin, int64_t end);
typedef void (*TileParallelFor)(void *host, int64_t count, int64_t pieces, TileParallelBody body, void *state);

typedef struct TileThreadPoolOptions {
    size_t struct_size;
    int threads;                  /* callers included; 0: TILE_NUM_THREADS, else the cores that this process may use */
    TileParallelFor parallel_for; /* the host's threads instead of own ones; may be NULL */
    void *host;                   /* first argument of parallel_for */
} TileThreadPoolOptions;

/* A pool of threads that run programs of kernels. Threads start with the first work that is worth sharing. After fork()
 * the child starts threads of its own when it needs them. Launches that name no pool use one pool of the process,
 * created at the first launch with default options and never destroyed: from then on the code of this library stays
 * mapped, whoever closes it. That pool shares the threads of an OpenMP runtime that the process uses (docs/launching.md). Threads have stacks of at least 4 MiB. At most 1,024 threads. */
TILE_API tile_status tile_thread_pool_create(const TileThreadPoolOptions *options,
                                             TileThreadPool **pool) TILE_MUST_CHECK;
/* Waits for its threads to end. No launch may be using the pool. NULL is allowed. */
TILE_API void tile_thread_pool_destroy(TileThreadPool *pool);
/* The number of threads that work at once, including the caller's; pool NULL: of the process's pool. */
TILE_API int tile_thread_pool_size(TileThreadPool *pool);

#ifdef __cplusplus
}
#endif
#endif
