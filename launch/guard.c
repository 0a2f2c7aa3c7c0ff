#include "launch/guard.h"

TileGuard tile_guard_read(const TileView *view) {
    uint64_t address = (uint64_t)(uintptr_t)view->data | 128;
    uint64_t word = ((address & -address) - 1) & 127;
    uint64_t offer = word & tile_guard_align(64);
    int64_t bytes = (int64_t)tile_host_type_bytes(view->type);
    for (unsigned i = 0; i < view->rank; i++) {
        int64_t stride = view->stride[i];
        uint64_t last = i + 1u == view->rank, matters = view->extent[i] > 1;
        uint64_t bits =
            (uint64_t)(stride == 0) * TILE_GUARD_STRIDE_ZERO | (uint64_t)(stride == bytes) * TILE_GUARD_STRIDE_UNIT;
        word |= (matters ? bits : TILE_GUARD_STRIDE_ZERO | TILE_GUARD_STRIDE_UNIT) << (16 + 4 * i);
        offer |= (matters ? bits : last * TILE_GUARD_STRIDE_UNIT) << (16 + 4 * i);
    }
    return (TileGuard){word, offer};
}
