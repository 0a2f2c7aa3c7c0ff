/* Limits that the compiler and the launcher have to agree on. */
#ifndef TILE_BASE_LIMITS_H
#define TILE_BASE_LIMITS_H

#include <stdint.h>

/* No dimension of a tensor is longer; the launcher refuses those that are. So sums and differences of a few
 * dimensions and tile extents stay far from overflow, which passes rely on. */
#define TILE_MAX_EXTENT (INT64_C(1) << 47)

/* No byte offset has more bits: processors address no more than so many bytes. */
enum { TILE_ADDRESS_BITS = 57 };

#endif
