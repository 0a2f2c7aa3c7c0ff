/* Counts of this program's allocations and mutex locks. */
#ifndef TILE_TESTS_LAUNCH_COUNTERS_H
#define TILE_TESTS_LAUNCH_COUNTERS_H

typedef struct CallCounts {
    unsigned long allocations, locks;
} CallCounts;

CallCounts count_calls(void);

#endif
