/* The linker redirects the launcher's calls to these (--wrap in tests/CMakeLists.txt). */
#define _GNU_SOURCE
#include "counters.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

static _Atomic unsigned long allocations, locks;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int descriptor, off_t offset);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int descriptor, off_t offset);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);

void *__wrap_malloc(size_t bytes) {
    atomic_fetch_add(&allocations, 1);
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) {
    atomic_fetch_add(&allocations, 1);
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes) {
    atomic_fetch_add(&allocations, 1);
    return __real_realloc(memory, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    atomic_fetch_add(&allocations, 1);
    return __real_aligned_alloc(alignment, bytes);
}

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int descriptor, off_t offset) {
    atomic_fetch_add(&allocations, 1);
    return __real_mmap(address, bytes, protection, flags, descriptor, offset);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
    atomic_fetch_add(&locks, 1);
    return __real_pthread_mutex_lock(mutex);
}

CallCounts count_calls(void) { return (CallCounts){atomic_load(&allocations), atomic_load(&locks)}; }
