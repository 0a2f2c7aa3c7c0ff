/* The driver's functions, found by name, and what is done with single ones of them. */
#include "launch/cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From the CUDA driver API's reference: handles are pointers, CUresult and CUdevice are ints, CUdeviceptr is 64 bits.
 */
typedef struct Driver {
    int (*init)(unsigned flags);
    int (*device_count)(int *count);
    int (*device_get)(int *device, int ordinal);
    int (*device_attribute)(int *value, int attribute, int device);
    int (*context_current)(void **context);
    int (*context_set)(void *context);
    int (*context_device)(int *device);
    int (*primary_retain)(void **context, int device);
    int (*library_load)(void **library, const void *code, int *jit_options, void **jit_values, unsigned jit_count,
                        int *options, void **values, unsigned count);
    int (*library_unload)(void *library);
    int (*library_kernel)(void **kernel, void *library, const char *name);
    int (*kernel_set)(int attribute, int value, void *kernel, int device);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                  unsigned block_z, unsigned shared_bytes, void *stream, void **parameters, void **extra);
    int (*allocate)(uint64_t *memory, size_t bytes);
    int (*free)(uint64_t memory);
    int (*allocate_async)(uint64_t *memory, size_t bytes, void *stream);
    int (*free_async)(uint64_t memory, void *stream);
    int (*copy_to)(uint64_t memory, const void *host, size_t bytes);
    int (*copy_from)(void *host, uint64_t memory, size_t bytes);
    int (*synchronize)(void *stream);
    int (*error_name)(int result, const char **name);
    int (*error_text)(int result, const char **text);
} Driver;

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
    {"cuInit", offsetof(Driver, init)},
    {"cuDeviceGetCount", offsetof(Driver, device_count)},
    {"cuDeviceGet", offsetof(Driver, device_get)},
    {"cuDeviceGetAttribute", offsetof(Driver, device_attribute)},
    {"cuCtxGetCurrent", offsetof(Driver, context_current)},
    {"cuCtxSetCurrent", offsetof(Driver, context_set)},
    {"cuCtxGetDevice", offsetof(Driver, context_device)},
    {"cuDevicePrimaryCtxRetain", offsetof(Driver, primary_retain)},
    {"cuLibraryLoadData", offsetof(Driver, library_load)},
    {"cuLibraryUnload", offsetof(Driver, library_unload)},
    {"cuLibraryGetKernel", offsetof(Driver, library_kernel)},
    {"cuKernelSetAttribute", offsetof(Driver, kernel_set)},
    {"cuLaunchKernel", offsetof(Driver, launch)},
    {"cuMemAlloc_v2", offsetof(Driver, allocate)},
    {"cuMemFree_v2", offsetof(Driver, free)},
    {"cuMemAllocAsync", offsetof(Driver, allocate_async)},
    {"cuMemFreeAsync", offsetof(Driver, free_async)},
    {"cuMemcpyHtoD_v2", offsetof(Driver, copy_to)},
    {"cuMemcpyDtoH_v2", offsetof(Driver, copy_from)},
    {"cuStreamSynchronize", offsetof(Driver, synchronize)},
    {"cuGetErrorName", offsetof(Driver, error_name)},
    {"cuGetErrorString", offsetof(Driver, error_text)},
};

/* Set once and never changed: a process has one driver. */
static pthread_once_t opened = PTHREAD_ONCE_INIT;
static Driver driver;
static int device_count;
static const char *obstacle = "the CUDA driver was not looked for";

enum { SUCCESS = 0, CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76, SHARED_OPT_IN = 97, DYNAMIC_SHARED_LIMIT = 8 };

static void open_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        obstacle = "there is no CUDA driver (libcuda.so.1)";
        return;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address) {
            obstacle = "the CUDA driver is older than 12.0, the first with context-independent libraries";
            return;
        }
        memcpy((char *)&driver + symbols[i].offset, &address, sizeof address);
    }
    obstacle = NULL;
    if (driver.init(0) != SUCCESS)
        obstacle = "the CUDA driver does not start; is there a GPU, and may this process use it?";
    else if (driver.device_count(&device_count) != SUCCESS || device_count == 0)
        obstacle = "the CUDA driver finds no GPU";
}

const char *tile_cuda_why_not(void) {
    pthread_once(&opened, open_driver);
    return obstacle;
}

int tile_cuda_capability(int device) {
    int handle, major, minor;
    if (tile_cuda_why_not() || device < 0 || device >= device_count) return 0;
    if (driver.device_get(&handle, device) != SUCCESS) return 0;
    if (driver.device_attribute(&major, CAPABILITY_MAJOR, handle) != SUCCESS) return 0;
    return driver.device_attribute(&minor, CAPABILITY_MINOR, handle) == SUCCESS ? 10 * major + minor : 0;
}

/* ---- errors ---- */

static tile_status status_of(int result) {
    enum { OUT_OF_MEMORY = 2, NO_BINARY = 209, INVALID_PTX = 218, UNSUPPORTED_PTX = 222, NO_JIT = 221 };
    switch (result) {
    case SUCCESS: return TILE_OK;
    case OUT_OF_MEMORY: return TILE_OUT_OF_MEMORY;
    case NO_BINARY:
    case INVALID_PTX:
    case NO_JIT:
    case UNSUPPORTED_PTX: return TILE_UNAVAILABLE;
    default: return TILE_BACKEND;
    }
}

static tile_status check(int result, const char *what, TileError *error) {
    if (result == SUCCESS) return TILE_OK;
    const char *name = NULL, *text = NULL;
    driver.error_name(result, &name);
    driver.error_text(result, &text);
    return tile_error_set(error, status_of(result), "%s: the CUDA driver says %s: %s", what, name ? name : "?",
                          text ? text : "?");
}

/* ---- contexts ---- */

/* Makes sure that a context of the device is current: the caller's own where it is one, else the device's primary one.
 */
static tile_status use_device(int device, TileError *error) {
    const char *why_not = tile_cuda_why_not();
    if (why_not) return tile_error_set(error, TILE_UNAVAILABLE, "%s", why_not);
    void *context = NULL;
    int current = -1, handle;
    if (driver.context_current(&context) == SUCCESS && context && driver.context_device(&current) == SUCCESS &&
        current == device)
        return TILE_OK;
    if (device < 0 || device >= device_count)
        return tile_error_set(error, TILE_INVALID_ARGUMENT, "there is no device cuda:%d; there are %d", device,
                              device_count);
    TILE_TRY(check(driver.device_get(&handle, device), "device", error));
    TILE_TRY(check(driver.primary_retain(&context, handle), "context", error));
    return check(driver.context_set(context), "context", error);
}

/* ---- modules ---- */

typedef struct Phase {
    char *symbol;
    uint32_t threads;
    uint64_t shared_bytes;
    void *kernel;
    _Atomic uint64_t prepared; /* set of devices on which its shared memory is allowed */
} Phase;

struct TileCudaModule {
    char *ptx;
    pthread_mutex_t mutex;
    _Atomic(void *) library; /* NULL: not loaded yet */
    uint32_t count;
    Phase phases[];
};

TileCudaModule *tile_cuda_module_create(const char *ptx, size_t length, const TileCudaPhase *phases, uint32_t count) {
    TileCudaModule *module = calloc(1, sizeof *module + count * sizeof *module->phases);
    if (!module) return NULL;
    pthread_mutex_init(&module->mutex, NULL);
    module->count = count;
    module->ptx = malloc(length + 1);
    bool whole = module->ptx != NULL;
    for (uint32_t i = 0; i < count; i++) {
        module->phases[i] = (Phase){
            .symbol = strdup(phases[i].symbol), .threads = phases[i].threads, .shared_bytes = phases[i].shared_bytes};
        whole &= module->phases[i].symbol != NULL;
    }
    if (!whole) {
        tile_cuda_module_destroy(module);
        return NULL;
    }
    memcpy(module->ptx, ptx, length);
    module->ptx[length] = 0;
    return module;
}

void tile_cuda_module_destroy(TileCudaModule *module) {
    if (!module) return;
    void *library = atomic_load(&module->library);
    if (library) driver.library_unload(library);
    for (uint32_t i = 0; i < module->count; i++) free(module->phases[i].symbol);
    free(module->ptx);
    pthread_mutex_destroy(&module->mutex);
    free(module);
}

static tile_status load(TileCudaModule *module, const char *kernel, TileError *error) {
    void *library;
    TILE_TRY(check(driver.library_load(&library, module->ptx, NULL, NULL, 0, NULL, NULL, 0), kernel, error));
    for (uint32_t i = 0; i < module->count; i++) {
        Phase *phase = &module->phases[i];
        tile_status status = check(driver.library_kernel(&phase->kernel, library, phase->symbol), phase->symbol, error);
        if (status == TILE_OK) continue;
        driver.library_unload(library);
        return status;
    }
    atomic_store(&module->library, library);
    return TILE_OK;
}

/* More than 48 KiB of shared memory have to be asked for, once on each device. */
static tile_status prepare(Phase *phase, int device, const char *kernel, TileError *error) {
    uint64_t bit = UINT64_C(1) << (device & 63);
    int handle, most = 0;
    if (atomic_load(&phase->prepared) & bit) return TILE_OK;
    TILE_TRY(check(driver.device_get(&handle, device), kernel, error));
    TILE_TRY(check(driver.device_attribute(&most, SHARED_OPT_IN, handle), kernel, error));
    if (phase->shared_bytes > (uint64_t)most)
        return tile_error_set(
            error, TILE_UNAVAILABLE,
            "%s: a block needs %llu bytes of shared memory, and cuda:%d has %d; smaller tiles need less", kernel,
            (unsigned long long)phase->shared_bytes, device, most);
    TILE_TRY(
        check(driver.kernel_set(DYNAMIC_SHARED_LIMIT, (int)phase->shared_bytes, phase->kernel, handle), kernel, error));
    atomic_fetch_or(&phase->prepared, bit);
    return TILE_OK;
}

static tile_status ready(TileCudaModule *module, uint32_t number, int device, const char *kernel, TileError *error) {
    TILE_TRY(use_device(device, error));
    if (!atomic_load(&module->library)) {
        pthread_mutex_lock(&module->mutex);
        tile_status status = atomic_load(&module->library) ? TILE_OK : load(module, kernel, error);
        pthread_mutex_unlock(&module->mutex);
        TILE_TRY(status);
    }
    return prepare(&module->phases[number], device, kernel, error);
}

tile_status tile_cuda_launch(TileCudaModule *module, uint32_t number, const TileCudaStream *on, const uint64_t *slots,
                             uint32_t slot_count, int64_t programs, const char *kernel, TileError *error) {
    enum { MOST_SLOTS = 512, MOST_BLOCKS = INT32_MAX };
    void *parameters[MOST_SLOTS + 2];
    if (slot_count > MOST_SLOTS) return tile_error_set(error, TILE_UNSUPPORTED, "%s: too many parameters", kernel);
    TILE_TRY(ready(module, number, on->device, kernel, error));
    Phase *phase = &module->phases[number];
    int64_t begin = 0, end = programs, blocks = programs < MOST_BLOCKS ? programs : MOST_BLOCKS;
    for (uint32_t i = 0; i < slot_count; i++) parameters[i] = (void *)&slots[i];
    parameters[slot_count] = &begin;
    parameters[slot_count + 1] = &end;
    return check(driver.launch(phase->kernel, (unsigned)blocks, 1, 1, phase->threads, 1, 1,
                               (unsigned)phase->shared_bytes, on->stream, parameters, NULL),
                 kernel, error);
}

/* ---- memory ---- */

tile_status tile_cuda_allocate(const TileCudaStream *on, size_t bytes, void **memory, TileError *error) {
    uint64_t address = 0;
    TILE_TRY(use_device(on->device, error));
    TILE_TRY(check(driver.allocate_async(&address, bytes ? bytes : 1, on->stream), "memory", error));
    *memory = (void *)(uintptr_t)address;
    return TILE_OK;
}

void tile_cuda_free(const TileCudaStream *on, void *memory) {
    if (memory) driver.free_async((uint64_t)(uintptr_t)memory, on->stream);
}

tile_status tile_device_allocate(int device, size_t bytes, void **memory, TileError *error) {
    uint64_t address = 0;
    TILE_TRY(use_device(device, error));
    TILE_TRY(check(driver.allocate(&address, bytes ? bytes : 1), "memory", error));
    *memory = (void *)(uintptr_t)address;
    return TILE_OK;
}

void tile_device_release(int device, void *memory) {
    if (memory && use_device(device, NULL) == TILE_OK) driver.free((uint64_t)(uintptr_t)memory);
}

tile_status tile_device_write(int device, void *memory, const void *host, size_t bytes, TileError *error) {
    TILE_TRY(use_device(device, error));
    return bytes ? check(driver.copy_to((uint64_t)(uintptr_t)memory, host, bytes), "copy", error) : TILE_OK;
}

tile_status tile_device_read(int device, void *host, const void *memory, size_t bytes, TileError *error) {
    TILE_TRY(use_device(device, error));
    return bytes ? check(driver.copy_from(host, (uint64_t)(uintptr_t)memory, bytes), "copy", error) : TILE_OK;
}

tile_status tile_device_synchronize(int device, void *stream, TileError *error) {
    TILE_TRY(use_device(device, error));
    return check(driver.synchronize(stream), "stream", error);
}
