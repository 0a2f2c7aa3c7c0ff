/* How often this program allocated memory and took a mutex. */
#ifndef TILE_TESTS_LAUNCH_COUNTERS_H
#define TILE_TESTS_LAUNCH_COUNTERS_H

typedef struct CallCounts {
    unsigned long allocations, locks;
} CallCounts;

CallCounts count_calls(void);

#endif
