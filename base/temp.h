/* How rows of a temporary lie: those who allocate one agree. */
#ifndef TILE_BASE_TEMP_H
#define TILE_BASE_TEMP_H

#include <stdbool.h>
#include <stdint.h>

enum { TILE_MOST_TEMP_ALIGN = 128 };

/* A power of two up to TILE_MOST_TEMP_ALIGN, or 0: rows follow one another without gaps. */
static inline bool tile_temp_is_align(int64_t align) {
    return align >= 0 && align <= TILE_MOST_TEMP_ALIGN && (align & (align - 1)) == 0;
}

/* From one row to the next, in bytes. */
static inline int64_t tile_temp_row_bytes(int64_t bytes, int64_t align) {
    return align ? (bytes + align - 1) / align * align : bytes;
}

#endif
