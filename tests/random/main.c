/* Random programs of the language on each target, compared with an evaluator that shares no code with the compiler.
 *
 * usage: tile_random_tests [options] COUNT [SEED] [FIRST] programs FIRST .. FIRST + COUNT of the seed
 *  --targets=LIST  interp, avx2, ..; each program on all of them (interp,avx2,avx512,sm_80,sm_90a,sm_120a)
 *  --alternate         each program on one of them, alternately
 *  --jobs=N        N programs at once (as many as there are processors)
 *  --seconds=N     limit for one program on one target (60)
 *  --alone         in this process, and so without shortening failures: for tools that watch one process
 *  --print         the text of program FIRST
 *
 * A program that fails is shortened and written to random-<seed>-<number>-<target>.tile, with a description of the
 * failure. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kernels/guest.h"
#include "make.h"
#include "record.h"
#include "shorten.h"
#include "trial.h"

enum { MAX_TARGETS = 16, MAX_JOBS = 256, MAX_CODES = 64, SECONDS = 60 };

/* The number of programs rejected with this code. */
typedef struct Refusals {
    char code[40];
    uint64_t count;
} Refusals;

typedef struct Counts {
    uint64_t outcomes[MAX_TARGETS][OUTCOME_COUNT];
    uint64_t elements, unknown;
    Refusals refusals[MAX_CODES];
} Counts;

typedef struct Campaign {
    uint64_t seed, first, end;
    const Target *targets[MAX_TARGETS];
    int target_count;
    bool turns, alone;
    unsigned seconds;
    _Atomic uint64_t next; /* the next program to run */
    Counts counts[MAX_JOBS];
} Campaign;

static void count_refusal(Counts *counts, const char *code) {
    for (int i = 0; i < MAX_CODES; i++) {
        Refusals *refusals = &counts->refusals[i];
        if (refusals->count && strcmp(refusals->code, code) != 0) continue;
        snprintf(refusals->code, sizeof refusals->code, "%s", code);
        refusals->count++;
        return;
    }
}

static void write_failure(const Campaign *campaign, const Trial *trial, const Target *target, uint64_t number,
                          const Verdict *verdict) {
    char base[128];
    snprintf(base, sizeof base, "random-%llu-%llu-%s", (unsigned long long)campaign->seed, (unsigned long long)number,
             target->label);
    printf("FAIL program %llu on %s: %s\n     %s\n", (unsigned long long)number, target->label,
           outcome_words(verdict->outcome), verdict->words);
    record_write(trial->program, target, verdict, base);
    fflush(stdout);
}

static void try_on(Campaign *campaign, Counts *counts, Trial *trial, int number_of_target, uint64_t number,
                   bool *accepted, Verdict *shared) {
    const Target *target = campaign->targets[number_of_target];
    trial->schedule = target->threads && number % 3 ? number + 1 : 0;
    trial->ranges = number % 2 ? 3 : 0;
    trial_run(trial, target, shared);
    if (shared->outcome == OUTCOME_REFUSED && *accepted && !verdict_is_of_target(shared)) shared->outcome = OUTCOME_DISAGREED;
    Outcome outcome = shared->outcome;
    *accepted = *accepted || outcome == OUTCOME_SAME;
    counts->outcomes[number_of_target][outcome]++;
    counts->elements += (uint64_t)shared->elements;
    counts->unknown += (uint64_t)shared->unknown;
    if (outcome == OUTCOME_REFUSED) count_refusal(counts, shared->code);
    if (outcome == OUTCOME_REFUSED && getenv("TILE_RANDOM_VERBOSE"))
        printf("refused %llu: %s\n", (unsigned long long)number, shared->words);
    if (!outcome_is_bad(outcome)) return;
    Verdict verdict = *shared;
    if (!campaign->alone) shorten(trial, target, shared, &verdict);
    write_failure(campaign, trial, target, number, &verdict);
}

static void try_program(Campaign *campaign, Counts *counts, uint64_t number, Verdict *shared) {
    bool accepted = false;
    for (int i = 0; i < campaign->target_count; i++) {
        if (campaign->turns && (uint64_t)i != number % (uint64_t)campaign->target_count) continue;
        Trial trial = {
            .program = make_program(campaign->seed, number), .seconds = campaign->seconds, .alone = campaign->alone};
        try_on(campaign, counts, &trial, i, number, &accepted, shared);
        program_release();
    }
}

static void *share(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static bool work(Campaign *campaign, Counts *counts) {
    Verdict *shared = share(sizeof *shared);
    for (uint64_t i; shared && (i = campaign->next++) < campaign->end;) try_program(campaign, counts, i, shared);
    fflush(stdout);
    return shared != NULL;
}

/* True if all of them exit normally. */
static bool run_workers(Campaign *campaign, int jobs) {
    bool good = true;
    int status;
    for (int i = 0; i < jobs; i++) {
        fflush(stdout);
        pid_t worker = fork();
        if (worker < 0) return false;
        if (worker == 0) _exit(work(campaign, &campaign->counts[i]) ? 0 : 2);
    }
    while (wait(&status) > 0) good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return good;
}

static void add_counts(Counts *all, const Counts *more) {
    for (int t = 0; t < MAX_TARGETS; t++)
        for (int o = 0; o < OUTCOME_COUNT; o++) all->outcomes[t][o] += more->outcomes[t][o];
    all->elements += more->elements;
    all->unknown += more->unknown;
    for (int i = 0; i < MAX_CODES; i++)
        for (uint64_t k = 0; k < more->refusals[i].count; k++) count_refusal(all, more->refusals[i].code);
}

/* Checks the statistics: few programs are rejected, few numbers are unknown, and none is wrong. */
static bool report(Campaign *campaign, int jobs) {
    Counts *all = calloc(1, sizeof *all);
    uint64_t ran = 0, bad = 0, refused = 0, unjudged = 0;
    for (int i = 0; i < jobs && all; i++) add_counts(all, &campaign->counts[i]);
    if (!all) return false;
    for (int t = 0; t < campaign->target_count; t++) {
        printf("%-16s", campaign->targets[t]->label);
        for (int o = 0; o < OUTCOME_COUNT; o++) {
            uint64_t count = all->outcomes[t][o];
            if (count) printf(" %llu %s;", (unsigned long long)count, outcome_words((Outcome)o));
            ran += count;
            if (o == OUTCOME_REFUSED) refused += count;
            if (o == OUTCOME_UNDECIDED) unjudged += count;
            if (outcome_is_bad((Outcome)o)) bad += count;
        }
        printf("\n");
    }
    for (int i = 0; i < MAX_CODES; i++)
        if (all->refusals[i].count)
            printf("refused %6llu [%s]\n", (unsigned long long)all->refusals[i].count, all->refusals[i].code);
    double unknown = all->elements ? 100.0 * (double)all->unknown / (double)all->elements : 0;
    printf("random programs: %llu runs, %llu failed, %llu refused (%.1f %%), %llu not judged, of %.1f %% of %llu "
           "numbers nothing known\n",
           (unsigned long long)ran, (unsigned long long)bad, (unsigned long long)refused,
           ran ? 100.0 * (double)refused / (double)ran : 0, (unsigned long long)unjudged, unknown,
           (unsigned long long)all->elements);
    free(all);
    return bad == 0 && refused * 5 <= ran + 20 && unjudged * 20 <= ran + 40;
}

/* ---- the command line ---- */

static bool is_option(const char *argument, const char *name, const char **value) {
    size_t length = strlen(name);
    if (strncmp(argument, name, length) != 0) return false;
    *value = argument + length;
    return true;
}

static int choose_targets(Campaign *campaign, const char *list) {
    char words[400];
    snprintf(words, sizeof words, "%s", list);
    for (char *rest = words, *label; (label = strsep(&rest, ","));) {
        const Target *target = target_find(label);
        const char *why = "";
        if (!target || campaign->target_count == MAX_TARGETS) {
            fprintf(stderr, "tile_random_tests: no target `%s`\n", label);
            return 2;
        }
        if (!target_is_usable(target, &why)) {
            printf("SKIP %s: %s\n", label, why ? why : "not on this machine");
            if (target->guest_bits && guest_is_required()) return 1;
            continue;
        }
        campaign->targets[campaign->target_count++] = target;
    }
    return 0;
}

static int print_program(const Campaign *campaign) {
    static char text[MAX_TEXT], words[8192];
    Program *program = make_program(campaign->seed, campaign->first);
    if (!program_print(program, text, sizeof text)) return 1;
    record_describe(program, target_at(0), words, sizeof words);
    printf("%s%s", words, text);
    return 0;
}

int main(int count, char **arguments) {
    Campaign *campaign = share(sizeof *campaign);
    const char *value, *list = "interp,avx2,avx512,sm_80,sm_90a,sm_120a";
    long jobs = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t numbers[3] = {0, 1, 0};
    int given = 0;
    bool print = false;
    if (!campaign) return 2;
    campaign->seconds = SECONDS;
    for (int i = 1; i < count; i++) {
        if (is_option(arguments[i], "--targets=", &value))
            list = value;
        else if (is_option(arguments[i], "--jobs=", &value))
            jobs = strtol(value, NULL, 10);
        else if (is_option(arguments[i], "--seconds=", &value))
            campaign->seconds = (unsigned)strtoul(value, NULL, 10);
        else if (strcmp(arguments[i], "--alternate") == 0)
            campaign->turns = true;
        else if (strcmp(arguments[i], "--alone") == 0)
            campaign->alone = true;
        else if (strcmp(arguments[i], "--print") == 0)
            print = true;
        else if (arguments[i][0] != '-' && given < 3)
            numbers[given++] = strtoull(arguments[i], NULL, 10);
        else
            given = 4;
    }
    if (given < 1 || given > 3 || jobs < 1 || jobs > MAX_JOBS) {
        fprintf(stderr, "usage: tile_random_tests [--targets=LIST] [--alternate] [--jobs=N] [--seconds=N] [--alone] "
                        "[--print] COUNT [SEED] [FIRST]\n");
        return 2;
    }
    campaign->seed = numbers[1];
    campaign->first = campaign->next = numbers[2];
    campaign->end = campaign->first + numbers[0];
    if (print) return print_program(campaign);
    int status = choose_targets(campaign, list);
    if (status || !campaign->target_count) return status;
    bool good = campaign->alone ? work(campaign, &campaign->counts[0]) : run_workers(campaign, (int)jobs);
    if (!good) printf("a process that tries programs has died\n");
    return report(campaign, campaign->alone ? 1 : (int)jobs) && good ? 0 : 1;
}
