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

/* Adds the facts about a dimension; `elements` is its stride in elements, or any other number than 0 and 1 where it is
 * no number of them. */
static inline void tile_guard_add(uint64_t *word, uint64_t *offer, unsigned axis, int64_t extent, int64_t elements) {
    _Static_assert(TILE_GUARD_STRIDE_ZERO == 0 + 1 && TILE_GUARD_STRIDE_UNIT == 1 + 1, "a bit is the stride and one");
    uint64_t next = (uint64_t)elements + 1, bits = next <= 2 ? next : 0;
    *word |= (extent > 1 ? bits : TILE_GUARD_STRIDE_ZERO | TILE_GUARD_STRIDE_UNIT)
             << (TILE_GUARD_DIMENSIONS + 4 * axis);
    *offer |= (extent > 1 ? bits : 0) << (TILE_GUARD_DIMENSIONS + 4 * axis);
}

/* Fills in the view's facts: `word` has all that hold, `offer` the part that a new variant is told of: the alignment,
 * and of each stride that matters whether it is zero or one element. The last dimension counts as contiguous where it
 * does not matter. */
static inline void tile_guard_finish(TileView *view, uint64_t word, uint64_t offer) {
    uint64_t address = (uint64_t)(uintptr_t)view->data | 128, align = ((address & -address) - 1) & 127;
    unsigned last = view->rank - 1u;
    if (view->rank && view->extent[last] < 2) offer |= tile_guard_dimension(last, TILE_GUARD_STRIDE_UNIT);
    view->word = word | align;
    view->offer = offer | align;
}

static inline void tile_guard_read(TileView *view) {
    uint64_t word = 0, offer = 0;
    int64_t bytes = (int64_t)tile_host_type_bytes(view->type);
    for (unsigned i = 0; i < view->rank; i++) {
        int64_t stride = view->stride[i];
        tile_guard_add(&word, &offer, i, view->extent[i], stride == bytes ? 1 : stride ? 2 : 0);
    }
    tile_guard_finish(view, word, offer);
}

#endif
