/* The facts about a tensor that code may rely on, as one 64-bit word.
 *
 *   bits 0-6    alignment of the base as a unary code: bit k is set where it is a multiple of 2 << k
 *   from bit 16 four bits for each dimension, of which two are in use: stride 0, stride of one element
 * A dimension of fewer than two elements has no stride that matters: it satisfies any demand. */
#ifndef TILE_LAUNCH_GUARD_H
#define TILE_LAUNCH_GUARD_H

#include "launch/argument.h"

enum { TILE_GUARD_STRIDE_ZERO = 1, TILE_GUARD_STRIDE_UNIT = 2, TILE_GUARD_DIMENSIONS = 16 };

/* The alignment is at least `bytes`, a power of two up to 128. */
static inline uint64_t tile_guard_align(unsigned bytes) { return bytes > 1 ? bytes / 2 : 0; }
static inline uint64_t tile_guard_dimension(unsigned axis, unsigned bits) {
    return (uint64_t)bits << (TILE_GUARD_DIMENSIONS + 4 * axis);
}

/* Puts the facts about a dimension before those of the dimensions inside of it. */
static inline void tile_guard_add(uint64_t *word, uint64_t *offer, int64_t extent, int64_t stride, int64_t bytes) {
    uint64_t matters = extent > 1, zero = stride == 0, unit = stride == bytes;
    uint64_t bits = (zero | unit << 1) & -matters;
    *word = *word << 4 | bits | ((matters - 1) & (TILE_GUARD_STRIDE_ZERO | TILE_GUARD_STRIDE_UNIT));
    *offer = *offer << 4 | bits;
}

/* Fills in the view's facts: `word` has all that hold, `offer` the part that a new variant is told of: the alignment,
 * and of each stride that matters whether it is zero or one element. The last dimension counts as contiguous where it
 * does not matter. */
static inline void tile_guard_finish(TileView *view, uint64_t word, uint64_t offer) {
    uint64_t address = (uint64_t)(uintptr_t)view->data | 128, align = ((address & -address) - 1) & 127;
    unsigned last = view->rank - 1u;
    if (view->rank && view->extent[last] < 2) offer |= (uint64_t)TILE_GUARD_STRIDE_UNIT << 4 * last;
    view->word = word << TILE_GUARD_DIMENSIONS | align;
    view->offer = offer << TILE_GUARD_DIMENSIONS | align;
}

static inline void tile_guard_read(TileView *view) {
    uint64_t word = 0, offer = 0;
    for (unsigned i = view->rank; i-- > 0;)
        tile_guard_add(&word, &offer, view->extent[i], view->stride[i], (int64_t)tile_host_type_bytes(view->type));
    tile_guard_finish(view, word, offer);
}

#endif
