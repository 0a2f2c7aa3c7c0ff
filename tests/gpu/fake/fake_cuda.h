/* A CUDA driver without a GPU, for tests of the launcher's calls: it tracks memory, contexts, libraries and launches,
 * rejects what a real driver would reject, and fails on request. Kernels do nothing, or call a function of the test.
 * Device memory is host memory, so copies are real.
 *
 * Programs load it as libcuda.so.1, if they are linked with it or have its folder in LD_LIBRARY_PATH. In the latter
 * case the variable FAKE_CUDA configures it, in words: `devices=2`, `capability=80`, `shared=49152` (bytes of a block
 * at most), `version=12040`, `memory=1000000` (bytes of a device), `lenient` (starts without a device too),
 * `fail=cuMemAlloc_v2:1:2` (function, which call, result). */
#ifndef TILE_TESTS_FAKE_CUDA_H
#define TILE_TESTS_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct FakeCudaState {
    int allocations, libraries, events; /* not yet freed */
    int primary_references[4];
    int context_depth; /* of the calling thread's stack */
    int calls;         /* of all functions except those for error messages */
    int launches;
    int cubins;     /* libraries that were loaded as cubin */
    int violations; /* calls that a real driver would reject */
    uint64_t kept;  /* bytes that the pool keeps, as it was last told */
} FakeCudaState;
FakeCudaState fake_cuda_state(void);
/* The number of calls of a function. */
int fake_cuda_calls(const char *function);
/* The nth call of a function from now on only returns this result; NULL: of any function. */
void fake_cuda_fail(const char *function, int nth, int result);
/* Has the requested failure happened? */
bool fake_cuda_has_failed(void);

void fake_cuda_set_devices(int count);
void fake_cuda_set_shared_limit(int bytes);
void fake_cuda_set_memory(size_t bytes);

/* A context that is not a device's primary one, and a stream; they live as long as the process. */
void *fake_cuda_context(int device);
void *fake_cuda_stream(void *context);
void *fake_cuda_primary(int device);
void *fake_cuda_current(void);
/* Begins a capture; ending it tells whether no forbidden call was made meanwhile. */
void fake_cuda_begin_capture(void);
bool fake_cuda_end_capture(void);
/* Executes a captured graph; destroys it, with its memory. */
void fake_cuda_run_graph(void);
void fake_cuda_drop_graph(void);

/* Memory known to the driver that is not a device's. */
enum { FAKE_CUDA_HOST = 1, FAKE_CUDA_MANAGED = 4 };
void *fake_cuda_register(size_t bytes, int type);

/* A tensor map, as this driver encodes it; axes are counted from the contiguous one. */
typedef struct FakeCudaMap {
    uint64_t address, extents[5], strides[5]; /* strides: of all axes but the first */
    uint32_t box[5];
    uint8_t mark, type, rank, swizzle, promotion, padding[1];
    int16_t lower[3], upper[3]; /* mode im2col; the first of box is that of channels */
    uint16_t positions;         /* 0: mode tiled */
} FakeCudaMap;
enum { FAKE_CUDA_MAP = 0xa7, FAKE_CUDA_MAPS = 2 };

typedef struct FakeCudaLaunch {
    const char *kernel;
    void *context, *stream;
    unsigned grid, block, shared_bytes;
    bool early;                       /* may begin before the previous grid has finished */
    uint64_t parameters[64];          /* as many as there are, up to the number set by fake_cuda_expect */
    FakeCudaMap maps[FAKE_CUDA_MAPS]; /* behind them, up to the number set by fake_cuda_expect_maps */
} FakeCudaLaunch;
void fake_cuda_expect(unsigned parameters);
void fake_cuda_expect_maps(unsigned maps);
/* Called at each launch; NULL: kernels do nothing. It must not call the driver. */
void fake_cuda_set_kernel(void (*kernel)(const FakeCudaLaunch *launch));
/* The launches, numbered from 0; NULL after the last. */
const FakeCudaLaunch *fake_cuda_launch(int number);

#endif
