/* An image as bytes: what an object made ahead of time carries, and libtile_launch reads when it is first called.
 *
 * Numbers are little endian and of the width of their members, lists and texts come after their lengths, so the bytes
 * are the same for every host. Phases have no entry in them: the entries stand apart, in the order of the phases. */
#ifndef TILE_LAUNCH_IMAGE_BYTES_H
#define TILE_LAUNCH_IMAGE_BYTES_H

#include "base/string.h"
#include "launch/image.h"

/* Changes whenever the bytes or the meaning of anything in them does. Operations of host programs go by their names: one
 * that is new changes nothing, and a library that does not know it takes the image for damaged. */
enum { TILE_IMAGE_VERSION = 13 };

/* Adds the bytes; the text's arena takes them. */
void tile_image_write(const TileImage *image, TileText *bytes);
/* Lists and texts lie in the arena, whose guard is set; binaries stay where they are in the bytes. TILE_INTERNAL where
 * the bytes are no image, or one that has not as many phases as there are entries. What was read can be run as it is:
 * host programs are sound, and all numbers of parameters and values are of some that are there. */
tile_status tile_image_read(TileArena *arena, const void *bytes, size_t size, const TilePhaseEntry *entries,
                            size_t entry_count, TileImage *image);

#endif
