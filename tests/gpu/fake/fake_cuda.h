/* A CUDA driver without a GPU, for tests of what the launcher asks of one: it keeps account of memory, contexts,
 * libraries and launches, refuses what a real driver would refuse, and fails where it is told to. Kernels do nothing,
 * or what a test does for them. Its memory is the host's, so that copies are real.
 *
 * Programs find it as libcuda.so.1: those that are linked with it, or with its folder in LD_LIBRARY_PATH. There the
 * variable FAKE_CUDA configures it, in words: `devices=2`, `capability=80`, `shared=49152` (bytes of a block at most),
 * `version=12040`, `memory=1000000` (bytes of a device), `lenient` (starts without a device too),
 * `fail=cuMemAlloc_v2:1:2` (call, which one, result). */
#ifndef TILE_TESTS_FAKE_CUDA_H
#define TILE_TESTS_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct FakeCudaState {
    int allocations, libraries, events; /* alive */
    int primary_references[4];
    int context_depth; /* of the calling thread's stack */
    int calls;         /* of any function but those that ask for an error's words */
    int launches;
    int cubins;     /* libraries that were loaded assembled */
    int violations; /* calls that a driver would have refused */
} FakeCudaState;
FakeCudaState fake_cuda_state(void);
/* How often a function was called. */
int fake_cuda_calls(const char *function);
/* The nth call from now on of a function gives this result and does nothing else; NULL: of any function. */
void fake_cuda_fail(const char *function, int nth, int result);
/* True when the failure that was asked for has happened. */
bool fake_cuda_has_failed(void);

void fake_cuda_set_devices(int count);
void fake_cuda_set_shared_limit(int bytes);

/* A context that is no device's primary one, and a stream; they live as long as the process. */
void *fake_cuda_context(int device);
void *fake_cuda_stream(void *context);
void *fake_cuda_primary(int device);
void *fake_cuda_current(void);
/* Captures from now on; ending it says whether nothing forbidden was called meanwhile. */
void fake_cuda_begin_capture(void);
bool fake_cuda_end_capture(void);
/* What was captured happens; and is gone, with its memory. */
void fake_cuda_run_graph(void);
void fake_cuda_drop_graph(void);

/* Memory that the driver knows and that is not a device's own. */
enum { FAKE_CUDA_HOST = 1, FAKE_CUDA_MANAGED = 4 };
void *fake_cuda_register(size_t bytes, int type);

typedef struct FakeCudaLaunch {
    const char *kernel;
    void *context, *stream;
    unsigned grid, block, shared_bytes;
    bool early;              /* may begin before the grid before it has ended */
    uint64_t parameters[64]; /* as many as fake_cuda_expect has said, and there are */
} FakeCudaLaunch;
void fake_cuda_expect(unsigned parameters);
/* Called for each launch; NULL: kernels do nothing. It calls nothing of the driver. */
void fake_cuda_set_kernel(void (*kernel)(const FakeCudaLaunch *launch));
/* Of all launches, from 0 on; NULL past the last. */
const FakeCudaLaunch *fake_cuda_launch(int number);

#endif
