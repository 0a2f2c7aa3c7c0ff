/* Entries for tests of the disk cache: numbered keys, whose data is a function of the number, so that every process
 * knows the expected data. */
#ifndef TILE_TESTS_CACHE_ENTRIES_H
#define TILE_TESTS_CACHE_ENTRIES_H
#include <stddef.h>
#include <string.h>

#include "driver/cache/cache.h"

enum { MOST_BYTES = 60000 };

static inline TileCodeKey key_of(unsigned number) {
    TileCodeKey key;
    memset(key.digest, 0x5a, sizeof key.digest);
    memcpy(key.digest, &number, sizeof number);
    return key;
}

/* Writes at most MOST_BYTES bytes and returns their number. */
static inline size_t data_of(unsigned number, unsigned char *data) {
    size_t size = number * 7919u % MOST_BYTES;
    for (size_t i = 0; i < size; i++) data[i] = (unsigned char)(number * 31 + i * (number | 1) + (i >> 8));
    return size;
}
#endif
