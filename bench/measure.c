#include "bench/measure.h"

#include <stdlib.h>
#include <time.h>

static double now_by(Clock clock) {
    struct timespec now;
    clock_gettime(clock == CLOCK_OF_THREAD ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double measure_median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Seconds of one run, or a negative number. */
static double sample_once(Candidate *candidate, Clock clock, int repeats) {
    double start = now_by(clock);
    for (int i = 0; i < repeats; i++)
        if (!candidate->run(candidate->state)) return -1;
    return (now_by(clock) - start) / repeats;
}

bool measure(Candidate *candidates, int count, Clock clock, int rounds, double sample) {
    double times[MAX_CANDIDATES][MAX_ROUNDS], ratios[MAX_CANDIDATES][MAX_ROUNDS];
    int repeats[MAX_CANDIDATES];
    if (rounds > MAX_ROUNDS) rounds = MAX_ROUNDS;
    for (int i = 0; i < count; i++) {
        if (sample_once(&candidates[i], clock, 1) < 0) return false;
        double once = sample_once(&candidates[i], clock, 1);
        repeats[i] = once < sample ? (int)(sample / (once + 1e-9)) + 1 : 1;
    }
    for (int round = 0; round < rounds; round++)
        for (int turn = 0; turn < count; turn++) {
            int i = (round + turn) % count;
            times[i][round] = sample_once(&candidates[i], clock, repeats[i]);
            if (times[i][round] < 0) return false;
        }
    for (int i = 0; i < count; i++) {
        for (int round = 0; round < rounds; round++) ratios[i][round] = times[i][round] / times[0][round];
        candidates[i].ratio = measure_median(ratios[i], rounds);
        candidates[i].seconds = measure_median(times[i], rounds);
    }
    return true;
}
