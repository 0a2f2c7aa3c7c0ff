/* A CUDA runtime without a GPU, over the fake driver of tests/gpu/fake: PyTorch's tensors and streams "on a GPU" that
 * is memory of the host. Preloaded, it stands before the runtime that PyTorch brings. Its kernels do nothing; copies
 * are real. With it the way of a launch from Python to the driver is tested and measured on a machine without a GPU
 * (test_fake_gpu.py). */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int cuCtxGetCurrent(void **context);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuMemAlloc_v2(uint64_t *memory, size_t bytes);
int cuMemFree_v2(uint64_t memory);
void *fake_cuda_stream(void *context);
void *fake_cuda_primary(int device);

static _Thread_local int device;

/* The runtime retains the device's primary context, and makes it the thread's current one. */
static void enter(void) {
    void *now, *wanted = fake_cuda_primary(device);
    cuCtxGetCurrent(&now);
    if (now == wanted) return;
    cuDevicePrimaryCtxRetain(&wanted, device);
    if (now) cuCtxPopCurrent_v2(&now);
    cuCtxPushCurrent_v2(wanted);
}

#undef cudaGetDeviceProperties
#undef cudaStreamGetCaptureInfo
#define SAYS(name, ...) __attribute__((visibility("default"))) cudaError_t name(__VA_ARGS__)

SAYS(cudaGetDeviceCount, int *n) {
    *n = 2;
    return 0;
}
SAYS(cudaGetDevice, int *d) {
    *d = device;
    return 0;
}
SAYS(cudaSetDevice, int d) {
    device = d;
    enter();
    return 0;
}
SAYS(cudaDriverGetVersion, int *v) {
    *v = 13020;
    return 0;
}
SAYS(cudaRuntimeGetVersion, int *v) {
    *v = 13020;
    return 0;
}
SAYS(cudaGetLastError, void) { return 0; }
SAYS(cudaPeekAtLastError, void) { return 0; }
SAYS(cudaGetDeviceProperties, struct cudaDeviceProp *p, int d) {
    memset(p, 0, sizeof *p);
    strcpy(p->name, "Fake GPU");
    p->major = 9;
    p->minor = 0;
    p->multiProcessorCount = 132;
    p->warpSize = 32;
    p->totalGlobalMem = 1u << 30;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsPerMultiProcessor = 2048;
    p->sharedMemPerBlock = 48 << 10;
    p->sharedMemPerBlockOptin = 227 << 10;
    p->regsPerMultiprocessor = 65536;
    p->maxGridSize[0] = 0x7fffffff;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    return 0;
}
SAYS(cudaDeviceGetAttribute, int *v, enum cudaDeviceAttr a, int d) {
    *v = a == 75 ? 9 : a == 76 ? 0 : 1;
    return 0;
}
SAYS(cudaDeviceCanAccessPeer, int *v, int a, int b) {
    *v = 0;
    return 0;
}
SAYS(cudaDeviceGetStreamPriorityRange, int *a, int *b) {
    *a = 0;
    *b = -5;
    return 0;
}
SAYS(cudaDeviceSynchronize, void) { return 0; }
SAYS(cudaMalloc, void **p, size_t n) {
    uint64_t m;
    enter();
    int r = cuMemAlloc_v2(&m, n);
    *p = (void *)m;
    return r;
}
SAYS(cudaFree, void *p) {
    enter();
    if (p) cuMemFree_v2((uint64_t)p);
    return 0;
}
SAYS(cudaHostAlloc, void **p, size_t n, unsigned f) {
    *p = malloc(n);
    return 0;
}
SAYS(cudaMallocHost, void **p, size_t n) {
    *p = malloc(n);
    return 0;
}
SAYS(cudaFreeHost, void *p) {
    free(p);
    return 0;
}
SAYS(cudaMemGetInfo, size_t *a, size_t *b) {
    *a = *b = 1u << 30;
    return 0;
}
SAYS(cudaMemcpyAsync, void *d, const void *s, size_t n, enum cudaMemcpyKind k, cudaStream_t t) {
    memcpy(d, s, n);
    return 0;
}
SAYS(cudaMemcpy, void *d, const void *s, size_t n, enum cudaMemcpyKind k) {
    memcpy(d, s, n);
    return 0;
}
SAYS(cudaMemsetAsync, void *d, int v, size_t n, cudaStream_t t) {
    memset(d, v, n);
    return 0;
}
SAYS(cudaMemset, void *d, int v, size_t n) {
    memset(d, v, n);
    return 0;
}
SAYS(cudaStreamCreateWithPriority, cudaStream_t *s, unsigned f, int p) {
    *s = fake_cuda_stream(fake_cuda_primary(device));
    return 0;
}
SAYS(cudaStreamCreateWithFlags, cudaStream_t *s, unsigned f) {
    *s = fake_cuda_stream(fake_cuda_primary(device));
    return 0;
}
SAYS(cudaStreamSynchronize, cudaStream_t s) { return 0; }
SAYS(cudaStreamQuery, cudaStream_t s) { return 0; }
/* Which streams were made to wait for which: "waits" of the test (fake_waits). */
typedef struct Event {
    cudaStream_t stream;
} Event;
static struct {
    cudaStream_t waits, for_stream;
} waits[64];
static int wait_count, events_have_passed = 1;

__attribute__((visibility("default"))) int fake_waits(int number, void **waits_there, void **for_stream) {
    if (number < wait_count) *waits_there = waits[number % 64].waits, *for_stream = waits[number % 64].for_stream;
    return wait_count;
}
__attribute__((visibility("default"))) void fake_events_pass(int pass) { events_have_passed = pass; }

SAYS(cudaStreamWaitEvent, cudaStream_t s, cudaEvent_t e, unsigned f) {
    waits[wait_count % 64].waits = s;
    waits[wait_count++ % 64].for_stream = ((Event *)e)->stream;
    return 0;
}
SAYS(cudaStreamIsCapturing, cudaStream_t s, enum cudaStreamCaptureStatus *t) {
    *t = 0;
    return 0;
}
SAYS(cudaStreamGetCaptureInfo, cudaStream_t s, enum cudaStreamCaptureStatus *t, unsigned long long *i, cudaGraph_t *g,
     const cudaGraphNode_t **d, const cudaGraphEdgeData **e, size_t *n) {
    *t = 0;
    if (i) *i = 0;
    return 0;
}
SAYS(cudaThreadExchangeStreamCaptureMode, enum cudaStreamCaptureMode *m) { return 0; }
SAYS(cudaEventCreateWithFlags, cudaEvent_t *e, unsigned f) {
    *e = calloc(1, sizeof(Event));
    return 0;
}
SAYS(cudaEventRecord, cudaEvent_t e, cudaStream_t s) {
    ((Event *)e)->stream = s;
    return 0;
}
SAYS(cudaEventRecordWithFlags, cudaEvent_t e, cudaStream_t s, unsigned f) { return cudaEventRecord(e, s); }
SAYS(cudaEventQuery, cudaEvent_t e) { return events_have_passed ? 0 : cudaErrorNotReady; }
SAYS(cudaEventSynchronize, cudaEvent_t e) { return 0; }
SAYS(cudaEventDestroy, cudaEvent_t e) {
    free(e);
    return 0;
}
SAYS(cudaFuncGetAttributes, struct cudaFuncAttributes *a, const void *f) {
    memset(a, 0, sizeof *a);
    a->maxThreadsPerBlock = 1024;
    a->numRegs = 32;
    return 0;
}
SAYS(cudaOccupancyMaxActiveBlocksPerMultiprocessor, int *n, const void *f, int b, size_t s) {
    *n = 2;
    return 0;
}
SAYS(cudaLaunchKernel, const void *f, dim3 g, dim3 b, void **a, size_t s, cudaStream_t t) { return 0; }
SAYS(cudaLaunchKernelExC, const cudaLaunchConfig_t *c, const void *f, void **a) { return 0; }
SAYS(cudaPointerGetAttributes, struct cudaPointerAttributes *a, const void *p) {
    memset(a, 0, sizeof *a);
    a->type = cudaMemoryTypeUnregistered;
    return 0;
}
