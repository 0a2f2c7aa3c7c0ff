/* Tensor maps of a phase's launches: made by the driver from the tensors' addresses, extents and strides, and
 * remembered by these. All functions may be called from any thread. */
#ifndef TILE_LAUNCH_CUDA_MAPS_H
#define TILE_LAUNCH_CUDA_MAPS_H

#include "base/tensor_map.h"
#include "launch/image.h"

typedef struct TileCudaMap {
    _Alignas(TILE_MAP_ALIGN) uint64_t words[TILE_MAP_BYTES / 8];
} TileCudaMap;

/* Of a phase that has maps, as many as the image says. NULL if out of memory. */
typedef struct TileCudaMaps TileCudaMaps;
TileCudaMaps *tile_cuda_maps_create(const TileImageMap *maps, uint32_t count);
void tile_cuda_maps_destroy(TileCudaMaps *maps);
uint32_t tile_cuda_maps_count(const TileCudaMaps *maps);
/* The maps for a launch with these slots: `made` has room for all. The driver is called for those that are not
 * remembered. TILE_DRIVER if it refuses the tensor, which the guards should have kept away. */
tile_status tile_cuda_maps_find(TileCudaMaps *maps, const uint64_t *slots, TileCudaMap *made, const char *kernel,
                                TileError *error);

#endif
