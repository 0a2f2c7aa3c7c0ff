/* Runs one range of a kernel's programs on an AArch64 machine with SVE, usually emulated by QEMU.
 *
 * usage: runner OBJECT.so < job > result (see job.h)
 *
 * Regions are between guard pages, at the same distance from them as on the sending machine. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "job.h"

static void fail(const char *what) {
    fprintf(stderr, "runner: %s\n", what);
    exit(1);
}

static void read_all(void *to, size_t size) {
    if (size && fread(to, size, 1, stdin) != 1) fail("the job ends early");
}

static void *allocate(size_t size) {
    void *memory = calloc(1, size + 1);
    if (!memory) fail("out of memory");
    return memory;
}

/* The region's bytes, between two guard pages. */
static unsigned char *map_region(const JobRegion *region) {
    size_t inside = (size_t)((region->offset + region->size + JOB_PAGE - 1) / JOB_PAGE * JOB_PAGE);
    unsigned char *map = mmap(NULL, inside + 2 * JOB_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map, JOB_PAGE, PROT_NONE) ||
        mprotect(map + JOB_PAGE + inside, JOB_PAGE, PROT_NONE))
        fail("no memory for a region");
    return map + JOB_PAGE + region->offset;
}

typedef void Entry(const uint64_t *slots, int64_t begin, int64_t end, void *scratch);

int main(int count, char **arguments) {
    JobHeader header;
    if (count != 2) fail("usage: runner OBJECT.so");
    read_all(&header, sizeof header);
    JobRegion *regions = allocate(header.region_count * sizeof *regions);
    uint64_t *slots = allocate(header.slot_count * sizeof *slots);
    JobPointer *pointers = allocate(header.pointer_count * sizeof *pointers);
    unsigned char **memory = allocate(header.region_count * sizeof *memory);
    read_all(regions, header.region_count * sizeof *regions);
    read_all(slots, header.slot_count * sizeof *slots);
    read_all(pointers, header.pointer_count * sizeof *pointers);
    for (uint64_t i = 0; i < header.region_count; i++) {
        memory[i] = map_region(&regions[i]);
        read_all(memory[i], regions[i].size);
    }
    JobRegion nothing = {0, 0};
    for (uint64_t i = 0; i < header.pointer_count; i++) {
        const JobPointer *pointer = &pointers[i];
        unsigned char *base = pointer->region == JOB_NOWHERE ? map_region(&nothing) : memory[pointer->region];
        slots[pointer->slot] = (uint64_t)(uintptr_t)(base + (pointer->region == JOB_NOWHERE ? 0 : pointer->offset));
    }
    void *scratch = NULL;
    if (posix_memalign(&scratch, 64, header.scratch_bytes + 64)) fail("no memory for scratch");
    memset(scratch, 0xff, header.scratch_bytes + 64);
    JobResult result = {.vector_bits = (uint64_t)(prctl(PR_SVE_GET_VL) & PR_SVE_VL_LEN_MASK) * 8};
    memcpy(scratch, &result.assertion, sizeof result.assertion);
    void *object = dlopen(arguments[1], RTLD_NOW);
    if (!object) fail(dlerror());
    void *symbol = dlsym(object, header.symbol);
    if (!symbol) fail("the object lacks the symbol");
    Entry *entry;
    memcpy(&entry, &symbol, sizeof entry);
    entry(slots, header.begin, header.end, scratch);
    memcpy(&result.assertion, scratch, sizeof result.assertion);
    fwrite(&result, sizeof result, 1, stdout);
    for (uint64_t i = 0; i < header.region_count; i++) fwrite(memory[i], regions[i].size, 1, stdout);
    return fflush(stdout) ? 1 : 0;
}
