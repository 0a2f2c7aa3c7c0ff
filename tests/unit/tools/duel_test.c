/* Comparing two times: no verdict by chance, and none for irrelevant differences. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "tools/duel.h"

static uint64_t seed = 1;

static double noise(void) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (double)(seed >> 11) / 9007199254740992.0 - 0.5;
}

/* Rounds with ratios around `ratio`, plus or minus `noise`, until there is a verdict. */
static TileVerdict decide(double ratio, double spread, int *rounds) {
    double ratios[TILE_DUEL_MOST], sorted[TILE_DUEL_MOST];
    TileVerdict verdict = TILE_VERDICT_OPEN;
    for (*rounds = 0; verdict == TILE_VERDICT_OPEN; verdict = tile_duel_verdict(sorted, *rounds)) {
        cr_assert(*rounds < TILE_DUEL_MOST);
        ratios[(*rounds)++] = ratio + 2 * spread * noise();
        for (int i = 0; i < *rounds; i++) sorted[i] = ratios[i];
    }
    return verdict;
}

Test(duel, a_clear_difference_is_told_soon) {
    int rounds;
    cr_expect(decide(0.9, 0.02, &rounds) == TILE_VERDICT_FASTER && rounds == TILE_DUEL_LEAST);
    cr_expect(decide(1.1, 0.02, &rounds) == TILE_VERDICT_SLOWER && rounds == TILE_DUEL_LEAST);
    cr_expect(decide(3, 0.02, &rounds) == TILE_VERDICT_SLOWER && rounds == 3, "and much slower sooner: %d", rounds);
}

Test(duel, a_difference_within_the_noise_takes_longer) {
    int rounds, right = 0;
    for (int i = 0; i < 200; i++) right += decide(0.97, 0.06, &rounds) == TILE_VERDICT_FASTER;
    cr_expect(right > 150, "%d of 200", right);
}

Test(duel, equals_are_seldom_called_faster) {
    int rounds, wrong = 0;
    for (int i = 0; i < 1000; i++) wrong += decide(1, 0.05, &rounds) == TILE_VERDICT_FASTER;
    cr_expect(wrong < 60, "%d of 1000", wrong);
}

Test(duel, a_difference_that_does_not_matter_is_none) {
    int rounds;
    cr_expect(decide(0.998, 0.0005, &rounds) == TILE_VERDICT_SAME && rounds == TILE_DUEL_MOST);
}

/* ---- whole comparisons, with simulated times ---- */

typedef struct Worker {
    double seconds;
    int runs, fails_after;
} Worker;

static double work(void *state, int repeats) {
    Worker *worker = state;
    worker->runs += repeats;
    return worker->fails_after && worker->runs > worker->fails_after ? -1 : worker->seconds * repeats;
}

Test(duel, says_the_ratio_and_both_times) {
    Worker slow = {.seconds = 3e-6}, fast = {.seconds = 2e-6};
    TileDuelist holder = {work, &slow}, challenger = {work, &fast};
    TileDuel duel = tile_duel(&holder, &challenger, 1e-3, NULL);
    cr_expect(duel.verdict == TILE_VERDICT_FASTER && !duel.failed);
    cr_expect_float_eq(duel.ratio, 2.0 / 3, 1e-6);
    cr_expect_float_eq(duel.seconds[0], 3e-6, 1e-9);
    cr_expect_float_eq(duel.seconds[1], 2e-6, 1e-9);
    cr_expect(slow.runs > TILE_DUEL_LEAST * 100, "samples are long enough: %d runs", slow.runs);
}

Test(duel, ends_where_one_fails_or_it_is_told_to) {
    Worker good = {.seconds = 1e-3}, bad = {.seconds = 1e-3, .fails_after = 5}, other = {.seconds = 1e-3};
    TileDuelist holder = {work, &good}, challenger = {work, &bad}, same = {work, &other};
    const volatile int stop = 1;
    cr_expect(tile_duel(&holder, &challenger, 1e-3, NULL).failed);
    TileDuel duel = tile_duel(&holder, &same, 1e-3, &stop);
    cr_expect(duel.verdict == TILE_VERDICT_SAME && !duel.failed && other.runs < 5);
}
