/* The fake driver's state, shared by its files. */
#ifndef TILE_TESTS_FAKE_STATE_H
#define TILE_TESTS_FAKE_STATE_H

#include <pthread.h>

#include "fake_cuda.h"

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
    STREAMS = 512, /* PyTorch makes pools of them */
    LIBRARIES = 512,
    KERNELS = 8,
    MEMORIES = 256,
    EVENTS = 16,
    LAUNCHES = 1024,
    FUNCTIONS = 64,
    NAME_BYTES = 64,
    DEPTH = 16,
    NODES = 64,
    PLAIN_SHARED = 48 * 1024,
    FAKE_MULTIPROCESSORS = 4,
    FAKE_RESERVED_SHARED = 1024 /* of each block, by the driver */
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
    int cluster; /* blocks of one; 0: there is none */
} Kernel;
typedef struct Library {
    int serial; /* 0: unloaded */
    Kernel kernels[KERNELS];
} Library;
typedef struct Event {
    bool used;
    double time; /* of the device's clock, in milliseconds */
} Event;
/* A node of a captured graph: a launch of a library's kernel, a memset, a copy to the host, a host function; and memory
 * that the graph owns. */
typedef struct Node {
    const FakeCudaLaunch *launch;
    const Kernel *kernel;
    int serial;
    uint64_t cleared, copied, own;
    size_t bytes;
    void *host;
    void (*function)(void *state);
    int (*happen)(const struct Node *node);
} Node;
typedef struct Memory {
    char *data;
    size_t bytes;
    int device, type;
} Memory;

typedef struct Fake {
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
    double clock; /* a thread takes one nanosecond */
    struct {
        char name[NAME_BYTES];
        int calls;
    } functions[FUNCTIONS];
    FakeCudaState state;
    FakeCudaLaunch launches[LAUNCHES];
    unsigned expected, expected_maps;
    void (*kernel)(const FakeCudaLaunch *launch);
    Node nodes[NODES];
    int node_count;
    char fail_name[NAME_BYTES];
    int fail_in, fail_result;
    bool has_failed;
} Fake;
extern Fake fake;

typedef struct FakeThread {
    Context *stack[DEPTH];
    int depth, capture_mode;
} FakeThread;
extern _Thread_local FakeThread thread;

/* Counts the call and locks the mutex; gives the result that was requested for it, or success. */
int fake_begin(const char *function);
/* How often the function was called. */
int *fake_count_of(const char *function);
/* Calls that may wait for the device are not allowed while a stream captures, unless the thread has relaxed its capture
 * mode. */
int fake_unless_capturing(void);

static inline int end(int result) {
    pthread_mutex_unlock(&fake.mutex);
    return result;
}

static inline int refuse(int result) {
    fake.state.violations++;
    return result;
}

#define CALL()                                                                                                         \
    int result = fake_begin(__func__);                                                                                 \
    if (result != CUDA_SUCCESS) return end(result)
#define CALL_THAT_WAITS()                                                                                              \
    CALL();                                                                                                            \
    result = fake_unless_capturing();                                                                                  \
    if (result != CUDA_SUCCESS) return end(result)

static inline Context *current(void) { return thread.depth ? thread.stack[thread.depth - 1] : NULL; }

/* The default stream belongs to any context. */
static inline bool fits(const Stream *stream) { return (uintptr_t)stream <= 2 || stream->context == current(); }

/* Executes now, or adds to the capture. */
int fake_queue(const void *stream, Node node, int (*happen)(const Node *node));

/* fake_memory.c: of the driver's location and type; NULL: out of memory. */
Memory *fake_add_memory(size_t bytes, int device, int type);
int fake_release(uint64_t address);

#endif
