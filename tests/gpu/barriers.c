/* Does the emulator detect missing barriers? Reads a module whose functions are in machine form, removes its barriers
 * and other ops that order threads, one at a time, and runs the kernel under several schedules: at least one of them
 * has to end in a fault.
 *
 *    tile_barrier_tests MODULE.tir RUN NAME REVIEWED
 *
 * RUN is the argument of tile-opt's --run. REVIEWED lists what need not be detected, with the reason: lines
 * `NAME OP COUNT reason`, how many ops of a kind. Fewer are a failure, too. Prints a line for each failure and one in
 * total. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/ir/text.h"
#include "lang/ir/verify.h"
#include "removal.h"
#include "tools/tile_opt.h"
#include "tools/tile_run.h"

enum { SEEDS = 8 };

typedef struct Trial {
    TileArena *arena;
    TileContext *context;
    TileText source, reviewed, unnoticed;
    const char *run, *name;
    TileRunOutcome expected; /* with all barriers, threads scheduled round robin */
    unsigned barriers, missed, failures; /* missed: the run does not reach them */
    Removals removals;
} Trial;

static void say(Trial *trial, const char *what, unsigned barrier, const char *detail) {
    printf("%s: barrier %u: %s%s%s\n", trial->name, barrier, what, *detail ? ": " : "", detail);
    trial->failures++;
}

/* The op that orders with this number, counted from 1; NULL if there are fewer. */
static TileOp *find_barrier(TileModule *module, unsigned number) {
    for (TileFunc *func = module->first; func; func = func->next) {
        TileOp *found = removal_find(&func->body, &number);
        if (found) return found;
    }
    return NULL;
}

/* ---- runs ---- */

static TileModule *read_module(Trial *trial) {
    TileText errors = {.arena = trial->arena};
    TileModule *module = NULL;
    tile_status status =
        tile_module_read(trial->context, tile_text_get(&trial->source), trial->source.length, &module, &errors);
    if (status == TILE_OK && tile_module_verify(module, &errors)) return module;
    printf("%s: %s", trial->name, tile_text_get(&errors));
    tile_module_destroy(module);
    trial->failures++;
    return NULL;
}

/* `notes` gets the reason if the run did not end as expected. */
static bool run_once(Trial *trial, TileModule *module, uint64_t seed, TileRunOutcome *outcome, TileText *notes) {
    TileRun *run = tile_run_create(trial->arena, module, trial->run, notes);
    if (!run) return false;
    if (!tile_run_execute(run, module, &(TileExecutorOptions){.seed = seed}, outcome, notes)) return false;
    return !seed || tile_run_same(run, &trial->expected, outcome, notes);
}

static void expect_good(Trial *trial, TileModule *module) {
    for (uint64_t seed = 0; seed <= SEEDS; seed++) {
        TileText notes = {.arena = trial->arena};
        TileRunOutcome outcome;
        if (!run_once(trial, module, seed, seed ? &outcome : &trial->expected, &notes))
            say(trial, "with all barriers in place", 0, tile_text_get(&notes));
    }
    if (trial->expected.state != TILE_EXECUTION_DONE) say(trial, "does not run to its end", 0, "");
}

/* Does the run execute the op at all? */
static bool is_reached(Trial *trial, unsigned number) {
    TileModule *module = read_module(trial);
    TileText notes = {.arena = trial->arena};
    TileRunOutcome outcome = {0};
    if (!module) return false;
    removal_probe(module, find_barrier(module, number));
    run_once(trial, module, 1, &outcome, &notes);
    tile_module_destroy(module);
    return outcome.state == TILE_EXECUTION_ASSERT;
}

/* The op was taken out of the module. */
static void try_without(Trial *trial, TileModule *module, unsigned number, TileOpId id) {
    bool noticed = false;
    for (uint64_t seed = 1; seed <= SEEDS && !noticed; seed++) {
        TileText notes = {.arena = trial->arena};
        TileRunOutcome outcome = {0};
        bool good = run_once(trial, module, seed, &outcome, &notes);
        noticed = outcome.state == TILE_EXECUTION_FAULT || outcome.state == TILE_EXECUTION_RACE ||
                  outcome.state == TILE_EXECUTION_UNDEFINED;
        if (!good && !noticed) say(trial, "taken out, no fault but other results", number, tile_text_get(&notes));
    }
    if (noticed) return;
    if (!is_reached(trial, number)) {
        trial->missed++;
        return;
    }
    trial->removals.unnoticed[id]++;
    tile_text_format(&trial->unnoticed, " %u (%s)", number, tile_op_info(id)->mnemonic);
}

static void try_barriers(Trial *trial) {
    for (unsigned number = 1;; number++) {
        TileModule *module = read_module(trial);
        TileOp *barrier = module ? find_barrier(module, number) : NULL;
        if (!barrier) {
            tile_module_destroy(module);
            return;
        }
        TileOpId id = (TileOpId)barrier->id;
        removal_erase(barrier);
        try_without(trial, module, number, id);
        tile_module_destroy(module);
        trial->barriers++;
    }
}

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: %s MODULE.tir RUN NAME REVIEWED\n", arguments[0]);
        return 2;
    }
    Trial trial = {.arena = tile_arena_create(NULL),
                   .context = tile_ir_context_create(),
                   .run = arguments[2],
                   .name = arguments[3]};
    TileText errors = {.arena = trial.arena};
    trial.source.arena = trial.reviewed.arena = trial.unnoticed.arena = trial.arena;
    tile_text_add(&trial.reviewed, "\n");
    if (!tile_opt_read_file(arguments[1], &trial.source, &errors) ||
        !tile_opt_read_file(arguments[4], &trial.reviewed, &errors)) {
        fputs(tile_text_get(&errors), stderr);
        return 2;
    }
    unsigned listed = 0;
    TileModule *module = read_module(&trial);
    if (module) expect_good(&trial, module);
    tile_module_destroy(module);
    if (!trial.failures) {
        try_barriers(&trial);
        TileText report = {.arena = trial.arena};
        bool good = true;
        listed = removals_compare(&trial.removals, tile_text_get(&trial.reviewed), trial.name, &report, &good);
        if (!good) trial.failures++;
        if (!good) printf("%snot noticed of %u:%s\n", tile_text_get(&report), trial.barriers, tile_text_get(&trial.unnoticed));
    }
    printf("%s: %u barriers taken out, %u of them not needed, %u not reached, %u failures\n", trial.name, trial.barriers, listed,
           trial.missed, trial.failures);
    tile_ir_context_destroy(trial.context);
    tile_arena_destroy(trial.arena);
    return trial.failures != 0;
}
