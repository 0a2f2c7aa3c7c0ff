/* Memory of a GPU, for programs without another allocator. */
#include "launch/cuda_records.h"
#include "launch/image.h"

static tile_status refuse(const char *what, TileError *error) {
    return tile_error_set(error, TILE_INVALID_ARGUMENT, "`%s` is NULL", what);
}

tile_status tile_device_allocate(int device, size_t bytes, void **memory, TileError *error) {
    TileCudaScope scope;
    uint64_t address = 0;
    if (!memory) return refuse("memory", error);
    TILE_TRY(tile_cuda_enter(device, NULL, &scope, error));
    tile_status status = tile_cuda_check(tile_cuda_driver()->allocate(&address, bytes ? bytes : 1), "memory", error);
    tile_cuda_leave(&scope);
    if (status == TILE_OK) *memory = (void *)(uintptr_t)address;
    return status;
}

void tile_device_release(int device, void *memory) {
    TileCudaScope scope;
    if (!memory || tile_cuda_enter(device, NULL, &scope, NULL) != TILE_OK) return;
    tile_cuda_driver()->free((uint64_t)(uintptr_t)memory);
    tile_cuda_leave(&scope);
}

/* The driver returns when it has read the host's memory; other streams may not see the copy yet. */
tile_status tile_device_write(int device, void *memory, const void *host, size_t bytes, TileError *error) {
    TileCudaScope scope;
    if (bytes && (!memory || !host)) return refuse(memory ? "host" : "memory", error);
    TILE_TRY(tile_cuda_enter(device, NULL, &scope, error));
    int result = bytes ? tile_cuda_driver()->copy_to((uint64_t)(uintptr_t)memory, host, bytes) : TILE_CUDA_SUCCESS;
    if (result == TILE_CUDA_SUCCESS) result = tile_cuda_driver()->synchronize(NULL);
    tile_cuda_leave(&scope);
    return tile_cuda_check(result, "copy", error);
}

tile_status tile_device_read(int device, void *host, const void *memory, size_t bytes, TileError *error) {
    TileCudaScope scope;
    if (bytes && (!memory || !host)) return refuse(memory ? "host" : "memory", error);
    TILE_TRY(tile_cuda_enter(device, NULL, &scope, error));
    int result = bytes ? tile_cuda_driver()->copy_from(host, (uint64_t)(uintptr_t)memory, bytes) : TILE_CUDA_SUCCESS;
    tile_cuda_leave(&scope);
    return tile_cuda_check(result, "copy", error);
}

tile_status tile_device_synchronize(int device, void *stream, TileError *error) {
    TileCudaScope scope;
    TILE_TRY(tile_cuda_enter(device, stream, &scope, error));
    int result = tile_cuda_driver()->synchronize(stream);
    tile_cuda_leave(&scope);
    TILE_TRY(tile_cuda_check(result, "stream", error));
    return tile_cuda_take_failure(device, error);
}
