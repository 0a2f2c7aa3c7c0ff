#include "ptx/target/map.h"

enum { LEAST_ROW_BYTES = 32, MAP_ALIGN = 16 };

static int64_t row_bytes(const TileType *tile) { return tile->extent[1] * tile_scalar_bytes(tile->scalar); }

bool gpu_map_fits_tile(const TileType *tile) {
    int64_t bytes = row_bytes(tile);
    return tile->rank == 2 && (bytes == LEAST_ROW_BYTES || bytes == 2 * LEAST_ROW_BYTES || bytes % GPU_PANEL_BYTES == 0);
}

const char *gpu_map_fits_tensor(TileParameter *parameter, const TileType *tensor) {
    int64_t unit = tile_scalar_bytes(tensor->scalar);
    if (parameter->facts.stride[tensor->rank - 1] != unit) return "the tensor's last axis may not be contiguous";
    if (parameter->facts.align < MAP_ALIGN) return "the tensor may not be aligned to 16 bytes";
    return NULL;
}

const TileType *gpu_panel_type(TileContext *context, const TileType *tile) {
    unsigned log_chunks = 0;
    while (log_chunks < TILE_MAX_LOG_CHUNKS && row_bytes(tile) % ((int64_t)TILE_CHUNK_BYTES << (log_chunks + 1)) == 0)
        log_chunks++;
    return tile_type_shared(context, tile->scalar, tile->extent, TILE_SWIZZLE_PANELS, log_chunks);
}
