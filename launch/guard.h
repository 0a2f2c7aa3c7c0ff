/* The facts about a tensor that code may rely on, as one 64-bit word.
 *
 *   bits 0-6    alignment of the base as a unary code: bit k is set where it is a multiple of 2 << k
 *   bit 7       every element begins less than 2**31 bytes behind the first one, and none before it; and no extent is greater than
 *               TILE_GREATEST_NARROW_EXTENT, as those of bytes, of tensors without elements, and of dimensions with stride 0 could be
 *   bit 8       it shares no memory with another argument; looked at only where the kernel allows that it does
 *   bit 9       a tensor map describes it (base/tensor_map.h), but for its address; found for GPUs only, and only
 *               where it matters
 *   bits 10-15  the last dimension has at least one element and at most 128, 256, .., 4096 (see base/limits.h)
 *   bits 16-47  four for each dimension, of which three are in use (the fourth of the first is bit 19): stride 0; stride of one element; and, but for the
 *               last dimension, that from here on the tensor has no gaps: each row begins where the one before ends
 *   bit 19      of a scalar, whose word has no other bit: its value is a certain one, which stands beside the word
 *   bits 48-63  four for each of the last four dimensions: the extent is a multiple of 2, 4, 8, 16
 *
 * A dimension of fewer than two elements has no stride that matters: it satisfies any demand. */
#ifndef TILE_LAUNCH_GUARD_H
#define TILE_LAUNCH_GUARD_H

#include "base/limits.h"
#include "base/words.h"
#include "launch/argument.h"

enum {
    TILE_GUARD_STRIDE_ZERO = 1,
    TILE_GUARD_STRIDE_UNIT = 2,
    TILE_GUARD_DENSE = 4,
    TILE_GUARD_ALIGN = 127,
    TILE_GUARD_NARROW = 128,
    TILE_GUARD_DISJOINT = 256,
    TILE_GUARD_MAP = 512,
    TILE_GUARD_ROWS = 10,
    TILE_GUARD_DIMENSIONS = 16,
    TILE_GUARD_VALUE = 1 << 19,
    TILE_GUARD_EXTENTS = 48,
    TILE_GUARD_MOST_MULTIPLE = 16
};

/* The alignment is at least `bytes`, a power of two up to 128. */
static inline uint64_t tile_guard_align(unsigned bytes) { return bytes > 1 ? bytes / 2 : 0; }
/* That of an address, as these bits. */
static inline uint64_t tile_guard_align_of(uint64_t address) {
    return (((address | 128) & -(address | 128)) - 1) & TILE_GUARD_ALIGN;
}
static inline uint64_t tile_guard_dimension(unsigned axis, unsigned bits) {
    return (uint64_t)bits << (TILE_GUARD_DIMENSIONS + 4 * axis);
}

/* The extent of a dimension is a multiple of `divisor`, a power of two; 0 where no bit says so. */
static inline uint64_t tile_guard_multiple(unsigned rank, unsigned axis, unsigned divisor) {
    unsigned place = TILE_GUARD_EXTENTS + 4 * (rank - 1 - axis);
    return place < 64 && divisor > 1 && divisor <= TILE_GUARD_MOST_MULTIPLE ? (uint64_t)(divisor / 2) << place : 0;
}

/* All divisors of an extent, in the dimension's bits. */
static inline uint64_t tile_guard_extent(unsigned rank, unsigned axis, int64_t extent) {
    uint64_t most = (uint64_t)extent | TILE_GUARD_MOST_MULTIPLE;
    unsigned place = TILE_GUARD_EXTENTS + 4 * (rank - 1 - axis);
    return place < 64 ? (((most & -most) - 1) & 15) << place : 0;
}

/* The last extent is at least 1 and at most `most`, a power of two between the least and the greatest that have bits.
 */
static inline uint64_t tile_guard_row(unsigned most) {
    return (uint64_t)most / TILE_LEAST_SHORT_ROW << TILE_GUARD_ROWS;
}

/* All such facts about an extent. */
static inline uint64_t tile_guard_rows(int64_t extent) {
    const uint64_t all = 2 * tile_guard_row(TILE_GREATEST_SHORT_ROW) - tile_guard_row(TILE_LEAST_SHORT_ROW);
    if (extent < 1 || extent > TILE_GREATEST_SHORT_ROW) return 0;
    unsigned logs = (unsigned)__builtin_clzll((uint64_t)TILE_LEAST_SHORT_ROW - 1) -
                    (unsigned)__builtin_clzll((uint64_t)(extent - 1) | (TILE_LEAST_SHORT_ROW - 1));
    return all << logs & all;
}

/* Adds the facts about a dimension; `elements` is its stride in elements, or any number but 0 and 1 if it is no
 * multiple of the element's size. */
static inline void tile_guard_add(uint64_t *word, uint64_t *offer, unsigned rank, unsigned axis, int64_t extent,
                                  int64_t elements) {
    _Static_assert(TILE_GUARD_STRIDE_ZERO == 0 + 1 && TILE_GUARD_STRIDE_UNIT == 1 + 1, "a bit is the stride and one");
    uint64_t next = (uint64_t)elements + 1, bits = next <= 2 ? next : 0;
    *word |= (extent > 1 ? bits : TILE_GUARD_STRIDE_ZERO | TILE_GUARD_STRIDE_UNIT)
             << (TILE_GUARD_DIMENSIONS + 4 * axis);
    *offer |= (extent > 1 ? bits : 0) << (TILE_GUARD_DIMENSIONS + 4 * axis);
    uint64_t multiples = tile_guard_extent(rank, axis, extent);
    *word |= multiples;
    *offer |= multiples;
}

/* From which dimensions on, but for the last, the tensor, whose strides are in bytes, has no gaps. The stride of a
 * dimension in front of no elements is as of one, as in tensors without given strides. */
static inline uint64_t tile_guard_dense(const int64_t *extent, const int64_t *stride, unsigned rank, uint64_t bytes) {
    uint64_t word = 0, dense = TILE_GUARD_DENSE;
    for (unsigned axis = rank; axis-- > 0;) {
        bool follows = (extent[axis] < 2) | ((uint64_t)stride[axis] == bytes);
        dense = follows ? dense : 0;
        word |= axis + 1 < rank ? dense << (TILE_GUARD_DIMENSIONS + 4 * axis) : 0;
        bytes *= extent[axis] > 1 ? (uint64_t)extent[axis] : 1;
    }
    return word;
}

/* Fills in the view's facts: `word` has all that hold, `offer` the part that a new variant is told of: the alignment,
 * whether offsets fit into 31 bits, how long rows are at most, from where on there are no gaps, what divides the
 * extents, and of each stride that matters whether it is zero or one element. The last dimension counts as contiguous
 * where it does not matter. */
static inline void tile_guard_finish(TileView *view, unsigned rank, uint64_t bytes, uint64_t word, uint64_t offer) {
    uint64_t first = (uint64_t)(uintptr_t)view->data, align = tile_guard_align_of(first);
    uint64_t narrow = (uint64_t)((view->low == first) & (view->high - view->low <= UINT64_C(1) << 31)) << 7;
    unsigned last = rank - 1;
    if (rank && view->extent[last] < 2) offer |= tile_guard_dimension(last, TILE_GUARD_STRIDE_UNIT);
    uint64_t rows = rank ? tile_guard_rows(view->extent[last]) : 0;
    uint64_t found = align | narrow | rows | tile_guard_dense(view->extent, view->stride, rank, bytes);
    view->word = word | found;
    view->offer = offer | found;
}

static inline uint64_t tile_guard_map(const TileView *view) {
    const uint64_t aligned = 0;
    return tile_map_fits(aligned, view->rank, tile_host_type_bytes(view->type), view->extent, view->stride)
               ? TILE_GUARD_MAP
               : 0;
}

static inline void tile_guard_read(TileView *view) {
    uint64_t word = 0, offer = 0;
    int64_t bytes = (int64_t)tile_host_type_bytes(view->type);
    for (unsigned i = 0; i < view->rank; i++) {
        int64_t stride = view->stride[i];
        tile_guard_add(&word, &offer, view->rank, i, view->extent[i], stride == bytes ? 1 : stride ? 2 : 0);
    }
    tile_guard_finish(view, view->rank, (uint64_t)bytes, word, offer);
    int64_t most = 0;
    for (unsigned i = 0; i < view->rank; i++) most = view->extent[i] > most ? view->extent[i] : most;
    if (most > TILE_GREATEST_NARROW_EXTENT) { /* those that are usual, which argument.c reads by itself, are far from that */
        view->word &= ~(uint64_t)TILE_GUARD_NARROW;
        view->offer &= ~(uint64_t)TILE_GUARD_NARROW;
    }
}

#endif
