/* The fake driver's memory: the host's, counted as a device's. */
#include <stdlib.h>
#include <string.h>

#include "fake_state.h"

/* ---- memory ---- */

static Memory *find_memory(uint64_t address) {
    for (int i = 0; i < MEMORIES; i++) {
        Memory *memory = &fake.memories[i];
        if (memory->data && address - (uintptr_t)memory->data < memory->bytes) return memory;
    }
    return NULL;
}

Memory *fake_add_memory(size_t bytes, int device, int type) {
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
    Memory *memory = fake_add_memory(bytes, device, ON_DEVICE);
    if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
    fake.used[device] += bytes;
    fake.state.allocations++;
    *address = (uintptr_t)memory->data;
    return CUDA_SUCCESS;
}

int fake_release(uint64_t address) {
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
    return end(fake_release(address));
}

/* Properties begin with the types of allocation, handles and location, and the device. A pool is represented by its
 * device. */
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
    fake.state.kept = *value;
    return end(pool && attribute == RELEASE_THRESHOLD && *value ? CUDA_SUCCESS : refuse(CUDA_ERROR_INVALID_VALUE));
}

EXPORT int cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes, void *pool, void *stream) {
    CALL();
    bool here = fits(stream) && current() && (uintptr_t)pool == (uintptr_t)current()->device + 1;
    return end(here ? allocate(address, bytes) : refuse(CUDA_ERROR_INVALID_HANDLE));
}

static int release_now(const Node *node) { return fake_release(node->own); }

EXPORT int cuMemFreeAsync(uint64_t address, void *stream) {
    CALL();
    return end(fake_queue(stream, (Node){.own = address}, release_now));
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
    return end(fake_queue(stream, (Node){.cleared = address, .bytes = bytes}, clear_now));
}

static int copy_now(const Node *node) { return copy(node->copied, node->host, node->bytes, false); }

EXPORT int cuMemcpyDtoHAsync_v2(void *host, uint64_t address, size_t bytes, void *stream) {
    CALL();
    return end(fake_queue(stream, (Node){.copied = address, .host = host, .bytes = bytes}, copy_now));
}

static int call_now(const Node *node) {
    node->function(node->host);
    return CUDA_SUCCESS;
}

EXPORT int cuLaunchHostFunc(void *stream, void (*function)(void *state), void *state) {
    CALL();
    return end(fake_queue(stream, (Node){.function = function, .host = state}, call_now));
}

EXPORT int cuStreamIsCapturing(void *stream, int *status) {
    CALL();
    *status = fake.capturing;
    return end(fits(stream) ? CUDA_SUCCESS : refuse(CUDA_ERROR_INVALID_HANDLE));
}

EXPORT int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    CALL_THAT_WAITS();
    if (!current() || flags) return end(refuse(CUDA_ERROR_INVALID_VALUE));
    Memory *made = fake_add_memory(bytes, 0, FAKE_CUDA_HOST);
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

/* For memory that the driver does not know, it sets nothing and succeeds. */
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
