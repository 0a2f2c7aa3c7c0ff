#include "ptx/target/map.h"

#include "base/tensor_map.h"
#include "lang/ir/build.h"

enum { LEAST_ROW_BYTES = 32 };

static int64_t row_bytes(const TileType *tile) { return tile->extent[tile->rank - 1] * tile_scalar_bytes(tile->scalar); }

int64_t gpu_step_of_index(const TileAccessIndex *index) {
    int64_t step = 0;
    if (index->kind == TILE_ACCESS_INDEX) return 1;
    return index->kind == TILE_ACCESS_RANGE && tile_value_integer(index->step, &step) && step > 0 ? step : 0;
}

const TileType *gpu_vector_type(TileContext *context, const TileType *tile) {
    return tile_type_shared(context, tile->scalar, (int64_t[]){1, tile->extent[0]}, TILE_SWIZZLE_NONE, 0);
}

const TileType *gpu_copied_type(TileContext *context, const TileType *tile) {
    return tile->rank > 1 ? gpu_rows_type(context, tile) : tile_type_tile(context, tile->scalar, 2, (int64_t[]){1, tile->extent[0]});
}

const char *gpu_map_fits_vector(const TileType *tile) {
    bool fits = row_bytes(tile) % LEAST_ROW_BYTES == 0 && tile->extent[0] <= GPU_BOX_ROWS;
    return fits ? NULL : "a map moves vectors of at most 256 elements and of a multiple of 32 bytes";
}

const char *gpu_map_fits_tile(const TileType *tile) {
    int64_t bytes = tile->rank > 1 ? row_bytes(tile) : 0, rows = 1;
    if (tile->rank < 2 || !bytes || bytes % LEAST_ROW_BYTES) return "a map moves rows of a multiple of 32 bytes";
    for (unsigned a = 0; a + 1 < tile->rank; a++) rows *= tile->extent[a];
    if (tile->rank > 2 && rows > GPU_BOX_ROWS) return "a map moves at most 256 rows of several axes";
    bool shared = rows <= GPU_BOX_ROWS || rows % TILE_MAP_SWIZZLE_ROWS == 0;
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
    return tile_type_shared(context, tile->scalar, gpu_rows_type(context, tile)->extent, TILE_SWIZZLE_PANELS, log_chunks);
}

const TileType *gpu_copied_panel_type(TileContext *context, const TileType *tile) {
    enum { LEAST_PANEL = 64 };
    int64_t row = tile->rank < 2 ? 0 : row_bytes(tile), padded = (row + GPU_PANEL_BYTES - 1) / GPU_PANEL_BYTES * GPU_PANEL_BYTES;
    if (row <= GPU_PANEL_BYTES || row % LEAST_PANEL == 0 || 3 * padded > 4 * row) return gpu_panel_type(context, tile);
    return tile_type_shared(context, tile->scalar, gpu_rows_type(context, tile)->extent, TILE_SWIZZLE_PANELS, TILE_MAX_LOG_CHUNKS);
}

GpuCopyParts gpu_parts_of_copy(const TileType *tile, int64_t blocks) {
    int64_t row = tile->rank == 2 ? tile->extent[1] * (int64_t)tile_scalar_bytes(tile->scalar) : 0;
    if (!row) return GPU_PARTS_NONE;
    if (row % (blocks * GPU_PANEL_BYTES) == 0) return GPU_PARTS_PANELS;
    return tile->extent[0] % (blocks * TILE_MAP_SWIZZLE_ROWS) == 0 && tile->extent[0] <= GPU_BOX_ROWS ? GPU_PARTS_ROWS : GPU_PARTS_NONE;
}
