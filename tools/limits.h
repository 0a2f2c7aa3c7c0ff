/* The limits of this machine, measured: memory bandwidth of copies, and throughput of FMAs. */
#ifndef TILE_TOOLS_LIMITS_H
#define TILE_TOOLS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

#include "tile/launch.h"

/* Runs `rounds` times sixteen FMAs of f32 in this machine's widest vectors, on this thread, and returns the number of
 * floating-point operations. */
double tile_fma_flops(long rounds);

/* Work for tile_measure, shared among the threads of the process's pool as a kernel's programs are. */
typedef struct TileCopyWork {
    char *from, *to;
    size_t bytes; /* read, and as many written */
} TileCopyWork;

/* Allocates buffers for `bytes` of traffic, half of it read and half written; at least a page each, and at most half a
 * gigabyte. False if memory runs out. */
bool tile_copy_create(TileCopyWork *work, double bytes);
void tile_copy_destroy(TileCopyWork *work);
bool tile_copy_run(void *work);

typedef struct TileFmaWork {
    long rounds; /* of each thread */
    double flops;
} TileFmaWork;

/* Work of about a millisecond for each thread of the pool. */
TileFmaWork tile_fma_work(void);
bool tile_fma_run(void *work);

#endif
