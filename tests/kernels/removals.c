#include "removals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/compile/compile.h"
#include "lowering/pass.h"
#include "tests/gpu/removal.h"

enum { SCHEDULES = 8 };

/* What the pass below is to take out, counted through all functions that are compiled for a row, and what it was. A process runs
 * one row at a time. */
static struct Request {
    unsigned left;
    bool taken, probes; /* probes: an assertion that fails stands in front of the op instead */
    TileOpId id;
} request;

static TileResult take_out(TilePassContext *context, TileFunc *func) {
    TileOp *op = request.left ? removal_find(&func->body, &request.left) : NULL;
    if (!op) return TILE_RESULT_UNCHANGED;
    request.taken = true;
    request.id = (TileOpId)op->id;
    if (request.probes)
        removal_probe(context->module, op);
    else
        removal_erase(op);
    return TILE_RESULT_CHANGED;
}

static const TilePassInfo removal = {.name = "test-take-out",
                                     .doc = "takes an op out that orders threads",
                                     .stage = TILE_STAGE_TARGET,
                                     .input = TILE_FORM_MACHINE,
                                     .output = TILE_FORM_MACHINE,
                                     .run = take_out};

/* Number 0: with all ops. */
static bool run_without(Session *session, const Row *row, unsigned number, bool probes, uint64_t schedule, char *reason) {
    static const TilePassInfo *const passes[] = {&removal};
    request = (struct Request){.left = number, .probes = probes};
    session_forget(session);
    tile_compiler_behind(session_compiler(session), passes, 1);
    tile_compiler_schedule(session_compiler(session), schedule);
    bool good = session_run(session, row, reason);
    tile_compiler_behind(session_compiler(session), NULL, 0);
    tile_compiler_schedule(session_compiler(session), 0);
    return good;
}

/* Of the launch, not of the test that compares results. */
static bool is_report(const char *reason) { return strncmp(reason, "launch: ", 8) == 0; }

/* Does the row execute the op at all? */
static bool is_reached(Session *session, const Row *row, unsigned number, char *reason) {
    return !run_without(session, row, number, true, 0, reason) && strstr(reason, REMOVAL_PROBE);
}

/* False if there is no op with the number, or results are wrong without a report. What the row does not reach is counted in
 * `missed`. */
static bool try_without(Session *session, const Row *row, unsigned number, Removals *removals, unsigned *missed, TileText *unnoticed,
                        char *reason) {
    for (uint64_t schedule = 1; schedule <= SCHEDULES; schedule++) {
        bool good = run_without(session, row, number, false, schedule, reason);
        if (!request.taken) return reason[0] = 0, false;
        if (good) continue;
        if (is_report(reason)) return true;
        char why[MAX_REASON];
        snprintf(why, sizeof why, "%s", reason);
        snprintf(reason, MAX_REASON, "without op %u, %s, nothing is reported, but: %.1500s", number, tile_op_info(request.id)->mnemonic, why);
        return false;
    }
    TileOpId id = request.id;
    bool reached = is_reached(session, row, number, reason);
    *missed += !reached;
    removals->unnoticed[id] += reached;
    if (reached) tile_text_format(unnoticed, " %u (%s)", number, tile_op_info(id)->mnemonic);
    return true;
}

bool removals_run(Session *session, const Row *row, const char *list, char *reason) {
    for (uint64_t schedule = 0; schedule < 3; schedule++)
        if (!run_without(session, row, 0, false, schedule, reason)) return false;
    TileArena *arena = tile_arena_create(NULL);
    Removals removals = {0};
    TileText unnoticed = {.arena = arena}, report = {.arena = arena};
    unsigned number = 1, missed = 0;
    while (try_without(session, row, number, &removals, &missed, &unnoticed, reason)) number++;
    bool good = !reason[0];
    if (good) {
        const char *name = tile_arena_format(arena, "%s %s %s", row->kernel, row->types, row->target);
        unsigned listed = removals_compare(&removals, list, name, &report, &good);
        printf("%s: %u barriers taken out, %u of them not needed, %u not reached\n", name, number - 1, listed, missed);
        if (!good)
            snprintf(reason, MAX_REASON, "%snot noticed of %u:%s", tile_text_get(&report), number - 1, tile_text_get(&unnoticed));
    }
    tile_arena_destroy(arena);
    return good;
}

char *removals_read(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    ssize_t length = file ? getdelim(&text, &size, 0, file) : -1;
    if (file) fclose(file);
    char *list = length < 0 ? NULL : malloc((size_t)length + 2);
    if (list) snprintf(list, (size_t)length + 2, "\n%s", text);
    if (!list) fprintf(stderr, "%s cannot be read\n", path);
    free(text);
    return list;
}
