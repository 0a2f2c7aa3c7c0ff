/* Calls of an observer, which may have one function of the two. */
#ifndef TILE_LAUNCH_OBSERVE_H
#define TILE_LAUNCH_OBSERVE_H

#include "tile/launch.h"

static inline void tile_observe_before(const TileObserver *observer, const TileLaunchEvent *event) {
    if (observer->before) observer->before(observer->host, event);
}

static inline void tile_observe_after(const TileObserver *observer, const TileLaunchEvent *event) {
    if (observer->after) observer->after(observer->host, event);
}

#endif
