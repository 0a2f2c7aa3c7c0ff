/* Tensor maps: descriptions of tensors by which a GPU copies boxes of them between global and shared memory. What the
 * hardware demands of the box and of the tensor, for the compiler, the emulator and the launcher. */
#ifndef TILE_BASE_TENSOR_MAP_H
#define TILE_BASE_TENSOR_MAP_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TILE_MAX_MAPS = 16, /* of one launch of a grid */
    TILE_MAP_MOST_RANK = 5,
    TILE_MAP_MOST_EXTENT = 256, /* of a box, with what lies between its elements */
    TILE_MAP_MOST_STEP = 8,     /* from one element of a box to the next along an axis; 1 along the last one */
    TILE_MAP_GRAIN = 16,        /* bytes: of a box's row, the tensor's address and its strides */
    TILE_MAP_PLACE = 128,       /* alignment of an unswizzled box in shared memory */
    TILE_MAP_SWIZZLE_ROWS = 8,  /* rows after which a swizzle repeats */
    TILE_MAP_BYTES = 128,       /* size of a map */
    TILE_MAP_ALIGN = 64,
    TILE_MAP_STRIDE_BITS = 40,
    TILE_MAP_EXTENT_BITS = 32,
    /* Mode im2col: a box is so many positions, one after the other through the rows, the images and, in three dimensions, the planes
     * of a batch of images. */
    TILE_MAP_LEAST_IMAGE_RANK = 3,    /* images, columns, channels; 5: images, planes, rows, columns, channels */
    TILE_MAP_MOST_IMAGE_AXES = 3,     /* all but the first and the last */
    TILE_MAP_MOST_POSITIONS = 1024,
};

/* Bits of the corners of the range of positions, and of the offsets that are added to each: 16, 8 or 5. */
static inline unsigned tile_map_corner_bits(unsigned rank) { return rank <= 3 ? 16 : rank == 4 ? 8 : 5; }
static inline bool tile_map_corner_fits(unsigned rank, int64_t corner) {
    int64_t most = INT64_C(1) << (tile_map_corner_bits(rank) - 1);
    return corner >= -most && corner < most;
}
/* The corner of maps whose offsets, and whose numbers of positions beyond those of elements, may go as far in front of 0 as half as far behind it. */
static inline int64_t tile_map_usual_corner(unsigned rank) { return -(INT64_C(1) << (tile_map_corner_bits(rank) - 2)); }
static inline bool tile_map_offset_fits(unsigned rank, int64_t offset) { return offset >= 0 && offset < INT64_C(1) << tile_map_corner_bits(rank); }

/* So many positions from `corner` on, so many elements apart, along an axis: how far behind the axis's last element the last of them lies,
 * as the driver has it. INT32_MAX, which never fits: there are none, or it is far beyond. */
static inline int64_t tile_map_far_corner(int64_t corner, uint64_t positions, uint32_t step, uint64_t extent) {
    const uint64_t most = UINT64_C(1) << TILE_MAP_EXTENT_BITS;
    if (positions < 1 || positions > most || extent > most) return INT32_MAX;
    return corner + (int64_t)(positions - 1) * step - (int64_t)(extent - 1);
}

/* How far a box of so many elements reaches along an axis. */
static inline uint32_t tile_map_reach(uint32_t elements, uint32_t step) { return (elements - 1) * step + 1; }

/* Elements of a box along an axis, if it is cut there: as many as the tensor has at most. */
static inline uint32_t tile_map_cut(uint32_t elements, uint64_t extent) { return extent < 1 ? 1 : extent < elements ? (uint32_t)extent : elements; }

/* Alignment of a box in shared memory, in bytes: its swizzle is a function of the address. */
static inline uint32_t tile_map_place_align(uint32_t swizzle) {
    return swizzle ? TILE_MAP_SWIZZLE_ROWS * swizzle : TILE_MAP_PLACE;
}

/* The byte at this address, or at this offset from an address that is aligned for the swizzle: 16-byte chunks are
 * permuted within lines of `swizzle` bytes (32, 64 or 128; 0: not at all) by bits 7 to 9 of the address. */
static inline uint64_t tile_map_swizzle(uint64_t address, uint32_t swizzle) {
    return swizzle ? address ^ ((address >> 3) & (swizzle - TILE_MAP_GRAIN)) : address;
}

/* Does a map describe a tensor of these extents and strides (bytes)? The last axis is contiguous, the others have
 * strides that are positive multiples of 16 below 2**40; the stride of an axis of one element does not matter. */
static inline bool tile_map_fits(uint64_t address, unsigned rank, unsigned element_bytes, const int64_t *extent,
                                 const int64_t *stride) {
    if (rank < 1 || rank > TILE_MAP_MOST_RANK || address % TILE_MAP_GRAIN) return false;
    bool fits = true;
    for (unsigned d = 0; d < rank; d++) {
        fits &= extent[d] >= 1 && extent[d] <= INT64_C(1) << TILE_MAP_EXTENT_BITS;
        bool inner = d + 1 == rank;
        bool good = inner ? stride[d] == (int64_t)element_bytes
                          : stride[d] > 0 && stride[d] % TILE_MAP_GRAIN == 0 && !(stride[d] >> TILE_MAP_STRIDE_BITS);
        fits &= extent[d] == 1 || good;
    }
    return fits;
}

#endif
