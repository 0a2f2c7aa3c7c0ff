/* Conversions between layouts that the lanes of a warp carry out among themselves, whichever lane has what another wants.
 * Private to ptx/. */
#ifndef TILE_PTX_TARGET_SHUFFLES_H
#define TILE_PTX_TARGET_SHUFFLES_H

#include "lang/layout/layout.h"

typedef struct GpuShuffles {
    TileLinear source; /* as of tile_layout_conversion */
    uint32_t varying;  /* bits of the number of the register that an element comes from which the thread decides */
    bool lanes;        /* the thread decides which lane an element comes from, as far as that is not one exclusive or for all of them */
} GpuShuffles;

/* Is that so, and is it worth it: do they take few exchanges, beside barriers, a store and a load of shared memory? */
bool gpu_find_shuffles(const TileLayout *from, const TileLayout *to, unsigned scalar_bits, GpuShuffles *shuffles);
/* What a thread's bit (of the lane's number, then of the warp's) changes in the number of register and lane that its element comes
 * from, beside its own. */
uint32_t gpu_shuffles_change(const GpuShuffles *shuffles, const TileLayout *from, const TileLayout *to, unsigned bit);

/* Does a conversion take exchanges between lanes at most, and no shared memory? */
bool gpu_converts_in_warp(const TileLayout *from, const TileLayout *to, unsigned scalar_bits);

#endif
