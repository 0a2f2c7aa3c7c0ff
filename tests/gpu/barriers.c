/* Does the emulator detect missing barriers? Reads a module whose functions are in machine form, removes its barriers
 * and other ops that order threads, one at a time, and runs the kernel under several schedules: at least one of them
 * has to end in a fault.
 *
 *    tile_barrier_tests MODULE.tir RUN NAME REVIEWED
 *
 * RUN is the argument of tile-opt's --run. REVIEWED lists barriers that need not be detected, with the reason: lines
 * `NAME NUMBER reason`, where the number counts the module's barriers from 1. A listed barrier that is detected, or
 * does not exist, is a failure, too. Prints a line for each failure and one in total. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/ir/text.h"
#include "lang/ir/verify.h"
#include "tools/tile_opt.h"
#include "tools/tile_run.h"

enum { SEEDS = 8 };

typedef struct Trial {
    TileArena *arena;
    TileContext *context;
    TileText source, reviewed;
    const char *run, *name;
    TileRunOutcome expected; /* with all barriers, threads scheduled round robin */
    unsigned barriers, listed, failures;
} Trial;

static void say(Trial *trial, const char *what, unsigned barrier, const char *detail) {
    printf("%s: barrier %u: %s%s%s\n", trial->name, barrier, what, *detail ? ": " : "", detail);
    trial->failures++;
}

/* ---- barriers ---- */

static bool is_barrier(const TileOp *op) {
    return op->id == TILE_OP_BARRIER || op->id == TILE_OP_WARP_BARRIER || op->id == TILE_OP_COPY_WAIT || op->id == TILE_OP_COPY_COMMIT ||
           op->id == TILE_OP_MBARRIER_ARRIVE || op->id == TILE_OP_MBARRIER_WAIT || op->id == TILE_OP_FENCE_ASYNC ||
           op->id == TILE_OP_STORE_COMMIT || op->id == TILE_OP_STORE_WAIT ||
           (tile_op_is_of_warpgroup((TileOpId)op->id) && op->id != TILE_OP_WGMMA);
}

static TileOp *find_in(TileBlock *block, unsigned *left) {
    for (TileOp *op = block->first; op; op = op->next) {
        if (is_barrier(op) && !--*left) return op;
        for (unsigned i = 0; i < op->region_count; i++) {
            TileOp *found = find_in(&op->regions[i], left);
            if (found) return found;
        }
    }
    return NULL;
}

/* The barrier with this number, counted from 1; NULL if there are fewer. */
static TileOp *find_barrier(TileModule *module, unsigned number) {
    for (TileFunc *func = module->first; func; func = func->next) {
        TileOp *found = find_in(&func->body, &number);
        if (found) return found;
    }
    return NULL;
}

static bool is_reviewed(const Trial *trial, unsigned number) {
    const char *entry = tile_arena_format(trial->arena, "\n%s %u ", trial->name, number);
    return strstr(tile_text_get(&trial->reviewed), entry) != NULL;
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

/* The module must not have the barrier. */
static void expect_noticed(Trial *trial, TileModule *module, unsigned number) {
    bool listed = is_reviewed(trial, number), noticed = false;
    for (uint64_t seed = 1; seed <= SEEDS && !noticed; seed++) {
        TileText notes = {.arena = trial->arena};
        TileRunOutcome outcome = {0};
        bool good = run_once(trial, module, seed, &outcome, &notes);
        noticed = outcome.state == TILE_EXECUTION_FAULT || outcome.state == TILE_EXECUTION_RACE ||
                  outcome.state == TILE_EXECUTION_UNDEFINED;
        if (!good && !noticed) say(trial, "taken out, no fault but other results", number, tile_text_get(&notes));
        if (noticed && listed) say(trial, "is listed as not needed, but", number, tile_text_get(&notes));
    }
    if (!noticed && !listed) say(trial, "taken out, and nothing is reported", number, "");
    trial->listed += listed;
}

static void try_barriers(Trial *trial) {
    for (unsigned number = 1;; number++) {
        TileModule *module = read_module(trial);
        TileOp *barrier = module ? find_barrier(module, number) : NULL;
        if (!barrier) {
            tile_module_destroy(module);
            return;
        }
        for (unsigned i = 0; i < barrier->result_count; i++) /* the sums of a wait for products */
            tile_value_replace(&barrier->results[i], tile_op_operand(barrier, i));
        tile_op_erase(barrier);
        expect_noticed(trial, module, number);
        tile_module_destroy(module);
        trial->barriers++;
    }
}

/* Lines of the list with barriers that the module does not have. */
static void expect_met(Trial *trial) {
    const char *start = tile_arena_format(trial->arena, "\n%s ", trial->name);
    const char *line = strstr(tile_text_get(&trial->reviewed), start);
    for (; line; line = strstr(line + 1, start)) {
        unsigned long number = strtoul(line + strlen(start), NULL, 10);
        if (!number || number > trial->barriers) say(trial, "is listed, but is not there", (unsigned)number, "");
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
    trial.source.arena = trial.reviewed.arena = trial.arena;
    tile_text_add(&trial.reviewed, "\n");
    if (!tile_opt_read_file(arguments[1], &trial.source, &errors) ||
        !tile_opt_read_file(arguments[4], &trial.reviewed, &errors)) {
        fputs(tile_text_get(&errors), stderr);
        return 2;
    }
    TileModule *module = read_module(&trial);
    if (module) expect_good(&trial, module);
    tile_module_destroy(module);
    if (!trial.failures) {
        try_barriers(&trial);
        expect_met(&trial);
    }
    printf("%s: %u barriers taken out, %u of them not needed, %u failures\n", trial.name, trial.barriers, trial.listed,
           trial.failures);
    tile_ir_context_destroy(trial.context);
    tile_arena_destroy(trial.arena);
    return trial.failures != 0;
}
