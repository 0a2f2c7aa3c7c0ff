/* Protocol between tests/kernels/guest.c and the runner: a header, its arrays, and the bytes of the regions. The runner
 * replies with a JobResult and the bytes of the regions after the call. */
#ifndef TESTS_GUEST_JOB_H
#define TESTS_GUEST_JOB_H

#include <stdint.h>

typedef struct JobHeader {
    uint64_t region_count, slot_count, pointer_count;
    int64_t begin, end; /* programs */
    uint64_t scratch_bytes;
    char symbol[128];
} JobHeader;

/* Bytes that the code may access. `offset` is the offset of the first byte in its page, on both machines. */
typedef struct JobRegion {
    uint64_t size, offset;
} JobRegion;

/* A slot with an address: `offset` bytes into a region; region JOB_NOWHERE: an address that must not be used. */
typedef struct JobPointer {
    uint64_t slot, region, offset;
} JobPointer;

enum { JOB_PAGE = 4096 };
#define JOB_NOWHERE UINT64_MAX

typedef struct JobResult {
    uint64_t vector_bits; /* the vector length that the code ran with */
    int64_t assertion;    /* first 8 bytes of scratch: the number of a failed assertion */
} JobResult;

#endif
