/* Kernels with products of warpgroups in machine form, and their data: for the emulator, the assembler and a GPU.
 *
 * Each multiplies a, of 64 rows, and b, of `columns` columns, over four steps of 32 bytes of k, into y, row by row. Its
 * x is what one block copies to shared memory: both matrices, as the descriptors say that they lie there, and behind
 * them the registers of `a` for each step and thread. */
#ifndef TILE_TESTS_WGMMA_KERNELS_H
#define TILE_TESTS_WGMMA_KERNELS_H

#include "base/string.h"
#include "lang/scalar/types.h"

enum { WGMMA_ROWS = 64, WGMMA_STEPS = 4, WGMMA_STEP_BYTES = 32, WGMMA_MOST_COLUMNS = 256, WGMMA_THREADS = 128 };
enum { WGMMA_K_BYTES = WGMMA_STEPS * WGMMA_STEP_BYTES };

/* An operand in shared memory. */
typedef struct WgmmaPlace {
    unsigned swizzle; /* 0, 32, 64, 128 */
    bool transposed;  /* k is not the contiguous axis */
} WgmmaPlace;

typedef struct WgmmaCase {
    TileScalar types[2]; /* of a and b; f32 as tf32 */
    unsigned columns;
    WgmmaPlace places[2];
    bool registers; /* `a` lies in registers */
    bool flights;   /* two sums, in two groups under way at the same time; else one */
    bool single;    /* one step of k, added to sums that x has at its end, row by row; of 8 columns */
} WgmmaCase;

static inline unsigned wgmma_steps(const WgmmaCase *item) { return item->single ? 1 : WGMMA_STEPS; }
/* Elements of k in all steps. */
static inline unsigned wgmma_length(const WgmmaCase *item) {
    return wgmma_steps(item) * WGMMA_STEP_BYTES / (tile_scalar_bits(item->types[0]) / 8);
}

/* The pairs of types that there are, those of floats first; a single step of one. */
enum { WGMMA_PAIRS = 11, WGMMA_FLOAT_PAIRS = 7 };
extern const TileScalar wgmma_pairs[WGMMA_PAIRS][2];
WgmmaCase wgmma_single(unsigned pair, bool registers);

const char *wgmma_case_name(TileArena *arena, const WgmmaCase *item);
/* A module with a kernel `k` and its phase. */
const char *wgmma_kernel_text(TileArena *arena, const WgmmaCase *item);
/* Bytes of x, a multiple of 2048. */
size_t wgmma_image_bytes(const WgmmaCase *item);
/* a: 64 rows of elements along k; b: `columns` columns of elements along k; sums: 64 rows, of a single step, else NULL;
 * bits of all. */
void wgmma_make_image(const WgmmaCase *item, const uint32_t *a, const uint32_t *b, const uint32_t *sums,
                      unsigned char *image);

#endif
