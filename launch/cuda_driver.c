#include "launch/cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "launch/cuda.h"
#include "launch/stay.h"

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
    {"cuDriverGetVersion", offsetof(TileCudaDriver, version)},
    {"cuInit", offsetof(TileCudaDriver, init)},
    {"cuDeviceGetCount", offsetof(TileCudaDriver, device_count)},
    {"cuDeviceGet", offsetof(TileCudaDriver, device_get)},
    {"cuDeviceGetAttribute", offsetof(TileCudaDriver, device_attribute)},
    {"cuDeviceGetName", offsetof(TileCudaDriver, device_name)},
    {"cuDeviceTotalMem_v2", offsetof(TileCudaDriver, device_memory)},
    {"cuCtxGetCurrent", offsetof(TileCudaDriver, context_current)},
    {"cuCtxGetDevice", offsetof(TileCudaDriver, context_device)},
    {"cuCtxPushCurrent_v2", offsetof(TileCudaDriver, context_push)},
    {"cuCtxPopCurrent_v2", offsetof(TileCudaDriver, context_pop)},
    {"cuDevicePrimaryCtxRetain", offsetof(TileCudaDriver, primary_retain)},
    {"cuDevicePrimaryCtxGetState", offsetof(TileCudaDriver, primary_state)},
    {"cuStreamGetCtx", offsetof(TileCudaDriver, stream_context)},
    {"cuThreadExchangeStreamCaptureMode", offsetof(TileCudaDriver, exchange_capture_mode)},
    {"cuPointerGetAttributes", offsetof(TileCudaDriver, pointer_attributes)},
    {"cuLibraryLoadData", offsetof(TileCudaDriver, library_load)},
    {"cuLibraryUnload", offsetof(TileCudaDriver, library_unload)},
    {"cuLibraryGetKernel", offsetof(TileCudaDriver, library_kernel)},
    {"cuKernelGetFunction", offsetof(TileCudaDriver, kernel_function)},
    {"cuKernelSetAttribute", offsetof(TileCudaDriver, kernel_set)},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", offsetof(TileCudaDriver, occupancy)},
    {"cuOccupancyMaxActiveClusters", offsetof(TileCudaDriver, cluster_occupancy)},
    {"cuFuncGetAttribute", offsetof(TileCudaDriver, function_attribute)},
    {"cuLaunchKernel", offsetof(TileCudaDriver, launch)},
    {"cuLaunchKernelEx", offsetof(TileCudaDriver, launch_with)},
    {"cuTensorMapEncodeTiled", offsetof(TileCudaDriver, encode_map)},
    {"cuTensorMapEncodeIm2col", offsetof(TileCudaDriver, encode_positions)},
    {"cuMemAlloc_v2", offsetof(TileCudaDriver, allocate)},
    {"cuMemFree_v2", offsetof(TileCudaDriver, free)},
    {"cuMemPoolCreate", offsetof(TileCudaDriver, pool_create)},
    {"cuMemPoolDestroy", offsetof(TileCudaDriver, pool_destroy)},
    {"cuMemPoolSetAttribute", offsetof(TileCudaDriver, pool_set)},
    {"cuMemAllocFromPoolAsync", offsetof(TileCudaDriver, allocate_async)},
    {"cuMemFreeAsync", offsetof(TileCudaDriver, free_async)},
    {"cuMemcpyHtoD_v2", offsetof(TileCudaDriver, copy_to)},
    {"cuMemcpyDtoH_v2", offsetof(TileCudaDriver, copy_from)},
    {"cuMemcpyDtoHAsync_v2", offsetof(TileCudaDriver, copy_from_async)},
    {"cuMemsetD8Async", offsetof(TileCudaDriver, set_async)},
    {"cuMemHostAlloc", offsetof(TileCudaDriver, host_allocate)},
    {"cuMemFreeHost", offsetof(TileCudaDriver, host_free)},
    {"cuLaunchHostFunc", offsetof(TileCudaDriver, launch_host)},
    {"cuStreamIsCapturing", offsetof(TileCudaDriver, is_capturing)},
    {"cuStreamSynchronize", offsetof(TileCudaDriver, synchronize)},
    {"cuEventCreate", offsetof(TileCudaDriver, event_create)},
    {"cuEventDestroy_v2", offsetof(TileCudaDriver, event_destroy)},
    {"cuEventRecord", offsetof(TileCudaDriver, event_record)},
    {"cuEventSynchronize", offsetof(TileCudaDriver, event_synchronize)},
    {"cuEventElapsedTime", offsetof(TileCudaDriver, event_elapsed)},
    {"cuGetErrorName", offsetof(TileCudaDriver, error_name)},
    {"cuGetErrorString", offsetof(TileCudaDriver, error_text)},
};

enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76, LEAST_VERSION = 12000 };

/* Set once and never changed, except that primary contexts and pools are created on first use. They are never released:
 * a process has one driver. */
static pthread_once_t opened = PTHREAD_ONCE_INIT;
static TileCudaDriver driver;
static int device_count, driver_version, handles[TILE_CUDA_MOST_DEVICES];
static _Atomic(void *) primary[TILE_CUDA_MOST_DEVICES]; /* NULL: not needed yet */
static _Atomic bool looked_for_primary[TILE_CUDA_MOST_DEVICES];
static void *pools[TILE_CUDA_MOST_DEVICES];
static pthread_mutex_t primary_mutex = PTHREAD_MUTEX_INITIALIZER; /* of both */
static char obstacle[256];

/* ---- opening ---- */

static void find_symbol(void *library, size_t index) {
    void *address = dlsym(library, symbols[index].name);
    memcpy((char *)&driver + symbols[index].offset, &address, sizeof address);
}

/* The name of a function that the driver library lacks, or NULL. */
static const char *find_symbols(void *library) {
    void *address;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        find_symbol(library, i);
        memcpy(&address, (char *)&driver + symbols[i].offset, sizeof address);
        if (!address) return symbols[i].name;
    }
    return NULL;
}

static const char *name_of(int result) {
    const char *name = NULL;
    if (driver.error_name(result, &name) == TILE_CUDA_SUCCESS && name) return name;
    return "an unknown error";
}

static void start_driver(void) {
    int result = driver.init(0);
    if (result == TILE_CUDA_SUCCESS) result = driver.device_count(&device_count);
    if (device_count > TILE_CUDA_MOST_DEVICES) device_count = TILE_CUDA_MOST_DEVICES;
    for (int i = 0; i < device_count && result == TILE_CUDA_SUCCESS; i++) result = driver.device_get(&handles[i], i);
    if (result != TILE_CUDA_SUCCESS)
        snprintf(obstacle, sizeof obstacle, "the CUDA driver does not start: %s; may this process use the GPU?",
                 name_of(result));
    else if (device_count == 0)
        snprintf(obstacle, sizeof obstacle, "the CUDA driver finds no GPU");
}

static void open_driver(void) {
    tile_stay_loaded(); /* the driver is opened once */
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(obstacle, sizeof obstacle, "there is no CUDA driver (libcuda.so.1)");
        return;
    }
    const char *missing = find_symbols(library);
    if (driver.version) driver.version(&driver_version);
    if (missing || driver_version < LEAST_VERSION) {
        snprintf(obstacle, sizeof obstacle, "the CUDA driver is %d.%d, and 12.0 or later is needed%s%s",
                 driver_version / 1000, driver_version % 1000 / 10, missing ? ": it has no " : "",
                 missing ? missing : "");
        dlclose(library);
        return;
    }
    start_driver();
}

const char *tile_cuda_why_not(void) {
    pthread_once(&opened, open_driver);
    return *obstacle ? obstacle : NULL;
}

const TileCudaDriver *tile_cuda_driver(void) { return &driver; }

int tile_cuda_capability(int device) {
    int major, minor;
    if (tile_cuda_why_not() || device < 0 || device >= device_count) return 0;
    if (driver.device_attribute(&major, CAPABILITY_MAJOR, handles[device]) != TILE_CUDA_SUCCESS) return 0;
    bool known = driver.device_attribute(&minor, CAPABILITY_MINOR, handles[device]) == TILE_CUDA_SUCCESS;
    return known ? 10 * major + minor : 0;
}

/* Queried once each, and cached. */
static int known_capability(int device) {
    static _Atomic int known[TILE_CUDA_MOST_DEVICES];
    if (device < 0 || device >= TILE_CUDA_MOST_DEVICES) return 0;
    int capability = atomic_load_explicit(&known[device], memory_order_relaxed);
    if (capability) return capability;
    capability = tile_cuda_capability(device);
    atomic_store_explicit(&known[device], capability, memory_order_relaxed);
    return capability;
}

bool tile_cuda_runs(int device, uint32_t capability, bool alone) {
    uint32_t there = (uint32_t)known_capability(device);
    return alone ? there == capability : there >= capability;
}

bool tile_cuda_all_run(uint32_t capability) {
    enum { GENERATION = 10 };
    bool all = tile_cuda_why_not() == NULL;
    for (int i = 0; i < device_count && all; i++) {
        uint32_t there = (uint32_t)known_capability(i);
        all = there >= capability && there / GENERATION == capability / GENERATION;
    }
    return all;
}

bool tile_cuda_device_name(int device, char *name, size_t size) {
    if (tile_cuda_why_not() || device < 0 || device >= device_count) return false;
    return driver.device_name(name, (int)size, handles[device]) == TILE_CUDA_SUCCESS;
}

tile_status tile_cuda_device(int device, int *handle, TileError *error) {
    const char *why_not = tile_cuda_why_not();
    if (why_not) return tile_error_set(error, TILE_UNAVAILABLE, "%s", why_not);
    if (device < 0 || device >= device_count)
        return tile_error_set(error, TILE_INVALID_ARGUMENT, "there is no device cuda:%d; there %s %d", device,
                              device_count == 1 ? "is" : "are", device_count);
    *handle = handles[device];
    return TILE_OK;
}

/* ---- errors ---- */

enum {
    OUT_OF_MEMORY = 2,
    NO_BINARY = 209,
    INVALID_PTX = 218,
    NO_JIT = 221,
    UNSUPPORTED_PTX = 222,
    ILLEGAL_ADDRESS = 700,
    ASSERT = 710,
    HARDWARE_STACK = 714,
    LAUNCH_FAILED = 719
};

static tile_status status_of(int result) {
    switch (result) {
    case TILE_CUDA_SUCCESS: return TILE_OK;
    case OUT_OF_MEMORY: return TILE_OUT_OF_MEMORY;
    case NO_BINARY:
    case INVALID_PTX:
    case NO_JIT:
    case UNSUPPORTED_PTX: return TILE_UNAVAILABLE;
    default: return TILE_DRIVER;
    }
}

/* Hints in addition to the driver's messages. */
static const char *hint(int result) {
    if (result == UNSUPPORTED_PTX || result == NO_JIT) return "; a newer driver is needed for this code";
    bool sticky =
        result == ILLEGAL_ADDRESS || result == ASSERT || (result >= HARDWARE_STACK && result <= LAUNCH_FAILED);
    return sticky ? "; a kernel that ran before has failed, and its context can no longer be used" : "";
}

tile_status tile_cuda_check(int result, const char *what, TileError *error) {
    if (result == TILE_CUDA_SUCCESS) return TILE_OK;
    const char *text = NULL;
    driver.error_text(result, &text);
    return tile_error_set(error, status_of(result), "%s: the CUDA driver (%d.%d) says %s: %s%s", what,
                          driver_version / 1000, driver_version % 1000 / 10, name_of(result), text ? text : "?",
                          hint(result));
}

/* ---- contexts ---- */

enum { RELAXED = 2, UNKNOWN = -1 };

int tile_cuda_relax_capture(void) {
    int mode = RELAXED;
    return driver.exchange_capture_mode(&mode) == TILE_CUDA_SUCCESS ? mode : UNKNOWN;
}

void tile_cuda_restore_capture(int mode) {
    if (mode != UNKNOWN) driver.exchange_capture_mode(&mode);
}

static tile_status find_primary(int device, void **context, TileError *error) {
    tile_status status = TILE_OK;
    void *found;
    pthread_mutex_lock(&primary_mutex);
    *context = atomic_load_explicit(&primary[device], memory_order_relaxed);
    if (!*context) {
        int mode = tile_cuda_relax_capture();
        status = tile_cuda_check(driver.primary_retain(&found, handles[device]), "context", error);
        if (status == TILE_OK) atomic_store_explicit(&primary[device], *context = found, memory_order_release);
        tile_cuda_restore_capture(mode);
    }
    pthread_mutex_unlock(&primary_mutex);
    return status;
}

/* Asks for the primary context once, if there is one: the driver is not made to create it. */
static void look_for_primary(int device) {
    unsigned flags;
    int active = 0;
    void *context;
    if (atomic_exchange(&looked_for_primary[device], true)) return;
    int mode = tile_cuda_relax_capture();
    int result = driver.primary_state(handles[device], &flags, &active);
    tile_cuda_restore_capture(mode);
    if (result == TILE_CUDA_SUCCESS && active) find_primary(device, &context, NULL);
}

bool tile_cuda_is_in_primary(int device) {
    void *context = NULL;
    return driver.context_current(&context) == TILE_CUDA_SUCCESS && context &&
           context == atomic_load_explicit(&primary[device], memory_order_acquire);
}

/* From the driver's reference: CUmemPoolProps of device memory that is not shared between processes. */
typedef struct PoolProperties {
    int allocation_type, handle_types, location_type, location;
    void *security;
    size_t most;
    unsigned short usage;
    unsigned char reserved[54];
} PoolProperties;

/* Memory that a pool gives back at a synchronisation has to be mapped anew at the next launch, while the stream waits:
 * 40 to 90 us of a launch with temporaries of 128 MiB on an H200. */
static tile_status find_kept(int device, uint64_t *kept, TileError *error) {
    enum { PART_OF_DEVICE = 32 };
    size_t bytes = 0;
    TILE_TRY(tile_cuda_check(driver.device_memory(&bytes, handles[device]), "pool", error));
    *kept = bytes / PART_OF_DEVICE;
    if (*kept < UINT64_C(64) << 20) *kept = UINT64_C(64) << 20;
    return TILE_OK;
}

static tile_status create_pool(int device, void **pool, TileError *error) {
    enum { PINNED = 1, ON_DEVICE = 1, RELEASE_THRESHOLD = 4 };
    const PoolProperties properties = {
        .allocation_type = PINNED, .location_type = ON_DEVICE, .location = handles[device]};
    uint64_t kept = 0;
    TILE_TRY(find_kept(device, &kept, error));
    TILE_TRY(tile_cuda_check(driver.pool_create(pool, &properties), "pool", error));
    tile_status status = tile_cuda_check(driver.pool_set(*pool, RELEASE_THRESHOLD, &kept), "pool", error);
    if (status != TILE_OK) {
        driver.pool_destroy(*pool);
        *pool = NULL;
    }
    return status;
}

tile_status tile_cuda_pool(int device, void **pool, TileError *error) {
    tile_status status = TILE_OK;
    pthread_mutex_lock(&primary_mutex);
    if (!pools[device]) {
        int mode = tile_cuda_relax_capture();
        status = create_pool(device, &pools[device], error);
        tile_cuda_restore_capture(mode);
    }
    *pool = pools[device];
    pthread_mutex_unlock(&primary_mutex);
    return status;
}

/* Is it a stream that the caller created? The handles of the default streams are small integers, and belong to the
 * current context. */
static bool is_made(void *stream) { return (uintptr_t)stream > 2; }

static tile_status push(int device, void *stream, TileError *error) {
    void *context = NULL;
    int found = -1;
    if (is_made(stream))
        TILE_TRY(tile_cuda_check(driver.stream_context(stream, &context), "stream", error));
    else
        TILE_TRY(find_primary(device, &context, error));
    TILE_TRY(tile_cuda_check(driver.context_push(context), "context", error));
    tile_status status = tile_cuda_check(driver.context_device(&found), "context", error);
    if (status == TILE_OK && found != handles[device])
        status = tile_error_set(error, TILE_INVALID_ARGUMENT,
                                "the stream belongs to another GPU than the tensors, which lie on cuda:%d", device);
    if (status != TILE_OK) driver.context_pop(&context);
    return status;
}

tile_status tile_cuda_enter(int device, void *stream, TileCudaScope *scope, TileError *error) {
    void *context = NULL;
    int handle, current;
    scope->pushed = false;
    TILE_TRY(tile_cuda_device(device, &handle, error));
    /* Without a context its device must not be queried: tools report each failing call. */
    if (driver.context_current(&context) == TILE_CUDA_SUCCESS && context &&
        driver.context_device(&current) == TILE_CUDA_SUCCESS && current == handle) {
        if (!atomic_load_explicit(&looked_for_primary[device], memory_order_relaxed)) look_for_primary(device);
        return TILE_OK;
    }
    TILE_TRY(push(device, stream, error));
    scope->pushed = true;
    return TILE_OK;
}

void tile_cuda_leave(TileCudaScope *scope) {
    void *context;
    if (scope->pushed) driver.context_pop(&context);
    scope->pushed = false;
}
