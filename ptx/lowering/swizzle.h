/* Layouts of shared memory for conversions between two layouts of registers, and their bank conflicts. Shared memory
 * has 32 banks of 4 bytes. An access of up to 4 bytes a lane is served for the whole warp at once, of 8 bytes for
 * half of it, of 16 bytes for a quarter; accesses to different words of one bank conflict and are serialised. Source:
 * Zhou et al., "Linear Layouts", 2025, section 5.4 (optimal swizzling). */
#ifndef TILE_PTX_LOWERING_SWIZZLE_H
#define TILE_PTX_LOWERING_SWIZZLE_H

#include "lang/layout/layout.h"

/* Maps the bits of an element's offset in shared memory to the bits of its index in one piece of the tile.
 * Invertible; pieces are contiguous. */
typedef struct TileSharedLayout {
    TileLinear map;
    uint8_t scalar_bytes; /* of one element */
    uint8_t log_vector;   /* log2 of the elements of a vector, which are in one thread in both layouts */
} TileSharedLayout;

/* A layout in which stores from `from` and loads to `to` are vectors and, as far as possible, have no bank conflicts.
 * Both are layouts of one shape. */
TileSharedLayout tile_shared_swizzle(const TileLayout *from, const TileLayout *to, unsigned scalar_bytes);
/* Row-major, as in global memory. */
TileSharedLayout tile_shared_linear(const TileLayout *layout, unsigned scalar_bytes);

/* An access by matrices of 8 rows of 16 bytes (store_matrix, load_matrix): each lane supplies the address of a row,
 * and holds words of other rows. */
typedef struct TileSharedMatrices {
    TileSharedLayout shared; /* of the tile: rows are contiguous; the other side accesses 16 bytes a thread */
    TileLayout rows;         /* a row is in the lowest registers of the lane that supplies its address */
    bool transposed;         /* the elements of a word are in two rows */
    uint8_t packed;    /* elements of a word */
    uint8_t log_count; /* matrices of one access */
    uint32_t word[2], matrix[2], rest[TILE_LINEAR_BITS]; /* register bits: of a word, of an access, and the others */
} TileSharedMatrices;

/* Can a tile be stored from `layout`, or loaded to it, by matrices while `other` accesses vectors of 16 bytes? Both
 * are layouts of one shape without pieces. */
bool tile_shared_matrices(const TileLayout *layout, const TileLayout *other, unsigned scalar_bytes,
                          TileSharedMatrices *matrices);
/* The register of `layout` with an element of the access of this number. Elements are counted word by word, as in the
 * vector that store_matrix takes and load_matrix returns. */
uint32_t tile_shared_matrices_register(const TileSharedMatrices *matrices, uint32_t access, uint32_t element);

/* Maps the bits of (register, lane, warp, block) to those of the offset. */
TileLinear tile_shared_offsets(const TileSharedLayout *shared, const TileLayout *layout);
/* The most elements of one access of a thread, up to 16 bytes, that are contiguous in shared memory and aligned to
 * their size. `registers`, which may be NULL, maps elements of a vector to registers. */
unsigned tile_shared_vector(const TileSharedLayout *shared, const TileLayout *layout, TileLinear *registers);
/* The degree of bank conflicts: how many words of the busiest bank a part of a warp's access needs; 1 is free of
 * conflicts. */
unsigned tile_shared_conflicts(const TileSharedLayout *shared, const TileLayout *layout);

#endif
