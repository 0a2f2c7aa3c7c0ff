#include "tools/measure.h"

#include <stdlib.h>
#include <time.h>

double tile_clock_now(TileClock clock) {
    struct timespec now;
    clock_gettime(clock == TILE_CLOCK_OF_THREAD ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double tile_median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Seconds of one run, or a negative number. */
static double sample_once(TileCandidate *candidate, TileClock clock, int repeats) {
    double start = tile_clock_now(clock);
    for (int i = 0; i < repeats; i++)
        if (!candidate->run(candidate->state)) return -1;
    return (tile_clock_now(clock) - start) / repeats;
}

bool tile_measure(TileCandidate *candidates, int count, TileClock clock, int rounds, double sample) {
    double times[TILE_MAX_CANDIDATES][TILE_MAX_ROUNDS], ratios[TILE_MAX_CANDIDATES][TILE_MAX_ROUNDS];
    int repeats[TILE_MAX_CANDIDATES];
    if (rounds > TILE_MAX_ROUNDS) rounds = TILE_MAX_ROUNDS;
    for (int i = 0; i < count; i++) {
        if (sample_once(&candidates[i], clock, 1) < 0) return false;
        double once = sample_once(&candidates[i], clock, 1);
        repeats[i] = once < sample ? (int)(sample / (once + 1e-9)) + 1 : 1;
    }
    for (int round = 0; round < rounds; round++)
        for (int k = 0; k < count; k++) {
            int i = (round + k) % count;
            times[i][round] = sample_once(&candidates[i], clock, repeats[i]);
            if (times[i][round] < 0) return false;
        }
    for (int i = 0; i < count; i++) {
        for (int round = 0; round < rounds; round++) ratios[i][round] = times[i][round] / times[0][round];
        candidates[i].ratio = tile_median(ratios[i], rounds);
        candidates[i].seconds = tile_median(times[i], rounds);
    }
    return true;
}
