#include "launch/guard.h"

uint64_t tile_guard_word(const TileView *view) {
    uint64_t address = (uint64_t)(uintptr_t)view->data | 128;
    uint64_t word = ((address & -address) - 1) & 127;
    int64_t bytes = (int64_t)tile_host_type_bytes(view->type);
    for (unsigned i = 0; i < view->rank; i++) {
        int64_t stride = view->stride[i];
        uint64_t any = view->extent[i] < 2;
        uint64_t zero = any | (uint64_t)(stride == 0), unit = any | (uint64_t)(stride == bytes);
        word |= (zero | unit << 1) << (16 + 4 * i);
    }
    return word;
}

uint64_t tile_guard_offer(const TileView *view, uint64_t word) {
    uint64_t offer = word & tile_guard_align(64);
    for (unsigned i = 0; i < view->rank; i++) {
        unsigned wanted = TILE_GUARD_STRIDE_ZERO | TILE_GUARD_STRIDE_UNIT;
        if (view->extent[i] < 2) wanted = i + 1u == view->rank ? TILE_GUARD_STRIDE_UNIT : 0;
        offer |= word & tile_guard_dimension(i, wanted);
    }
    return offer;
}
