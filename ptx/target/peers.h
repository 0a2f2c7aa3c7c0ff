/* Where a block of a cluster has a tile of which each block is to combine a part. Private to ptx/. */
#ifndef TILE_PTX_TARGET_PEERS_H
#define TILE_PTX_TARGET_PEERS_H

#include "lang/ir/types.h"

/* Bytes from one row to the next: those that lanes of a product's sums store together lie in different banks. */
static inline int64_t gpu_peer_pitch(const TileType *tile) {
    enum { APART = 32 };
    return tile->extent[1] * (int64_t)tile_scalar_bytes(tile->scalar) + APART;
}

static inline int64_t gpu_peer_bytes(const TileType *tile) { return tile->extent[0] * gpu_peer_pitch(tile); }

#endif
