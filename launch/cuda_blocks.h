/* Blocks of a grid on a device's multiprocessors: how many run at a time, and what spreads them evenly. */
#ifndef TILE_LAUNCH_CUDA_BLOCKS_H
#define TILE_LAUNCH_CUDA_BLOCKS_H

#include "launch/cuda_driver.h"

/* What the driver is asked about: a CUfunction, threads and bytes of shared memory of its blocks, the device's handle, and what
 * errors name. */
typedef struct TileCudaCode {
    void *function;
    uint32_t threads;
    uint64_t shared_bytes;
    int handle;
    int device;
    const char *kernel;
} TileCudaCode;

/* How many blocks run on the device at a time. An error if none does. */
tile_status tile_cuda_blocks_count(const TileCudaCode *code, uint32_t *blocks, TileError *error);

/* A grid that may start before the one before it has ended finds multiprocessors that are busy and others that are free. The
 * device fills these with as many blocks as fit, although blocks one by one on each would end sooner: of 256 blocks, three of
 * which fit, 86 multiprocessors then have three each and 46 none. More shared memory than a block needs keeps them apart. */
typedef struct TileCudaSpread {
    uint32_t multiprocessors;
    uint32_t fit;            /* blocks on one multiprocessor; 0: blocks come in clusters, which are not spread */
    uint32_t shared_bytes;   /* of a multiprocessor */
    uint32_t reserved_bytes; /* of each block, by the driver */
} TileCudaSpread;

tile_status tile_cuda_spread_find(const TileCudaCode *code, TileCudaSpread *spread, TileError *error);
/* The shared memory of each of so many blocks that need `bytes`: the least with which no multiprocessor takes more of them than
 * it has to. */
uint32_t tile_cuda_spread_bytes(const TileCudaSpread *spread, uint32_t bytes, uint32_t blocks);

#endif
