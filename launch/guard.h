/* The facts about a tensor that code may rely on, as one 64-bit word.
 *
 *   bits 0-6    alignment of the base as a unary code: bit k is set where it is a multiple of 2 << k
 *   from bit 16 four bits for each dimension, of which two are in use: stride 0, stride of one element
 * A dimension of fewer than two elements has no stride that matters: it satisfies any demand. */
#ifndef TILE_LAUNCH_GUARD_H
#define TILE_LAUNCH_GUARD_H

#include "launch/argument.h"

enum { TILE_GUARD_STRIDE_ZERO = 1, TILE_GUARD_STRIDE_UNIT = 2 };

/* The alignment is at least `bytes`, a power of two up to 128. */
static inline uint64_t tile_guard_align(unsigned bytes) { return bytes > 1 ? bytes / 2 : 0; }
static inline uint64_t tile_guard_dimension(unsigned axis, unsigned bits) { return (uint64_t)bits << (16 + 4 * axis); }

typedef struct TileGuard {
    uint64_t word;
    /* The part of the word that a new variant is offered: alignment to 64 bytes, and of each stride that matters
     * whether it is zero or one element. The last dimension counts as contiguous where it does not matter. */
    uint64_t offer;
} TileGuard;

TileGuard tile_guard_read(const TileView *view);

#endif
