/* Data for the kernels with products of warpgroups, and results in double precision, without the executor. */
#ifndef TILE_TESTS_WGMMA_DATA_H
#define TILE_TESTS_WGMMA_DATA_H

#include "tests/gpu/wgmma_roles.h"

enum { WGMMA_MOST_IMAGE = 1 << 17, WGMMA_MOST_SUMS = WGMMA_ROWS * WGMMA_MOST_COLUMNS, WGMMA_RING_TILES = 6 };

typedef enum WgmmaKind {
    WGMMA_INTEGERS, /* of a few bits, whose sums are exact */
    WGMMA_NUMBERS,  /* up to 2^2 in magnitude, down to 2^-6 */
    WGMMA_WIDE,     /* of magnitudes that differ much */
    WGMMA_KINDS,
    WGMMA_BITS = WGMMA_KINDS, /* any bits, with infinities and NaN: what comes out is recorded */
    WGMMA_TINY,               /* around the least normal numbers, with sums of that size: likewise */
    WGMMA_RECORDED
} WgmmaKind;

typedef struct WgmmaData {
    double sums[WGMMA_MOST_SUMS], magnitudes[WGMMA_MOST_SUMS]; /* magnitudes: of all that went into a sum */
    unsigned count;
    bool is_float;
    double most; /* by how much a sum may differ, in parts of its magnitude */
    size_t image_bytes;
    _Alignas(16) unsigned char image[WGMMA_MOST_IMAGE];
    uint32_t out[WGMMA_MOST_SUMS];
} WgmmaData;

void wgmma_make_data(const WgmmaCase *item, WgmmaKind kind, unsigned number, WgmmaData *data);
void wgmma_make_roles_data(WgmmaRoles kernel, WgmmaKind kind, WgmmaData *data);
/* The greatest difference of `out`, in parts of the magnitude. */
double wgmma_measure(const WgmmaData *data);

#endif
