#include "tools/duel.h"

#include <math.h>
#include <string.h>

#include "tools/measure.h"

/* The probability that of `rounds` fair coin tosses at most `few` are heads. */
static double chance(int rounds, int few) {
    double term = ldexp(1, -rounds), sum = term;
    for (int i = 1; i <= few; i++) {
        term *= (double)(rounds - i + 1) / i;
        sum += term;
    }
    return sum;
}

TileVerdict tile_duel_verdict(double *ratios, int rounds) {
    const double surely = 1.0 / 200, apart = 0.005;
    int above = 0, below = 0;
    if (rounds < TILE_DUEL_LEAST) {
        for (int i = 0; i < rounds; i++) above += ratios[i] > 1.5;
        return rounds >= 3 && above == rounds ? TILE_VERDICT_SLOWER : TILE_VERDICT_OPEN; /* time spent for nothing */
    }
    for (int i = 0; i < rounds; i++) {
        above += ratios[i] > 1;
        below += ratios[i] < 1;
    }
    double median = tile_median(ratios, rounds);
    bool matters = fabs(median - 1) > apart;
    if (matters && median < 1 && chance(rounds, rounds - below) < surely) return TILE_VERDICT_FASTER;
    if (chance(rounds, rounds - above) < surely) return TILE_VERDICT_SLOWER;
    return rounds < TILE_DUEL_MOST ? TILE_VERDICT_OPEN : TILE_VERDICT_SAME;
}

/* The number of runs in a sample, estimated from the first runs but not the very first; 0 when it fails. */
static int find_repeats(const TileDuelist *duelist, double sample) {
    if (duelist->sample(duelist->state, 1) < 0) return 0;
    int repeats = 1;
    for (;;) {
        double seconds = duelist->sample(duelist->state, repeats);
        if (seconds < 0) return 0;
        if (seconds >= sample / 2 || repeats >= 1 << 20)
            return (int)(repeats * fmin(fmax(sample / (seconds + 1e-12), 1), 4));
        repeats *= 4;
    }
}

TileDuel tile_duel(const TileDuelist *holder, const TileDuelist *challenger, double sample, volatile const int *stop) {
    const TileDuelist *both[] = {holder, challenger};
    double times[2][TILE_DUEL_MOST], ratios[TILE_DUEL_MOST];
    int repeats[2], rounds = 0;
    TileDuel duel = {.verdict = TILE_VERDICT_OPEN};
    for (int i = 0; i < 2; i++) {
        repeats[i] = find_repeats(both[i], sample);
        if (!repeats[i]) return (TileDuel){.verdict = TILE_VERDICT_SAME, .failed = true};
    }
    while (duel.verdict == TILE_VERDICT_OPEN && !(stop && *stop)) {
        for (int k = 0; k < 2; k++) {
            int i = (rounds + k) % 2;
            times[i][rounds] = both[i]->sample(both[i]->state, repeats[i]) / repeats[i];
            if (times[i][rounds] < 0) return (TileDuel){.verdict = TILE_VERDICT_SAME, .failed = true};
        }
        rounds++;
        for (int i = 0; i < rounds; i++) ratios[i] = times[1][i] / (times[0][i] + 1e-15);
        duel.verdict = tile_duel_verdict(ratios, rounds);
    }
    if (duel.verdict == TILE_VERDICT_OPEN) duel.verdict = TILE_VERDICT_SAME;
    duel.ratio = rounds ? tile_median(ratios, rounds) : 1;
    for (int i = 0; i < 2; i++) duel.seconds[i] = rounds ? tile_median(times[i], rounds) : 0;
    return duel;
}
