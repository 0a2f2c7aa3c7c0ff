/* What tests/kernels/guest.c and the runner say to one another: a header, then its arrays, then the bytes of the
 * regions. The runner's answer is a JobResult and the bytes of the regions after the call. */
#ifndef TESTS_GUEST_JOB_H
#define TESTS_GUEST_JOB_H

#include <stdint.h>

typedef struct JobHeader {
    uint64_t region_count, slot_count, pointer_count;
    int64_t begin, end; /* programs */
    uint64_t scratch_bytes;
    char symbol[128];
} JobHeader;

/* Bytes that the code may touch. `offset` is that of their first byte in its page, on both machines. */
typedef struct JobRegion {
    uint64_t size, offset;
} JobRegion;

/* A slot that holds an address: `offset` bytes into a region; a region of JOB_NOWHERE: one that must not be used. */
typedef struct JobPointer {
    uint64_t slot, region, offset;
} JobPointer;

enum { JOB_PAGE = 4096 };
#define JOB_NOWHERE UINT64_MAX

typedef struct JobResult {
    uint64_t vector_bits; /* the vector length that the code ran with */
    int64_t assertion;    /* first 8 bytes of scratch: the number of an assertion that failed */
} JobResult;

#endif
