/* How a tile lies in shared memory while it passes from one layout to another, and what its banks make of it.
 *
 * Shared memory has 32 banks of 4 bytes. An access of 4 bytes or less a lane is served for the whole warp at once, of 8
 * bytes for half of it, of 16 bytes for a quarter; lanes that want different words of one bank are served in turn.
 * Source: Zhou et al., "Linear Layouts", 2025, section 5.4 (optimal swizzling). */
#ifndef TILE_PTX_SWIZZLE_H
#define TILE_PTX_SWIZZLE_H

#include "lang/layout.h"

/* From the bits of an element's offset in shared memory to the bits of its place in one piece of the tile. Invertible;
 * pieces follow one another. */
typedef struct TileSharedLayout {
    TileLinear map;
    uint8_t scalar_bytes; /* of one element */
    uint8_t log_vector;   /* elements that both layouts hold together and that lie together, as a logarithm */
} TileSharedLayout;

/* A layout in which a store from `from` and a load to `to` move whole vectors and, as far as possible, have no bank
 * conflicts. Both are layouts of one shape. */
TileSharedLayout tile_shared_swizzle(const TileLayout *from, const TileLayout *to, unsigned scalar_bytes);
/* Row-major, as it lies in global memory. */
TileSharedLayout tile_shared_linear(const TileLayout *layout, unsigned scalar_bytes);

/* From the bits of (register, lane, warp, block) to those of the offset. */
TileLinear tile_shared_offsets(const TileSharedLayout *shared, const TileLayout *layout);
/* Elements of one access of a thread: the most, up to 16 bytes, that lie one after the other in registers of the layout
 * and in shared memory, aligned to their size. Registers that make up a vector are given by number; may be NULL. */
unsigned tile_shared_vector(const TileSharedLayout *shared, const TileLayout *layout, TileLinear *registers);
/* How often the busiest bank is asked for in each part of a warp's access: 1 is free of conflicts. */
unsigned tile_shared_conflicts(const TileSharedLayout *shared, const TileLayout *layout);

#endif
