/* Assertions and prints of programs on a GPU: a launch passes memory for their records (base/records.h) and reads it
 * afterwards. */
#ifndef TILE_LAUNCH_CUDA_RECORDS_H
#define TILE_LAUNCH_CUDA_RECORDS_H

#include "base/records.h"
#include "launch/cuda.h"

/* The phase, and the callback for its lines. */
typedef struct TileCudaListener {
    const TileImagePhase *phase;
    const char *kernel;
    TilePrintLine print;
    void *print_host;
} TileCudaListener;

static inline bool tile_cuda_listens(const TileImagePhase *phase) {
    return phase->assertion_count || phase->print_count;
}

/* Like tile_cuda_launch, but waits for the programs to end and hands over the lines that they printed;
 * TILE_INVALID_ARGUMENT if an assertion failed. On a stream that is capturing it does not wait: each time the graph has
 * run, a thread of the driver hands over its lines and the message of a failed assertion, which the next
 * tile_device_synchronize returns as well. */
tile_status tile_cuda_launch_listening(TileCudaModule *module, uint32_t phase, const TileCudaStream *on,
                                       const uint64_t *slots, uint32_t slot_count, int64_t programs,
                                       const TileCudaListener *listener, TileError *error);

/* Returns and clears the failure of a graph's launch on the device; TILE_OK: there was none. */
tile_status tile_cuda_take_failure(int device, TileError *error);

/* ---- for cuda.c and cuda_listen.c ---- */

/* Waits for the stream, and hands over what the launch's programs have said in these records. */
tile_status tile_cuda_listen_now(const TileCudaListener *listener, const TileRecords *records, const TileCudaStream *on,
                                 uint64_t memory, TileError *error);
/* The records of a launch that a graph captured; a list. */
struct TileCudaCaptured {
    TileCudaCaptured *next;
    TileCudaListener listener;
    TileRecords records;
    int device;
    void *memory; /* pinned: records are copied here */
};
/* Hands over what a run of the graph has said. Called by the driver; must not call the driver. */
void tile_cuda_hear_graph(void *captured);
void tile_cuda_captured_destroy(TileCudaCaptured *captured);

#endif
