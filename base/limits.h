/* Limits: those on which compiler and launcher must agree, and those on the compiler's work, which a user may raise. */
#ifndef TILE_BASE_LIMITS_H
#define TILE_BASE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The greatest extent of a tensor's dimension; the launcher refuses greater ones. So sums and differences of a few
 * extents are far from overflow, which passes rely on. */
#define TILE_MAX_EXTENT (INT64_C(1) << 47)

/* A launch tells code that rows, along the last dimension, have at most so many elements: powers of two from the least to
 * the greatest. */
enum { TILE_LEAST_SHORT_ROW = 128, TILE_GREATEST_SHORT_ROW = 4096 };
enum { TILE_MAX_TILE_RANK = 5, TILE_MAX_TENSOR_RANK = 8, TILE_MAX_GRID_RANK = 8 };

/* The greatest number of bits of a byte offset: processors address no more memory. */
enum { TILE_ADDRESS_BITS = 57 };

typedef enum TileLimitId {
#define LIMIT(id, name, usual, counts) TILE_LIMIT_##id,
#include "base/limits.def"
#undef LIMIT
    TILE_LIMIT_COUNT
} TileLimitId;

/* The resources that one compilation may use. */
typedef struct TileLimits {
    uint64_t most[TILE_LIMIT_COUNT];
} TileLimits;

extern const TileLimits tile_usual_limits;

const char *tile_limit_name(TileLimitId id);
/* What it counts, to continue "at most N". */
const char *tile_limit_words(TileLimitId id);
/* False if no limit has this name. */
bool tile_limit_find(const char *name, size_t length, TileLimitId *id);

#endif
