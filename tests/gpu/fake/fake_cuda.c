#include "fake_cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* Results of the driver API's reference. */
#define RESULTS(X)                                                                                                     \
    X(SUCCESS, 0)                                                                                                      \
    X(ERROR_INVALID_VALUE, 1)                                                                                          \
    X(ERROR_OUT_OF_MEMORY, 2)                                                                                          \
    X(ERROR_NOT_INITIALIZED, 3)                                                                                        \
    X(ERROR_NO_DEVICE, 100)                                                                                            \
    X(ERROR_INVALID_DEVICE, 101)                                                                                       \
    X(ERROR_INVALID_CONTEXT, 201)                                                                                      \
    X(ERROR_NO_BINARY_FOR_GPU, 209)                                                                                    \
    X(ERROR_INVALID_PTX, 218)                                                                                          \
    X(ERROR_JIT_COMPILER_NOT_FOUND, 221)                                                                               \
    X(ERROR_UNSUPPORTED_PTX_VERSION, 222)                                                                              \
    X(ERROR_INVALID_HANDLE, 400)                                                                                       \
    X(ERROR_NOT_FOUND, 500)                                                                                            \
    X(ERROR_ILLEGAL_ADDRESS, 700)                                                                                      \
    X(ERROR_LAUNCH_OUT_OF_RESOURCES, 701)                                                                              \
    X(ERROR_LAUNCH_FAILED, 719)                                                                                        \
    X(ERROR_NOT_SUPPORTED, 801)                                                                                        \
    X(ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                                                           \
    X(ERROR_UNKNOWN, 999)
enum {
#define RESULT(name, number) CUDA_##name = (number),
    RESULTS(RESULT)
#undef RESULT
};

enum {
    DEVICES = 4,
    CONTEXTS = 16,
    STREAMS = 16,
    LIBRARIES = 512,
    KERNELS = 8,
    MEMORIES = 256,
    EVENTS = 16,
    LAUNCHES = 1024,
    FUNCTIONS = 64,
    NAME_BYTES = 64,
    DEPTH = 16,
    NODES = 64,
    PLAIN_SHARED = 48 * 1024
};

typedef struct Context {
    int device;
} Context;
typedef struct Stream {
    Context *context;
} Stream;
typedef struct Kernel {
    char name[NAME_BYTES];
    int shared[DEVICES];
} Kernel;
typedef struct Library {
    int serial; /* 0: unloaded */
    Kernel kernels[KERNELS];
} Library;
typedef struct Event {
    bool used;
    double time; /* of the device's clock, milliseconds */
} Event;
/* What a capture has instead of doing it: a launch of a library's kernel, bytes that are cleared, a copy to the host, a
 * call of the host; and memory that is the graph's own. */
typedef struct Node {
    const FakeCudaLaunch *launch;
    const Kernel *kernel;
    int serial;
    uint64_t cleared, copied, own;
    size_t bytes;
    void *host;
    void (*function)(void *state);
} Node;
typedef struct Memory {
    char *data;
    size_t bytes;
    int device, type;
} Memory;

static struct {
    pthread_mutex_t mutex;
    bool configured, lenient, capturing, capture_is_bad;
    int devices, capability, shared, version;
    size_t memory, used[DEVICES];
    Context contexts[CONTEXTS];
    int context_count;
    Stream streams[STREAMS];
    int stream_count;
    Library libraries[LIBRARIES];
    int last_serial;
    Memory memories[MEMORIES];
    Event events[EVENTS];
    double clock; /* a thread takes a nanosecond */
    struct {
        char name[NAME_BYTES];
        int calls;
    } functions[FUNCTIONS];
    FakeCudaState state;
    FakeCudaLaunch launches[LAUNCHES];
    unsigned expected;
    void (*kernel)(const FakeCudaLaunch *launch);
    Node nodes[NODES];
    int node_count;
    char fail_name[NAME_BYTES];
    int fail_in, fail_result;
    bool has_failed;
} fake = {.mutex = PTHREAD_MUTEX_INITIALIZER,
          .devices = 2,
          .capability = 90,
          .shared = 227 * 1024,
          .version = 12080,
          .memory = (size_t)1 << 30,
          .context_count = DEVICES};

static _Thread_local struct {
    Context *stack[DEPTH];
    int depth, capture_mode;
} thread;

/* ---- configuration ---- */

static void read_word(const char *word) {
    long number;
    if (sscanf(word, "devices=%ld", &number) == 1) fake.devices = (int)number;
    if (sscanf(word, "capability=%ld", &number) == 1) fake.capability = (int)number;
    if (sscanf(word, "shared=%ld", &number) == 1) fake.shared = (int)number;
    if (sscanf(word, "version=%ld", &number) == 1) fake.version = (int)number;
    if (sscanf(word, "memory=%ld", &number) == 1) fake.memory = (size_t)number;
    if (strcmp(word, "lenient") == 0) fake.lenient = true;
    sscanf(word, "fail=%63[^:]:%d:%d", fake.fail_name, &fake.fail_in, &fake.fail_result);
}

static void configure(void) {
    const char *text = getenv("FAKE_CUDA");
    char copy[512], *rest = NULL;
    fake.configured = true;
    for (int i = 0; i < DEVICES; i++) fake.contexts[i].device = i;
    if (!text) return;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) read_word(word);
}

/* ---- every call ---- */

static int *count_of(const char *function) {
    int i = 0;
    while (i < FUNCTIONS - 1 && fake.functions[i].name[0] && strcmp(fake.functions[i].name, function) != 0) i++;
    snprintf(fake.functions[i].name, NAME_BYTES, "%s", function);
    return &fake.functions[i].calls;
}

/* Counts the call, with the mutex held from here on; the result that it was told to give, or success. */
static int begin(const char *function) {
    pthread_mutex_lock(&fake.mutex);
    if (!fake.configured) configure();
    fake.state.calls++;
    ++*count_of(function);
    if (!fake.fail_in || (*fake.fail_name && strcmp(fake.fail_name, function) != 0)) return CUDA_SUCCESS;
    if (--fake.fail_in) return CUDA_SUCCESS;
    fake.has_failed = true;
    return fake.fail_result;
}

static int end(int result) {
    pthread_mutex_unlock(&fake.mutex);
    return result;
}

static int refuse(int result) {
    fake.state.violations++;
    return result;
}

/* What may wait for the device is not allowed while a stream captures, unless the thread has said that it may be. */
static int unless_capturing(void) {
    enum { RELAXED = 2 };
    if (!fake.capturing || thread.capture_mode == RELAXED) return CUDA_SUCCESS;
    fake.capture_is_bad = true;
    return refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

#define CALL()                                                                                                         \
    int result = begin(__func__);                                                                                      \
    if (result != CUDA_SUCCESS) return end(result)
#define CALL_THAT_WAITS()                                                                                              \
    CALL();                                                                                                            \
    result = unless_capturing();                                                                                       \
    if (result != CUDA_SUCCESS) return end(result)

static Context *current(void) { return thread.depth ? thread.stack[thread.depth - 1] : NULL; }

/* ---- devices ---- */

EXPORT int cuDriverGetVersion(int *version) {
    CALL();
    *version = fake.version;
    return end(CUDA_SUCCESS);
}

EXPORT int cuInit(unsigned flags) {
    CALL();
    if (flags) return end(refuse(CUDA_ERROR_INVALID_VALUE));
    return end(fake.devices || fake.lenient ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
}

EXPORT int cuDeviceGetCount(int *count) {
    CALL();
    *count = fake.devices;
    return end(CUDA_SUCCESS);
}

EXPORT int cuDeviceGet(int *device, int ordinal) {
    CALL();
    if (ordinal < 0 || ordinal >= fake.devices) return end(refuse(CUDA_ERROR_INVALID_DEVICE));
    *device = ordinal;
    return end(CUDA_SUCCESS);
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
    enum { MAJOR = 75, MINOR = 76, SHARED_OPT_IN = 97 };
    CALL();
    if (device < 0 || device >= fake.devices) return end(refuse(CUDA_ERROR_INVALID_DEVICE));
    switch (attribute) {
    case MAJOR: *value = fake.capability / 10; break;
    case MINOR: *value = fake.capability % 10; break;
    case SHARED_OPT_IN: *value = fake.shared; break;
    default: return end(refuse(CUDA_ERROR_INVALID_VALUE));
    }
    return end(CUDA_SUCCESS);
}

EXPORT int cuDeviceGetName(char *name, int length, int device) {
    CALL();
    if (device < 0 || device >= fake.devices) return end(refuse(CUDA_ERROR_INVALID_DEVICE));
    snprintf(name, (size_t)length, "Fake GPU");
    return end(CUDA_SUCCESS);
}

/* ---- contexts and streams ---- */

EXPORT int cuCtxGetCurrent(void **context) {
    CALL();
    *context = current();
    return end(CUDA_SUCCESS);
}

EXPORT int cuCtxGetDevice(int *device) {
    CALL();
    if (!current()) return end(refuse(CUDA_ERROR_INVALID_CONTEXT));
    *device = current()->device;
    return end(CUDA_SUCCESS);
}

EXPORT int cuCtxPushCurrent_v2(void *context) {
    CALL();
    if (thread.depth == DEPTH) return end(refuse(CUDA_ERROR_INVALID_VALUE));
    thread.stack[thread.depth++] = context;
    return end(CUDA_SUCCESS);
}

EXPORT int cuCtxPopCurrent_v2(void **context) {
    CALL();
    if (!thread.depth) return end(refuse(CUDA_ERROR_INVALID_CONTEXT));
    *context = thread.stack[--thread.depth];
    return end(CUDA_SUCCESS);
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
    CALL_THAT_WAITS();
    if (device < 0 || device >= fake.devices) return end(refuse(CUDA_ERROR_INVALID_DEVICE));
    *context = &fake.contexts[device];
    fake.state.primary_references[device]++;
    return end(CUDA_SUCCESS);
}

EXPORT int cuStreamGetCtx(void *stream, void **context) {
    CALL();
    *context = ((Stream *)stream)->context;
    return end(CUDA_SUCCESS);
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode) {
    CALL();
    int old = thread.capture_mode;
    thread.capture_mode = *mode;
    *mode = old;
    return end(CUDA_SUCCESS);
}

/* The default stream is that of any context. */
static bool fits(const Stream *stream) { return (uintptr_t)stream <= 2 || stream->context == current(); }

EXPORT int cuStreamSynchronize(void *stream) {
    CALL_THAT_WAITS();
    return end(fits(stream) ? CUDA_SUCCESS : refuse(CUDA_ERROR_INVALID_HANDLE));
}

/* ---- memory ---- */

static Memory *find_memory(uint64_t address) {
    for (int i = 0; i < MEMORIES; i++) {
        Memory *memory = &fake.memories[i];
        if (memory->data && address - (uintptr_t)memory->data < memory->bytes) return memory;
    }
    return NULL;
}

static Memory *add_memory(size_t bytes, int device, int type) {
    Memory *memory = fake.memories;
    while (memory < fake.memories + MEMORIES && memory->data) memory++;
    if (memory == fake.memories + MEMORIES) return NULL;
    *memory = (Memory){aligned_alloc(256, (bytes + 255) / 256 * 256), bytes, device, type};
    return memory->data ? memory : NULL;
}

static int allocate(uint64_t *address, size_t bytes) {
    enum { ON_DEVICE = 2 };
    if (!current() || !bytes) return refuse(current() ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT);
    int device = current()->device;
    if (bytes > fake.memory - fake.used[device]) return CUDA_ERROR_OUT_OF_MEMORY;
    Memory *memory = add_memory(bytes, device, ON_DEVICE);
    if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
    fake.used[device] += bytes;
    fake.state.allocations++;
    *address = (uintptr_t)memory->data;
    return CUDA_SUCCESS;
}

static int release(uint64_t address) {
    Memory *memory = find_memory(address);
    if (!current() || !memory || (uintptr_t)memory->data != address) return refuse(CUDA_ERROR_INVALID_VALUE);
    free(memory->data);
    fake.used[memory->device] -= memory->bytes;
    *memory = (Memory){0};
    fake.state.allocations--;
    return CUDA_SUCCESS;
}

EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    CALL_THAT_WAITS();
    return end(allocate(address, bytes));
}

EXPORT int cuMemFree_v2(uint64_t address) {
    CALL_THAT_WAITS();
    return end(release(address));
}

/* Properties begin with the type of allocation, of handles and of the place, and the device. A pool is its device. */
EXPORT int cuMemPoolCreate(void **pool, const int *properties) {
    enum { PINNED = 1, ON_DEVICE = 1 };
    CALL_THAT_WAITS();
    int device = properties[3];
    bool right = properties[0] == PINNED && !properties[1] && properties[2] == ON_DEVICE && device >= 0;
    if (!right) return end(refuse(CUDA_ERROR_INVALID_VALUE));
    *pool = (void *)(uintptr_t)(device + 1);
    return end(CUDA_SUCCESS);
}

EXPORT int cuMemPoolDestroy(void *pool) {
    CALL();
    return end(pool ? CUDA_SUCCESS : refuse(CUDA_ERROR_INVALID_VALUE));
}

EXPORT int cuMemPoolSetAttribute(void *pool, int attribute, const uint64_t *value) {
    enum { RELEASE_THRESHOLD = 4 };
    CALL();
    return end(pool && attribute == RELEASE_THRESHOLD && *value ? CUDA_SUCCESS : refuse(CUDA_ERROR_INVALID_VALUE));
}

EXPORT int cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, void *pool, void *stream) {
    CALL();
    bool here = fits(stream) && current() && (uintptr_t)pool == (uintptr_t)current()->device + 1;
    return end(here ? allocate(address, bytes) : refuse(CUDA_ERROR_INVALID_HANDLE));
}

/* Happens now, or is captured. */
static int queue(const void *stream, Node node, int (*happen)(const Node *node)) {
    if (!fits(stream)) return refuse(CUDA_ERROR_INVALID_HANDLE);
    if (!fake.capturing) return happen(&node);
    if (fake.node_count == NODES) return CUDA_ERROR_OUT_OF_MEMORY;
    fake.nodes[fake.node_count++] = node;
    return CUDA_SUCCESS;
}

static int release_now(const Node *node) { return release(node->own); }

EXPORT int cuMemFreeAsync(uint64_t address, void *stream) {
    CALL();
    return end(queue(stream, (Node){.own = address}, release_now));
}

static int copy(uint64_t device, void *host, size_t bytes, bool out) {
    Memory *memory = find_memory(device);
    if (!current() || !memory || device + bytes > (uintptr_t)memory->data + memory->bytes)
        return refuse(CUDA_ERROR_INVALID_VALUE);
    if (out)
        memcpy((void *)(uintptr_t)device, host, bytes);
    else
        memcpy(host, (void *)(uintptr_t)device, bytes);
    return CUDA_SUCCESS;
}

EXPORT int cuMemcpyHtoD_v2(uint64_t address, const void *host, size_t bytes) {
    CALL_THAT_WAITS();
    return end(copy(address, (void *)(uintptr_t)host, bytes, true));
}

EXPORT int cuMemcpyDtoH_v2(void *host, uint64_t address, size_t bytes) {
    CALL_THAT_WAITS();
    return end(copy(address, host, bytes, false));
}

static int clear_now(const Node *node) {
    Memory *memory = find_memory(node->cleared);
    if (!memory || node->cleared + node->bytes > (uintptr_t)memory->data + memory->bytes)
        return refuse(CUDA_ERROR_INVALID_VALUE);
    memset((void *)(uintptr_t)node->cleared, 0, node->bytes);
    return CUDA_SUCCESS;
}

EXPORT int cuMemsetD8Async(uint64_t address, unsigned char byte, size_t bytes, void *stream) {
    CALL();
    if (byte) return end(refuse(CUDA_ERROR_NOT_SUPPORTED));
    return end(queue(stream, (Node){.cleared = address, .bytes = bytes}, clear_now));
}

static int copy_now(const Node *node) { return copy(node->copied, node->host, node->bytes, false); }

EXPORT int cuMemcpyDtoHAsync_v2(void *host, uint64_t address, size_t bytes, void *stream) {
    CALL();
    return end(queue(stream, (Node){.copied = address, .host = host, .bytes = bytes}, copy_now));
}

static int call_now(const Node *node) {
    node->function(node->host);
    return CUDA_SUCCESS;
}

EXPORT int cuLaunchHostFunc(void *stream, void (*function)(void *state), void *state) {
    CALL();
    return end(queue(stream, (Node){.function = function, .host = state}, call_now));
}

EXPORT int cuStreamIsCapturing(void *stream, int *status) {
    CALL();
    *status = fake.capturing;
    return end(fits(stream) ? CUDA_SUCCESS : refuse(CUDA_ERROR_INVALID_HANDLE));
}

EXPORT int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    CALL_THAT_WAITS();
    if (!current() || flags) return end(refuse(CUDA_ERROR_INVALID_VALUE));
    Memory *made = add_memory(bytes, 0, FAKE_CUDA_HOST);
    if (!made) return end(CUDA_ERROR_OUT_OF_MEMORY);
    fake.state.allocations++;
    *memory = made->data;
    return end(CUDA_SUCCESS);
}

EXPORT int cuMemFreeHost(void *address) {
    CALL_THAT_WAITS();
    Memory *memory = find_memory((uintptr_t)address);
    if (!current() || !memory || memory->type != FAKE_CUDA_HOST) return end(refuse(CUDA_ERROR_INVALID_VALUE));
    free(memory->data);
    *memory = (Memory){0};
    fake.state.allocations--;
    return end(CUDA_SUCCESS);
}

/* Of memory that the driver does not know it says nothing, and succeeds. */
EXPORT int cuPointerGetAttributes(unsigned count, int *attributes, void **values, uint64_t address) {
    enum { MEMORY_TYPE = 2, IS_MANAGED = 8, DEVICE_ORDINAL = 9, ON_DEVICE = 2 };
    CALL();
    const Memory *memory = find_memory(address);
    for (unsigned i = 0; i < count; i++) {
        int value = 0;
        bool managed = memory && memory->type == FAKE_CUDA_MANAGED;
        if (attributes[i] == MEMORY_TYPE)
            value = memory ? managed ? ON_DEVICE : memory->type : 0;
        else if (attributes[i] == IS_MANAGED)
            value = managed;
        else if (attributes[i] == DEVICE_ORDINAL)
            value = memory ? memory->device : -2;
        else
            return end(refuse(CUDA_ERROR_INVALID_VALUE));
        memcpy(values[i], &value, sizeof value);
    }
    return end(CUDA_SUCCESS);
}

/* ---- code ---- */

/* The capability that PTX names; 0 for what is none. */
static int made_for(const char *code) {
    const char *target = strstr(code, "\n.target sm_");
    return target ? atoi(target + strlen("\n.target sm_")) : 0;
}

EXPORT int cuLibraryLoadData(void **library, const void *code, int *jit_options, void **jit_values, unsigned jit_count,
                             int *options, void **values, unsigned count) {
    enum { ERROR_LOG = 5 };
    (void)options, (void)values, (void)count;
    CALL_THAT_WAITS();
    for (unsigned i = 0; i < jit_count; i++)
        if (jit_options[i] == ERROR_LOG && strstr(code, "not ptx")) strcpy(jit_values[i], "line 1: fatal: not PTX");
    if (strstr(code, "not ptx")) return end(CUDA_ERROR_INVALID_PTX);
    if (strstr(code, "not cubin")) return end(CUDA_ERROR_NO_BINARY_FOR_GPU);
    if (made_for(code) > fake.capability) return end(CUDA_ERROR_INVALID_PTX);
    fake.state.cubins += memcmp(code, "\177ELF", 4) == 0;
    Library *made = fake.libraries;
    while (made < fake.libraries + LIBRARIES && made->serial) made++;
    if (made == fake.libraries + LIBRARIES) return end(CUDA_ERROR_OUT_OF_MEMORY);
    *made = (Library){.serial = ++fake.last_serial};
    fake.state.libraries++;
    *library = made;
    return end(CUDA_SUCCESS);
}

EXPORT int cuLibraryUnload(void *library) {
    CALL_THAT_WAITS();
    ((Library *)library)->serial = 0;
    fake.state.libraries--;
    return end(CUDA_SUCCESS);
}

EXPORT int cuLibraryGetKernel(void **kernel, void *library, const char *name) {
    CALL();
    Kernel *found = ((Library *)library)->kernels;
    while (found->name[0] && strcmp(found->name, name) != 0) found++;
    if (!found->name[0])
        for (int i = 0; i < DEVICES; i++) found->shared[i] = PLAIN_SHARED;
    snprintf(found->name, NAME_BYTES, "%s", name);
    *kernel = found;
    return end(CUDA_SUCCESS);
}

/* Of the library that the kernel is of; 0: it is unloaded. */
static int serial_of(const Kernel *kernel) {
    for (int i = 0; i < LIBRARIES; i++) {
        const Library *library = &fake.libraries[i];
        if (kernel >= library->kernels && kernel < library->kernels + KERNELS) return library->serial;
    }
    return 0;
}

static bool is_loaded(const Kernel *kernel) { return serial_of(kernel) != 0; }

#ifndef FAKE_CUDA_OLD /* drivers before 12.0 do not have it */
EXPORT int cuKernelGetFunction(void **function, void *kernel) {
    CALL_THAT_WAITS();
    if (!current() || !is_loaded(kernel)) return end(refuse(CUDA_ERROR_INVALID_HANDLE));
    *function = kernel;
    return end(CUDA_SUCCESS);
}
#endif

EXPORT int cuKernelSetAttribute(int attribute, int value, void *kernel, int device) {
    enum { DYNAMIC_SHARED_LIMIT = 8 };
    CALL_THAT_WAITS();
    if (attribute != DYNAMIC_SHARED_LIMIT || value > fake.shared || !is_loaded(kernel))
        return end(refuse(CUDA_ERROR_INVALID_VALUE));
    if (value > PLAIN_SHARED) ((Kernel *)kernel)->shared[device] = value;
    return end(CUDA_SUCCESS);
}

static int check_launch(const Kernel *kernel, unsigned grid, unsigned block, unsigned shared, const Stream *stream) {
    if (!current()) return refuse(CUDA_ERROR_INVALID_CONTEXT);
    if (!is_loaded(kernel) || !fits(stream)) return refuse(CUDA_ERROR_INVALID_HANDLE);
    if (!grid || !block || block > 1024 || shared > (unsigned)kernel->shared[current()->device])
        return refuse(CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

static int launch_now(const Node *node) {
    if (serial_of(node->kernel) != node->serial) return refuse(CUDA_ERROR_INVALID_HANDLE);
    if (fake.kernel) fake.kernel(node->launch);
    return CUDA_SUCCESS;
}

static int launch_grid(void *function, unsigned blocks, unsigned threads, unsigned shared_bytes, void *stream,
                       void **parameters, bool early) {
    int result = check_launch(function, blocks, threads, shared_bytes, stream);
    if (result != CUDA_SUCCESS) return result;
    FakeCudaLaunch *launch = &fake.launches[fake.state.launches++ % LAUNCHES];
    *launch =
        (FakeCudaLaunch){((Kernel *)function)->name, current(), stream, blocks, threads, shared_bytes, early, {0}};
    for (unsigned i = 0; i < fake.expected && parameters[i]; i++) memcpy(&launch->parameters[i], parameters[i], 8);
    fake.clock += 1e-6 * blocks * threads;
    return queue(stream, (Node){.launch = launch, .kernel = function, .serial = serial_of(function)}, launch_now);
}

EXPORT int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **parameters,
                          void **extra) {
    CALL();
    (void)extra;
    return end(launch_grid(function, grid_x * grid_y * grid_z, block_x * block_y * block_z, shared_bytes, stream,
                           parameters, false));
}

/* CUlaunchConfig, and CUlaunchAttribute with its 64 bytes. */
typedef struct Attribute {
    int id, padding, value[16];
} Attribute;
typedef struct Config {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    const Attribute *attributes;
    unsigned attribute_count;
} Config;

EXPORT int cuLaunchKernelEx(const Config *config, void *function, void **parameters, void **extra) {
    CALL();
    (void)extra;
    enum { PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
    bool early = false;
    for (unsigned i = 0; i < config->attribute_count; i++)
        early |= config->attributes[i].id == PROGRAMMATIC_STREAM_SERIALIZATION && config->attributes[i].value[0] == 1;
    return end(launch_grid(function, config->grid[0] * config->grid[1] * config->grid[2],
                           config->block[0] * config->block[1] * config->block[2], config->shared_bytes, config->stream,
                           parameters, early));
}

/* ---- events ---- */

EXPORT int cuEventCreate(void **event, unsigned flags) {
    CALL();
    if (!current() || flags) return end(refuse(CUDA_ERROR_INVALID_CONTEXT));
    Event *made = fake.events;
    while (made < fake.events + EVENTS && made->used) made++;
    if (made == fake.events + EVENTS) return end(CUDA_ERROR_OUT_OF_MEMORY);
    *made = (Event){.used = true};
    fake.state.events++;
    *event = made;
    return end(CUDA_SUCCESS);
}

EXPORT int cuEventDestroy_v2(void *event) {
    CALL();
    ((Event *)event)->used = false;
    fake.state.events--;
    return end(CUDA_SUCCESS);
}

EXPORT int cuEventRecord(void *event, void *stream) {
    CALL();
    if (!fits(stream)) return end(refuse(CUDA_ERROR_INVALID_HANDLE));
    ((Event *)event)->time = fake.clock;
    return end(CUDA_SUCCESS);
}

EXPORT int cuEventSynchronize(void *event) {
    CALL_THAT_WAITS();
    return end(((Event *)event)->used ? CUDA_SUCCESS : refuse(CUDA_ERROR_INVALID_HANDLE));
}

EXPORT int cuEventElapsedTime(float *milliseconds, void *first, void *second) {
    CALL();
    *milliseconds = (float)(((Event *)second)->time - ((Event *)first)->time);
    return end(CUDA_SUCCESS);
}

/* ---- words ---- */

EXPORT int cuGetErrorName(int result, const char **name) {
    switch (result) {
#define RESULT(id, number)                                                                                             \
    case number: *name = "CUDA_" #id; return CUDA_SUCCESS;
        RESULTS(RESULT)
#undef RESULT
    default: *name = NULL; return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT int cuGetErrorString(int result, const char **text) {
    *text = result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "as the fake driver was told";
    return CUDA_SUCCESS;
}

/* ---- what tests ask ---- */

EXPORT FakeCudaState fake_cuda_state(void) {
    pthread_mutex_lock(&fake.mutex);
    FakeCudaState state = fake.state;
    pthread_mutex_unlock(&fake.mutex);
    state.context_depth = thread.depth;
    return state;
}

EXPORT int fake_cuda_calls(const char *function) {
    pthread_mutex_lock(&fake.mutex);
    int calls = *count_of(function);
    pthread_mutex_unlock(&fake.mutex);
    return calls;
}

EXPORT void fake_cuda_fail(const char *function, int nth, int result) {
    snprintf(fake.fail_name, NAME_BYTES, "%s", function ? function : "");
    fake.fail_in = nth;
    fake.fail_result = result;
    fake.has_failed = false;
}

EXPORT bool fake_cuda_has_failed(void) { return fake.has_failed; }
EXPORT void fake_cuda_set_devices(int count) { fake.devices = count; }
EXPORT void fake_cuda_set_shared_limit(int bytes) { fake.shared = bytes; }

EXPORT void *fake_cuda_context(int device) {
    Context *context = &fake.contexts[fake.context_count++];
    context->device = device;
    return context;
}

EXPORT void *fake_cuda_stream(void *context) {
    Stream *stream = &fake.streams[fake.stream_count++];
    stream->context = context;
    return stream;
}

EXPORT void *fake_cuda_primary(int device) { return &fake.contexts[device]; }
EXPORT void *fake_cuda_current(void) { return current(); }

EXPORT void fake_cuda_begin_capture(void) {
    fake.capturing = true;
    fake.capture_is_bad = false;
}

EXPORT bool fake_cuda_end_capture(void) {
    fake.capturing = false;
    return !fake.capture_is_bad;
}

EXPORT void fake_cuda_run_graph(void) {
    pthread_mutex_lock(&fake.mutex);
    thread.stack[thread.depth++] = &fake.contexts[0];
    for (const Node *node = fake.nodes; node < fake.nodes + fake.node_count; node++) {
        if (node->launch) launch_now(node);
        if (node->cleared) clear_now(node);
        if (node->copied) copy_now(node);
        if (node->function) call_now(node);
    }
    thread.depth--;
    pthread_mutex_unlock(&fake.mutex);
}

EXPORT void fake_cuda_drop_graph(void) {
    thread.stack[thread.depth++] = &fake.contexts[0];
    for (int i = 0; i < fake.node_count; i++)
        if (fake.nodes[i].own) release(fake.nodes[i].own);
    thread.depth--;
    fake.node_count = 0;
}

EXPORT void *fake_cuda_register(size_t bytes, int type) {
    Memory *memory = add_memory(bytes, 0, type);
    return memory ? memory->data : NULL;
}

EXPORT void fake_cuda_set_kernel(void (*kernel)(const FakeCudaLaunch *launch)) { fake.kernel = kernel; }
EXPORT void fake_cuda_expect(unsigned parameters) { fake.expected = parameters; }

EXPORT const FakeCudaLaunch *fake_cuda_launch(int number) {
    return number < fake.state.launches ? &fake.launches[number] : NULL;
}
