/* Launches of phases with assertions or prints. */
#include <stdlib.h>

#include "launch/cuda_records.h"

static tile_status listen_later(TileCudaModule *module, const TileCudaListener *listener, const TileRecords *records,
                                const TileCudaStream *on, uint64_t memory, TileError *error) {
    const TileCudaDriver *driver = tile_cuda_driver();
    TileCudaCaptured *captured = calloc(1, sizeof *captured);
    if (!captured) return tile_error_set(error, TILE_OUT_OF_MEMORY, "%s: out of memory", listener->kernel);
    captured->listener = *listener;
    captured->records = *records;
    captured->device = on->device;
    int mode = tile_cuda_relax_capture();
    int result = driver->host_allocate(&captured->memory, records->bytes, 0);
    tile_cuda_restore_capture(mode);
    if (result != TILE_CUDA_SUCCESS) captured->memory = NULL;
    if (result == TILE_CUDA_SUCCESS)
        result = driver->copy_from_async(captured->memory, memory, records->bytes, on->stream);
    if (result == TILE_CUDA_SUCCESS) result = driver->launch_host(on->stream, tile_cuda_hear_graph, captured);
    if (result == TILE_CUDA_SUCCESS)
        tile_cuda_module_keep(module, captured, &captured->next);
    else
        tile_cuda_captured_destroy(captured);
    return tile_cuda_check(result, listener->kernel, error);
}

tile_status tile_cuda_launch_listening(TileCudaModule *module, uint32_t phase, const TileCudaStream *on,
                                       const uint64_t *slots, uint32_t slot_count, int64_t programs,
                                       const TileCudaListener *listener, TileError *error) {
    enum { NOT_CAPTURING = 0 };
    const TileCudaDriver *driver = tile_cuda_driver();
    TileRecords records = tile_records(listener->phase->prints, listener->phase->print_count);
    int capture = NOT_CAPTURING;
    void *memory;
    TILE_TRY(tile_cuda_check(driver->is_capturing(on->stream, &capture), listener->kernel, error));
    TILE_TRY(tile_cuda_allocate(on, records.bytes, listener->kernel, &memory, error));
    uint64_t address = (uint64_t)(uintptr_t)memory;
    tile_status status =
        tile_cuda_check(driver->set_async(address, 0, TILE_RECORDS_CLEARED, on->stream), listener->kernel, error);
    if (status == TILE_OK)
        status = tile_cuda_launch(module, phase, on, slots, slot_count, programs, &address, listener->kernel, error);
    if (status == TILE_OK)
        status = capture == NOT_CAPTURING ? tile_cuda_listen_now(listener, &records, on, address, error)
                                          : listen_later(module, listener, &records, on, address, error);
    tile_cuda_free(on, memory);
    return status;
}
