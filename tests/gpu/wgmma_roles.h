/* Kernels whose warpgroups have roles, in machine form: for the emulator, the assembler and a GPU. Together they have
 * every op that orders asynchronous work; each can be taken out. */
#ifndef TILE_TESTS_WGMMA_ROLES_H
#define TILE_TESTS_WGMMA_ROLES_H

#include "tests/gpu/wgmma_kernels.h"

/* RING: y[64, 64] = a[64, k] @ b[k, 64]. x has tiles of 64 along k, a's and then b's, K-major with swizzle 128. One
 * warpgroup copies them ahead into a ring buffer of two slots, at 16384 s; the other multiplies, with a group under
 * way, and passes its sums on by shared memory, at 32768. Mbarriers are at 49152, `full` and behind them `empty`.
 * CHAIN: y[128, 64] = bf16(a[128, 64] @ w0[64, 64]) @ w1[64, 64]. x has the halves of a, w0 and w1, the last one
 * transposed, all with swizzle 128. */
typedef enum WgmmaRoles { WGMMA_RING, WGMMA_CHAIN, WGMMA_ROLES } WgmmaRoles;

enum { WGMMA_TILE_BYTES = 16384, WGMMA_TILE_K = 64, WGMMA_TILE_COLUMNS = 64 };

const char *wgmma_roles_text(TileArena *arena, WgmmaRoles kernel);

#endif
