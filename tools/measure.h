/* Interleaved timing: every candidate once in each round, so that a slow spell of the machine affects all of them. */
#ifndef TILE_TOOLS_MEASURE_H
#define TILE_TOOLS_MEASURE_H

#include <stdbool.h>

enum { TILE_MAX_CANDIDATES = 4, TILE_MAX_ROUNDS = 31 };

typedef struct TileCandidate {
    bool (*run)(void *state); /* does the work once; false when it fails */
    void *state;
    double seconds; /* median time of one run */
    double ratio;   /* median over the rounds of its time divided by the first candidate's */
} TileCandidate;

/* The clock: this thread's CPU time, which other processes do not disturb; or wall-clock time, which is right for work
 * in several threads or processes. */
typedef enum TileClock { TILE_CLOCK_OF_THREAD, TILE_CLOCK_ON_WALL } TileClock;

/* Seconds since some moment in the past. */
double tile_clock_now(TileClock clock);

/* Runs each candidate once untimed, then `rounds` rounds; a sample repeats the work for at least `sample` seconds.
 * False when a candidate fails. */
bool tile_measure(TileCandidate *candidates, int count, TileClock clock, int rounds, double sample);

double tile_median(double *values, int count);

#endif
