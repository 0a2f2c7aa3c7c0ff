/* Blocks of a grid on a device's multiprocessors. */
#include "launch/cuda_blocks.h"

enum { MULTIPROCESSORS = 16, SHARED_OF_MULTIPROCESSOR = 81, RESERVED_OF_BLOCK = 111 }; /* CUdevice_attribute */

static tile_status find_cluster_width(const TileCudaCode *code, int *width, TileError *error) {
    enum { CLUSTER_WIDTH = 11 };
    return tile_cuda_check(tile_cuda_driver()->function_attribute(width, CLUSTER_WIDTH, code->function), code->kernel, error);
}

static tile_status ask_device(const TileCudaCode *code, int attribute, uint32_t *value, TileError *error) {
    int found = 0;
    TILE_TRY(tile_cuda_check(tile_cuda_driver()->device_attribute(&found, attribute, code->handle), code->kernel, error));
    *value = (uint32_t)found;
    return TILE_OK;
}

/* The blocks that run on the device at a time, of code in clusters of so many. */
static int count_clustered(const TileCudaCode *code, int width, uint32_t *blocks) {
    TileCudaLaunchAttribute cluster = {.id = TILE_CUDA_CLUSTER_DIMENSION, .value.cluster = {(unsigned)width, 1, 1}};
    TileCudaLaunchConfig config = {.grid = {(unsigned)width, 1, 1},
                                   .block = {code->threads, 1, 1},
                                   .shared_bytes = (unsigned)code->shared_bytes,
                                   .attributes = &cluster,
                                   .attribute_count = 1};
    int clusters = 0, result = tile_cuda_driver()->cluster_occupancy(&clusters, code->function, &config);
    *blocks = (uint32_t)(clusters * width);
    return result;
}

/* On one multiprocessor. */
static tile_status count_fit(const TileCudaCode *code, uint32_t *fit, TileError *error) {
    int blocks = 0, result = tile_cuda_driver()->occupancy(&blocks, code->function, (int)code->threads, code->shared_bytes);
    *fit = (uint32_t)blocks;
    return tile_cuda_check(result, code->kernel, error);
}

tile_status tile_cuda_blocks_count(const TileCudaCode *code, uint32_t *blocks, TileError *error) {
    int width = 0;
    TILE_TRY(find_cluster_width(code, &width, error));
    if (width > 1) {
        TILE_TRY(tile_cuda_check(count_clustered(code, width, blocks), code->kernel, error));
    } else {
        uint32_t multiprocessors = 0;
        TILE_TRY(ask_device(code, MULTIPROCESSORS, &multiprocessors, error));
        TILE_TRY(count_fit(code, blocks, error));
        *blocks *= multiprocessors;
    }
    if (*blocks) return TILE_OK;
    return tile_error_set(error, TILE_UNAVAILABLE, "%s: no block fits on a multiprocessor of cuda:%d", code->kernel, code->device);
}

tile_status tile_cuda_spread_find(const TileCudaCode *code, TileCudaSpread *spread, TileError *error) {
    int width = 0;
    *spread = (TileCudaSpread){0};
    TILE_TRY(find_cluster_width(code, &width, error));
    if (width > 1) return TILE_OK;
    TILE_TRY(ask_device(code, MULTIPROCESSORS, &spread->multiprocessors, error));
    TILE_TRY(ask_device(code, SHARED_OF_MULTIPROCESSOR, &spread->shared_bytes, error));
    TILE_TRY(ask_device(code, RESERVED_OF_BLOCK, &spread->reserved_bytes, error));
    return count_fit(code, &spread->fit, error);
}

uint32_t tile_cuda_spread_bytes(const TileCudaSpread *spread, uint32_t bytes, uint32_t blocks) {
    enum { UNIT = 128 /* in which shared memory is given */ };
    if (!spread->fit || !blocks) return bytes;
    uint32_t each = (blocks - 1) / spread->multiprocessors + 1;
    if (each >= spread->fit) return bytes;
    uint32_t too_few = spread->shared_bytes / (each + 1) - spread->reserved_bytes; /* with so much, one more fits at most just so */
    uint32_t apart = (too_few / UNIT + 1) * UNIT;
    return apart > bytes ? apart : bytes;
}
