/* Compares two candidates for the same work: which is faster, and is that significant? They run alternately, so that a
 * slow spell of the machine affects both. */
#ifndef TILE_TOOLS_DUEL_H
#define TILE_TOOLS_DUEL_H

#include <stdbool.h>

enum { TILE_DUEL_LEAST = 8, TILE_DUEL_MOST = 40 }; /* rounds */

typedef struct TileDuelist {
    /* Does the work so many times, and returns the seconds of all of it; negative when it fails. */
    double (*sample)(void *state, int repeats);
    void *state;
} TileDuelist;

typedef enum TileVerdict {
    TILE_VERDICT_OPEN, /* more rounds may tell */
    TILE_VERDICT_SAME, /* no difference that matters, or none that is significant */
    TILE_VERDICT_FASTER,
    TILE_VERDICT_SLOWER
} TileVerdict;

/* `ratios`: of each round so far, the challenger's time divided by the other's. Faster or slower by the sign test: so
 * many rounds on one side have a probability of less than 1/200. Sorts them. */
TileVerdict tile_duel_verdict(double *ratios, int rounds);

typedef struct TileDuel {
    TileVerdict verdict; /* never OPEN */
    double ratio;        /* the median */
    double seconds[2];   /* medians of one run: the holder's, the challenger's */
    bool failed;         /* one of them did */
} TileDuel;

/* Rounds until the verdict stands. A sample takes `sample` seconds or longer. `stop` (may be NULL): ends it early,
 * and the verdict is SAME. */
TileDuel tile_duel(const TileDuelist *holder, const TileDuelist *challenger, double sample, volatile const int *stop);

#endif
