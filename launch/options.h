/* Option structs of any version: a caller built against an older header passes a shorter one. */
#ifndef TILE_LAUNCH_OPTIONS_H
#define TILE_LAUNCH_OPTIONS_H

#include <stdbool.h>
#include <string.h>

enum {
    TILE_MOST_OPTION_BYTES = 4096, /* limit on the size of a struct of any version, ours or a later one */
    TILE_MOST_LISTED = 1 << 16     /* limit on settings, paths, exports .. of one call; more is garbage */
};

/* Copies the members that the caller's version has, and zeros the others. `given` begins with its own size; NULL is all
 * zeros. False if the size is that of no version. */
static inline bool tile_options_read(void *options, size_t size, const void *given) {
    size_t given_size = size;
    if (given) memcpy(&given_size, given, sizeof given_size);
    if (given && given_size == size) { /* the common case, of a size known at compile time */
        memcpy(options, given, size);
        return true;
    }
    memset(options, 0, size);
    if (!given) return true;
    if (given_size < sizeof(size_t) || given_size > TILE_MOST_OPTION_BYTES) return false;
    memcpy(options, given, given_size < size ? given_size : size);
    return true;
}

/* Copies the members that the caller's version has to `given`, whose size member is kept. False if it is NULL, or its
 * size is that of no version. */
static inline bool tile_options_write(void *given, const void *options, size_t size) {
    size_t given_size = 0;
    if (given) memcpy(&given_size, given, sizeof given_size);
    if (given_size < sizeof(size_t) || given_size > TILE_MOST_OPTION_BYTES) return false;
    memcpy(given, options, given_size < size ? given_size : size);
    memcpy(given, &given_size, sizeof given_size);
    return true;
}

/* Is a caller's list valid: not NULL unless empty, and not too long? */
static inline bool tile_is_list(const void *items, size_t count) {
    return count <= TILE_MOST_LISTED && (items || !count);
}

#endif
