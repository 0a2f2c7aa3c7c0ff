/* Do views share memory? Exact, also for strided views that interleave, as long as the search stays short. */
#ifndef TILE_LAUNCH_OVERLAP_H
#define TILE_LAUNCH_OVERLAP_H

#include "launch/argument.h"

typedef enum TileOverlap {
    TILE_OVERLAP_NONE,
    TILE_OVERLAP_SHARED,
    TILE_OVERLAP_UNDECIDED /* not decided within the search's limit */
} TileOverlap;

TileOverlap tile_views_overlap(const TileView *a, const TileView *b);
/* Do two different elements of the view share a byte? */
TileOverlap tile_view_overlaps_itself(const TileView *view);

#endif
