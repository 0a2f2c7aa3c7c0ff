/* Observers: what they are told, and what they may read. */
#include "lang/execute/state.h"

#include <string.h>

bool tile_exec_statement(TileExecutor *e, const ExecInstruction *in) {
    const TileExecutionObserver *observer = e->options.observer;
    if (!observer || observer->statement(observer->host, e, in->op)) return true;
    return tile_exec_stop(e, in, TILE_EXECUTION_STOPPED, "stopped");
}

static ExecValue observed(const TileExecutor *e, const TileValue *value) {
    return tile_exec_register(e->frames[e->depth - 1].activation, value->number);
}

const uint64_t *tile_executor_lanes(const TileExecutor *e, const TileValue *value, const uint8_t **poison) {
    ExecValue lanes = observed(e, value);
    if (!*lanes.any) memset(lanes.poison, 0, lanes.count);
    *poison = lanes.poison;
    return lanes.lanes;
}

void tile_executor_extents(const TileExecutor *e, const TileValue *tensor, int64_t *extent) {
    const ExecTensor *read = &e->tensors[observed(e, tensor).lanes[0]];
    memcpy(extent, read->extent, tensor->type->rank * sizeof *extent);
}

bool tile_executor_element(const TileExecutor *e, const TileValue *tensor, const int64_t *index, uint64_t *bits) {
    const ExecTensor *read = &e->tensors[observed(e, tensor).lanes[0]];
    const ExecObject *object = &e->objects[read->object];
    unsigned bytes = tile_scalar_bytes(tensor->type->scalar);
    int64_t offset = read->offset;
    for (unsigned d = 0; d < tensor->type->rank; d++) {
        if (index[d] < 0 || index[d] >= read->extent[d]) return false;
        offset += index[d] * read->stride[d];
    }
    if (object->dead || offset < 0 || offset + (int64_t)bytes > object->size) return false;
    for (unsigned i = 0; object->poison && i < bytes; i++)
        if (object->poison[offset + i]) return false;
    *bits = 0;
    memcpy(bits, object->base + offset, bytes);
    return true;
}
