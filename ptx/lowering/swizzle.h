/* How a tile lies in shared memory while it passes from one layout to another, and what its banks make of it.
 *
 * Shared memory has 32 banks of 4 bytes. An access of 4 bytes or less a lane is served for the whole warp at once, of 8
 * bytes for half of it, of 16 bytes for a quarter; lanes that want different words of one bank are served in turn.
 * Source: Zhou et al., "Linear Layouts", 2025, section 5.4 (optimal swizzling). */
#ifndef TILE_PTX_LOWERING_SWIZZLE_H
#define TILE_PTX_LOWERING_SWIZZLE_H

#include "lang/layout/layout.h"

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

/* An access by matrices of 8 rows of 16 bytes (store_matrix, load_matrix): each lane gives the address of a row, and
 * has words of others. */
typedef struct TileSharedMatrices {
    TileSharedLayout shared; /* of the tile meanwhile: rows lie whole, and the other side moves 16 bytes a thread */
    TileLayout rows;   /* a row in the lowest registers of the lane that gives its address, then access by access */
    bool transposed;   /* the elements of a word lie in two rows */
    uint8_t packed;    /* elements of a word */
    uint8_t log_count; /* matrices of one access */
    uint32_t word[2], matrix[2], rest[TILE_LINEAR_BITS]; /* register bits: of a word, of an access, and the others */
} TileSharedMatrices;

/* Can a tile be stored from `layout`, or loaded to it, so, while `other` moves vectors of 16 bytes? Both are layouts of
 * one shape without pieces. */
bool tile_shared_matrices(const TileLayout *layout, const TileLayout *other, unsigned scalar_bytes,
                          TileSharedMatrices *matrices);
/* The register of `layout` that an access, by its number, has an element in. Elements are counted word by word, as in
 * the vector that store_matrix takes and load_matrix gives. */
uint32_t tile_shared_matrices_register(const TileSharedMatrices *matrices, uint32_t access, uint32_t element);

/* From the bits of (register, lane, warp, block) to those of the offset. */
TileLinear tile_shared_offsets(const TileSharedLayout *shared, const TileLayout *layout);
/* Elements of one access of a thread: the most, up to 16 bytes, that lie one after the other in registers of the layout
 * and in shared memory, aligned to their size. Registers that make up a vector are given by number; may be NULL. */
unsigned tile_shared_vector(const TileSharedLayout *shared, const TileLayout *layout, TileLinear *registers);
/* How often the busiest bank is asked for in each part of a warp's access: 1 is free of conflicts. */
unsigned tile_shared_conflicts(const TileSharedLayout *shared, const TileLayout *layout);

#endif
