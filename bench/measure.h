/* Timing by turns: every candidate once in each round, so that a slow spell of the machine meets all of them. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>

enum { MAX_CANDIDATES = 3, MAX_ROUNDS = 31 };

typedef struct Candidate {
    bool (*run)(void *state); /* does the work once; false when it fails */
    void *state;
    double seconds; /* median time of one run */
    double ratio;   /* median over the rounds of its time divided by the first candidate's */
} Candidate;

/* What a second is: of this thread's processor time, which other processes do not disturb; or by the clock on the
 * wall, which is right for work in several threads or processes. */
typedef enum Clock { CLOCK_OF_THREAD, CLOCK_ON_WALL } Clock;

/* Runs each candidate once untimed, then `rounds` rounds; a sample repeats the work for at least `sample` seconds.
 * False when a candidate fails. */
bool measure(Candidate *candidates, int count, Clock clock, int rounds, double sample);

double measure_median(double *values, int count);

#endif
