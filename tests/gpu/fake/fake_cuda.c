/* The fake driver: its state, configuration, devices, contexts and graphs, and what tests ask of it. */
#include "fake_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Fake fake = {.mutex = PTHREAD_MUTEX_INITIALIZER,
             .devices = 2,
             .capability = 90,
             .shared = 227 * 1024,
             .version = 12080,
             .memory = (size_t)1 << 30,
             .context_count = DEVICES};

_Thread_local FakeThread thread;

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

int *fake_count_of(const char *function) {
    int i = 0;
    while (i < FUNCTIONS - 1 && fake.functions[i].name[0] && strcmp(fake.functions[i].name, function) != 0) i++;
    snprintf(fake.functions[i].name, NAME_BYTES, "%s", function);
    return &fake.functions[i].calls;
}

int fake_begin(const char *function) {
    pthread_mutex_lock(&fake.mutex);
    if (!fake.configured) configure();
    fake.state.calls++;
    ++*fake_count_of(function);
    if (!fake.fail_in || (*fake.fail_name && strcmp(fake.fail_name, function) != 0)) return CUDA_SUCCESS;
    if (--fake.fail_in) return CUDA_SUCCESS;
    fake.has_failed = true;
    return fake.fail_result;
}

int fake_unless_capturing(void) {
    enum { RELAXED = 2 };
    if (!fake.capturing || thread.capture_mode == RELAXED) return CUDA_SUCCESS;
    fake.capture_is_bad = true;
    return refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

int fake_queue(const void *stream, Node node, int (*happen)(const Node *node)) {
    if (!fits(stream)) return refuse(CUDA_ERROR_INVALID_HANDLE);
    if (!fake.capturing) return happen(&node);
    if (fake.node_count == NODES) return CUDA_ERROR_OUT_OF_MEMORY;
    node.happen = happen;
    fake.nodes[fake.node_count++] = node;
    return CUDA_SUCCESS;
}

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
    enum { MULTIPROCESSORS = 16, MAJOR = 75, MINOR = 76, SHARED_OF_MULTIPROCESSOR = 81, SHARED_OPT_IN = 97, RESERVED_OF_BLOCK = 111 };
    CALL();
    if (device < 0 || device >= fake.devices) return end(refuse(CUDA_ERROR_INVALID_DEVICE));
    switch (attribute) {
    case MULTIPROCESSORS: *value = FAKE_MULTIPROCESSORS; break;
    case MAJOR: *value = fake.capability / 10; break;
    case MINOR: *value = fake.capability % 10; break;
    case SHARED_OPT_IN: *value = fake.shared; break;
    case RESERVED_OF_BLOCK: *value = FAKE_RESERVED_SHARED; break;
    case SHARED_OF_MULTIPROCESSOR: *value = fake.shared + FAKE_RESERVED_SHARED; break;
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

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    CALL();
    if (device < 0 || device >= fake.devices) return end(refuse(CUDA_ERROR_INVALID_DEVICE));
    *bytes = fake.memory;
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

/* PyTorch asks for it (tests/python/fake). */
EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    CALL();
    if (device < 0 || device >= fake.devices) return end(refuse(CUDA_ERROR_INVALID_DEVICE));
    *flags = 0;
    *active = fake.state.primary_references[device] > 0;
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

EXPORT int cuStreamSynchronize(void *stream) {
    CALL_THAT_WAITS();
    return end(fits(stream) ? CUDA_SUCCESS : refuse(CUDA_ERROR_INVALID_HANDLE));
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

/* ---- queries for tests ---- */

EXPORT FakeCudaState fake_cuda_state(void) {
    pthread_mutex_lock(&fake.mutex);
    FakeCudaState state = fake.state;
    pthread_mutex_unlock(&fake.mutex);
    state.context_depth = thread.depth;
    return state;
}

EXPORT int fake_cuda_calls(const char *function) {
    pthread_mutex_lock(&fake.mutex);
    int calls = *fake_count_of(function);
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

EXPORT void fake_cuda_set_memory(size_t bytes) { fake.memory = bytes; }

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
    for (const Node *node = fake.nodes; node < fake.nodes + fake.node_count; node++)
        if (!node->own) node->happen(node); /* memory owned by the graph lives as long as the graph */
    thread.depth--;
    pthread_mutex_unlock(&fake.mutex);
}

EXPORT void fake_cuda_drop_graph(void) {
    thread.stack[thread.depth++] = &fake.contexts[0];
    for (int i = 0; i < fake.node_count; i++)
        if (fake.nodes[i].own) fake_release(fake.nodes[i].own);
    thread.depth--;
    fake.node_count = 0;
}

EXPORT void *fake_cuda_register(size_t bytes, int type) {
    Memory *memory = fake_add_memory(bytes, 0, type);
    return memory ? memory->data : NULL;
}

EXPORT void fake_cuda_set_kernel(void (*kernel)(const FakeCudaLaunch *launch)) { fake.kernel = kernel; }
EXPORT void fake_cuda_expect(unsigned parameters) { fake.expected = parameters; }
EXPORT void fake_cuda_expect_maps(unsigned maps) { fake.expected_maps = maps; }

EXPORT const FakeCudaLaunch *fake_cuda_launch(int number) {
    return number < fake.state.launches ? &fake.launches[number] : NULL;
}
