/* Code compiled for other facts than its arguments have, as far as its guards allow: only facts that a variant relies
 * on may make a difference. */
#ifndef TILE_TESTS_KERNELS_GRANTED_H
#define TILE_TESTS_KERNELS_GRANTED_H

#include "tile/launch.h"

typedef enum Grant {
    GRANT_TRUTH,
    GRANT_ALL,    /* the compiler is told that everything is contiguous and well aligned; facts that it relied on and
                   * that do not hold are withdrawn, and it compiles again */
    GRANT_NOTHING /* no facts are given */
} Grant;

/* Makes the library compile in this way, and use code for all arguments that its guards accept. False if out of
 * memory. */
bool grant_to_library(TileLibrary *library, Grant grant);

#endif
