/* Code that was compiled for other facts than its arguments have, as far as its guards allow: only what a variant
 * relies on may make a difference. */
#ifndef TILE_TESTS_KERNELS_GRANTED_H
#define TILE_TESTS_KERNELS_GRANTED_H

#include "tile/launch.h"

typedef enum Grant {
    GRANT_TRUTH,
    GRANT_ALL,    /* everything is contiguous and well aligned, as the compiler hears; what it relied on and does not
                   * hold is taken back, and it compiles anew */
    GRANT_NOTHING /* nothing is known of any argument */
} Grant;

/* From now on the library compiles so, and takes code for all arguments that its guards let through. False if out of
 * memory. */
bool grant_to_library(TileLibrary *library, Grant grant);

#endif
