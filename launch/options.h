/* Option structs of any version: a caller built against an older header passes a shorter one. */
#ifndef TILE_LAUNCH_OPTIONS_H
#define TILE_LAUNCH_OPTIONS_H

#include <stdbool.h>
#include <string.h>

/* Copies the members that the caller knows over zeros. `given` begins with its own size; NULL is all zeros. False
 * where the size is that of no version. */
static inline bool tile_options_read(void *options, size_t size, const void *given) {
    size_t given_size = size;
    if (given) memcpy(&given_size, given, sizeof given_size);
    if (given && given_size == size) { /* mostly; of a size that the compiler knows */
        memcpy(options, given, size);
        return true;
    }
    memset(options, 0, size);
    if (!given) return true;
    if (given_size < sizeof(size_t)) return false;
    memcpy(options, given, given_size < size ? given_size : size);
    return true;
}

#endif
