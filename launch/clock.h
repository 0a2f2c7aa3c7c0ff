/* A monotonic clock. */
#ifndef TILE_LAUNCH_CLOCK_H
#define TILE_LAUNCH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t tile_clock_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

#endif
