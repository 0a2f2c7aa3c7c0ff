/* NVIDIA GPUs through the CUDA driver, which is opened on first use: neither building nor running without a GPU needs
 * anything of CUDA. All functions may be called from any thread. */
#ifndef TILE_LAUNCH_CUDA_H
#define TILE_LAUNCH_CUDA_H

#include "launch/argument.h"
#include "launch/cuda_driver.h"

/* A TileCudaModule is the code of one kernel, for every device; it is loaded on its first launch. */
typedef struct TileCudaPhase {
    const char *symbol;    /* of the entry; copied */
    uint32_t threads;      /* of a block */
    uint64_t shared_bytes; /* of a block */
    bool waits;            /* the code itself waits for the end of the previous grid */
    bool resident;         /* a launch has as many blocks as run at a time, each of which takes programs in turn */
    uint32_t map_count;
    const TileImageMap *maps; /* copied */
} TileCudaPhase;

/* ptx: text, copied. NULL if out of memory. */
TileCudaModule *tile_cuda_module_create(const char *ptx, size_t length, const TileCudaPhase *phases, uint32_t count);
/* From an object's binary, which is borrowed. */
TileCudaModule *tile_cuda_module_borrow(const TileImageBinary *binary, const TileCudaPhase *phases, uint32_t count);
/* The driver waits for the module's grids before it unloads the code. No graph may contain it. */
void tile_cuda_module_destroy(TileCudaModule *module);

/* Do launches of any phase take tensor maps? */
bool tile_cuda_has_maps(const TileCudaModule *module);

/* The device and stream of a launch, from its arguments and options. */
typedef struct TileCudaStream {
    int device;
    void *stream; /* CUstream; NULL: the default stream */
    TileCudaScope scope;
} TileCudaStream;

/* Between begin and end a context of the device is current and the module's code is ready: loaded, with its shared
 * memory size set, and the tensors checked to be in the device's memory. lows: the lowest address of each parameter, 0
 * for scalars. If begin fails, end is not called. */
tile_status tile_cuda_begin(TileCudaModule *module, TileCudaStream *on, const TileImageSignature *signature,
                            const uint64_t *lows, TileError *error);
void tile_cuda_end(TileCudaStream *on);
/* Is nothing to be done for begin, nor for end: the primary context is current, the code ready, and are these `count` lowest
 * addresses known? */
bool tile_cuda_is_ready(TileCudaModule *module, int device, const uint64_t *lows, uint32_t count);
/* The default stream, under either handle, is never captured. */
static inline bool tile_cuda_may_be_captured(const TileCudaStream *on) { return (uintptr_t)on->stream > 1; }
/* Does a graph capture what is queued now? The query takes 20 ns. */
tile_status tile_cuda_captures(const TileCudaStream *on, const char *kernel, bool *captures, TileError *error);

/* Queues `programs` programs of a phase, a block each. slots: `slot_count` words, the kernel's parameters before begin
 * and end. records: the last parameter, an address, of a phase with assertions or prints (launch/cuda_records.h); else
 * NULL. A phase that waits by itself starts while the previous grid ends. Returns without waiting. */
tile_status tile_cuda_launch(TileCudaModule *module, uint32_t phase, const TileCudaStream *on, const uint64_t *slots,
                             uint32_t slot_count, int64_t programs, const uint64_t *records, const char *kernel,
                             TileError *error);
/* The same with a list of parameters that is ready but for those behind the slots. */
enum { TILE_CUDA_MORE_PARAMETERS = TILE_MAX_MAPS + 3 };
typedef struct TileCudaParameters {
    void **list;    /* addresses of words, as the driver takes them, and room for TILE_CUDA_MORE_PARAMETERS behind them */
    uint32_t count; /* of words */
    const uint64_t *slots; /* the same words in order, of which maps are made; not looked at where there are none */
    const uint64_t *records;
    const char *kernel;
} TileCudaParameters;
tile_status tile_cuda_queue(TileCudaModule *module, uint32_t phase, const TileCudaStream *on,
                            const TileCudaParameters *parameters, int64_t programs, TileError *error);
/* The same, if one grid takes all programs and nothing stands behind them in the list, which is complete: the addresses of 0 and of
 * `programs` follow the slots. Returns what the driver says, or NO_LIST: nothing is queued. */
enum { TILE_CUDA_NO_LIST = -1 };
int tile_cuda_queue_list(const TileCudaModule *module, uint32_t phase, const TileCudaStream *on, void **list, int64_t programs);
/* Hands ownership to the module; *next is what it owned before. */
typedef struct TileCudaCaptured TileCudaCaptured;
void tile_cuda_module_keep(TileCudaModule *module, TileCudaCaptured *captured, TileCudaCaptured **next);

/* Memory that is allocated and freed in the order of the stream. */
tile_status tile_cuda_allocate(const TileCudaStream *on, size_t bytes, const char *kernel, void **memory,
                               TileError *error);
void tile_cuda_free(const TileCudaStream *on, void *memory);

/* Two events in a stream of the device whose context is current, and the time between them by the device's clock. */
typedef struct TileCudaTimer {
    void *begin, *end;
} TileCudaTimer;
tile_status tile_cuda_timer_create(TileCudaTimer *timer, TileError *error);
void tile_cuda_timer_destroy(TileCudaTimer *timer);
tile_status tile_cuda_timer_start(const TileCudaTimer *timer, void *stream, TileError *error);
/* Waits for everything queued since. */
tile_status tile_cuda_timer_stop(const TileCudaTimer *timer, void *stream, double *seconds, TileError *error);

/* Compute capability of a device as 10 * major + minor; 0 where there is none. */
int tile_cuda_capability(int device);
/* Can code for the capability, or only for it (`alone`), run on the device? */
bool tile_cuda_runs(int device, uint32_t capability, bool alone);
/* Can a cubin for the capability run on every device of this machine? */
bool tile_cuda_all_run(uint32_t capability);
enum { TILE_CUDA_MOST_DEVICES = 64 }; /* devices with higher numbers are not used */
/* "NVIDIA H200"; false if there is no such device. */
bool tile_cuda_device_name(int device, char *name, size_t size);
/* NULL: the driver is usable and has a device. Else the reason; static. */
const char *tile_cuda_why_not(void);

#endif
