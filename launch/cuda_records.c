/* Records: read after a launch, or each time a graph has run. */
#include "launch/cuda_records.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "launch/failure.h"

/* ---- what was said ---- */

/* Lines first: they were printed before the assertion failed, or by other programs. */
static tile_status hand_over(const TileCudaListener *listener, const TileRecords *records, const void *memory,
                             TileError *error) {
    const TileImagePhase *phase = listener->phase;
    char values[TILE_VALUES_BYTES] = "";
    if (records->lines_bytes)
        tile_records_lines(records, memory, phase->prints, phase->print_count, listener->kernel, listener->print,
                           listener->print_host);
    int64_t number = tile_records_assertion(memory);
    if (number < 1 || number > phase->assertion_count) return TILE_OK;
    tile_records_values(records, memory, phase->prints, phase->print_count, tile_failure_keep, values);
    return tile_failure_set(listener->kernel, phase, number, values, error);
}

/* ---- at once ---- */

static tile_status read_records(const TileCudaStream *on, uint64_t memory, void *host, uint64_t bytes,
                                const char *kernel, TileError *error) {
    const TileCudaDriver *driver = tile_cuda_driver();
    int mode = tile_cuda_relax_capture(); /* of another stream, for this thread or for all */
    int result = driver->copy_from_async(host, memory, bytes, on->stream);
    if (result == TILE_CUDA_SUCCESS) result = driver->synchronize(on->stream);
    tile_cuda_restore_capture(mode);
    return tile_cuda_check(result, kernel, error);
}

/* Only the header is read at first: it says how much more there is. */
tile_status tile_cuda_listen_now(const TileCudaListener *listener, const TileRecords *records, const TileCudaStream *on,
                                 uint64_t memory, TileError *error) {
    unsigned char header[TILE_RECORDS_CLEARED];
    TILE_TRY(read_records(on, memory, header, sizeof header, listener->kernel, error));
    uint64_t written = tile_records_written(records, header);
    if (written <= sizeof header) return hand_over(listener, records, header, error);
    void *host = malloc(written);
    if (!host) return tile_error_set(error, TILE_OUT_OF_MEMORY, "%s: out of memory", listener->kernel);
    tile_status status = read_records(on, memory, host, written, listener->kernel, error);
    if (status == TILE_OK) status = hand_over(listener, records, host, error);
    free(host);
    return status;
}

/* ---- records of graphs ---- */

/* The first failure of each device since the last query. */
static pthread_mutex_t failures_mutex = PTHREAD_MUTEX_INITIALIZER;
static char *failures[TILE_CUDA_MOST_DEVICES];

tile_status tile_cuda_take_failure(int device, TileError *error) {
    pthread_mutex_lock(&failures_mutex);
    char *message = failures[device];
    failures[device] = NULL;
    pthread_mutex_unlock(&failures_mutex);
    if (!message) return TILE_OK;
    tile_status status = tile_error_set(error, TILE_INVALID_ARGUMENT, "%s", message);
    free(message);
    return status;
}

static void keep_failure(int device, const char *message) {
    pthread_mutex_lock(&failures_mutex);
    if (!failures[device]) failures[device] = strdup(message);
    pthread_mutex_unlock(&failures_mutex);
}

void tile_cuda_captured_destroy(TileCudaCaptured *captured) {
    while (captured) {
        TileCudaCaptured *next = captured->next;
        TileCudaScope scope;
        if (captured->memory && tile_cuda_enter(captured->device, NULL, &scope, NULL) == TILE_OK) {
            int mode = tile_cuda_relax_capture();
            tile_cuda_driver()->host_free(captured->memory);
            tile_cuda_restore_capture(mode);
            tile_cuda_leave(&scope);
        }
        free(captured);
        captured = next;
    }
}

void tile_cuda_hear_graph(void *state) {
    const TileCudaCaptured *captured = state;
    const TileCudaListener *listener = &captured->listener;
    TileError error;
    if (hand_over(listener, &captured->records, captured->memory, &error) == TILE_OK) return;
    keep_failure(captured->device, error.message);
    size_t length = strlen(error.message);
    error.message[length] = '\n'; /* in the place of its end */
    listener->print(listener->print_host, error.message, length + 1);
}
