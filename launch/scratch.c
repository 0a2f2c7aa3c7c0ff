#define _GNU_SOURCE
#include "launch/scratch.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

static const size_t huge_page = (size_t)2 << 20;

static void free_memory(TileScratch *scratch) {
    if (scratch->bytes >= huge_page)
        munmap(scratch->memory, scratch->bytes);
    else
        free(scratch->memory);
    scratch->memory = NULL;
    scratch->bytes = 0;
}

/* Mapped at a huge page's boundary: one more page is mapped, and the ends are unmapped. */
static void *map_huge(size_t bytes) {
    char *mapped = mmap(NULL, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return NULL;
    size_t before = (huge_page - (uintptr_t)mapped % huge_page) % huge_page;
    if (before) munmap(mapped, before);
    if (huge_page - before) munmap(mapped + before + bytes, huge_page - before);
    madvise(mapped + before, bytes, MADV_HUGEPAGE);
    return mapped + before;
}

/* The old contents are lost: nothing is copied. */
static int grow(TileScratch *scratch, size_t bytes) {
    if (bytes > SIZE_MAX / 2) return 0;
    size_t step = bytes >= huge_page ? huge_page : 4096;
    bytes = (bytes + step - 1) / step * step;
    free_memory(scratch);
    scratch->memory = bytes >= huge_page ? map_huge(bytes) : aligned_alloc(64, bytes);
    scratch->bytes = scratch->memory ? bytes : 0;
    return scratch->memory != NULL;
}

TileScratch *tile_scratch_take(TileScratchCache *cache, size_t bytes) {
    int core = sched_getcpu();
    unsigned first = core < 0 ? 0 : (unsigned)core;
    TileScratch *scratch = NULL;
    for (unsigned i = 0; i < TILE_SCRATCH_SLOTS && !scratch; i++) {
        _Atomic(TileScratch *) *slot = &cache->slots[(first + i) % TILE_SCRATCH_SLOTS];
        if (atomic_load_explicit(slot, memory_order_relaxed)) scratch = atomic_exchange(slot, NULL);
    }
    if (!scratch) scratch = calloc(1, sizeof *scratch);
    if (!scratch) return NULL;
    if (scratch->bytes < bytes && !grow(scratch, bytes)) {
        free(scratch);
        return NULL;
    }
    return scratch;
}

void tile_scratch_give(TileScratchCache *cache, TileScratch *scratch) {
    int core = sched_getcpu();
    unsigned first = core < 0 ? 0 : (unsigned)core;
    for (unsigned i = 0; i < TILE_SCRATCH_SLOTS; i++) {
        TileScratch *empty = NULL;
        if (atomic_compare_exchange_strong(&cache->slots[(first + i) % TILE_SCRATCH_SLOTS], &empty, scratch)) return;
    }
    free_memory(scratch);
    free(scratch);
}

void tile_scratch_clear(TileScratchCache *cache) {
    for (unsigned i = 0; i < TILE_SCRATCH_SLOTS; i++) {
        TileScratch *scratch = atomic_exchange(&cache->slots[i], NULL);
        if (!scratch) continue;
        free_memory(scratch);
        free(scratch);
    }
}
