#include "ptx/target/map.h"

#include "base/tensor_map.h"

enum { LEAST_ROW_BYTES = 32 };

static int64_t row_bytes(const TileType *tile) { return tile->extent[1] * tile_scalar_bytes(tile->scalar); }

const char *gpu_map_fits_tile(const TileType *tile) {
    int64_t bytes = row_bytes(tile);
    if (tile->rank != 2 || (bytes != LEAST_ROW_BYTES && bytes != 2 * LEAST_ROW_BYTES && bytes % GPU_PANEL_BYTES))
        return "a map moves rows of 32, 64 or a multiple of 128 bytes";
    bool shared = tile->extent[0] <= GPU_BOX_ROWS || tile->extent[0] % TILE_MAP_SWIZZLE_ROWS == 0;
    return shared ? NULL : "a map moves more than 256 rows only as a multiple of 8";
}

const char *gpu_map_fits_tensor(TileParameter *parameter, const TileType *tensor) {
    if (tensor->rank > TILE_MAP_MOST_RANK) return "the tensor has more than five axes";
    parameter->asked_map = true;
    return parameter->facts.map ? NULL : "the tensor's address and strides may not be multiples of 16 bytes";
}

const TileType *gpu_panel_type(TileContext *context, const TileType *tile) {
    unsigned log_chunks = 0;
    while (log_chunks < TILE_MAX_LOG_CHUNKS && row_bytes(tile) % ((int64_t)TILE_CHUNK_BYTES << (log_chunks + 1)) == 0)
        log_chunks++;
    return tile_type_shared(context, tile->scalar, tile->extent, TILE_SWIZZLE_PANELS, log_chunks);
}
