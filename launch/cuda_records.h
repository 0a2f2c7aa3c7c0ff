/* What programs on a GPU say: memory for it goes along with the launch (base/records.h), and comes back. */
#ifndef TILE_LAUNCH_CUDA_RECORDS_H
#define TILE_LAUNCH_CUDA_RECORDS_H

#include "launch/cuda.h"

/* Of which phase, and to whom its lines go. */
typedef struct TileCudaListener {
    const TileImagePhase *phase;
    const char *kernel;
    TilePrintLine print;
    void *print_host;
} TileCudaListener;

static inline bool tile_cuda_listens(const TileImagePhase *phase) {
    return phase->assertion_count || phase->print_count;
}

/* As tile_cuda_launch, but it waits for the programs to end, and hands over what they printed; TILE_INVALID_ARGUMENT
 * where an assertion failed. On a stream that captures it waits for nothing: whenever the graph has run so far, its
 * lines are handed over by a thread of the driver, a failed assertion's message too, which the next
 * tile_device_synchronize returns. */
tile_status tile_cuda_launch_listening(TileCudaModule *module, uint32_t phase, const TileCudaStream *on,
                                       const uint64_t *slots, uint32_t slot_count, int64_t programs,
                                       const TileCudaListener *listener, TileError *error);

/* TileCudaCaptured: what a graph that captured a launch needs for what is said, and those kept before it. */
void tile_cuda_captured_destroy(TileCudaCaptured *captured);
/* The failure of a graph's launch on the device, which is then forgotten; TILE_OK: there was none. */
tile_status tile_cuda_take_failure(int device, TileError *error);

#endif
