/* SHA-256 (FIPS 180-4), for content-addressed names. */
#ifndef TILE_BASE_SHA256_H
#define TILE_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { TILE_SHA256_BYTES = 32 };

typedef struct TileSha256 {
    uint32_t state[8];
    uint64_t length; /* bytes so far */
    uint8_t block[64];
} TileSha256;

void tile_sha256_begin(TileSha256 *hash);
void tile_sha256_add(TileSha256 *hash, const void *data, size_t size);
void tile_sha256_end(TileSha256 *hash, uint8_t digest[TILE_SHA256_BYTES]);

#endif
