/* Runs one compilation, from text to IR: with a stack, a unit and a guard against memory that runs out. */
#include <stdlib.h>

#include "base/stack.h"
#include "driver/compile/stages.h"
#include "launch/clock.h"

/* All that may run out of memory. */
static tile_status run_guarded(TileUnit *unit, tile_status (*body)(TileUnit *unit, void *state), void *state,
                               TileReport **report) {
    if (setjmp(unit->guard)) {
        unit->keep = false;
        return TILE_OUT_OF_MEMORY;
    }
    tile_arena_set_guard(unit->arena, &unit->guard);
    unit->context = tile_ir_context_create();
    if (!unit->context) return TILE_OUT_OF_MEMORY;
    tile_arena_set_guard(unit->context->arena, &unit->guard);
    unit->message.arena = unit->arena;
    tile_status status = tile_image_run(&(TileImageJob){.unit = unit}, TILE_IMAGE_PARSE);
    if (status == TILE_OK) status = body(unit, state);
    *report = tile_report_from_unit(unit);
    return status;
}

static tile_status run_once(TileInput *input, bool verify, tile_status (*body)(TileUnit *unit, void *state),
                            void *state, TileReport **report) {
    TileUnit *unit = calloc(1, sizeof *unit);
    if (!unit) return TILE_OUT_OF_MEMORY;
    unit->input = input;
    unit->verify = verify;
    unit->clock = tile_clock_ns();
    unit->arena = tile_arena_create(NULL);
    tile_status status = unit->arena ? run_guarded(unit, body, state, report) : TILE_OUT_OF_MEMORY;
    if (!unit->keep) {
        tile_unit_destroy(unit);
        return status;
    }
    tile_arena_set_guard(unit->arena, NULL);
    tile_arena_set_guard(unit->context->arena, NULL);
    tile_arena_set_guard(unit->module->arena, NULL);
    return status;
}

/* The arguments and results of tile_unit_run. */
typedef struct Run {
    TileInput *input;
    tile_status (*body)(TileUnit *unit, void *state);
    void *state;
    TileReport *report;
    tile_status status;
} Run;

static void run(void *state) {
    Run *run = state;
    bool verify = run->input->flags & TILE_COMPILE_DEBUG;
    run->status = run_once(run->input, verify, run->body, run->state, &run->report);
    if (run->status != TILE_INTERNAL || verify) return;
    tile_report_destroy(run->report); /* a compiler bug: run again with verification, to find the pass */
    run->report = NULL;
    run->status = run_once(run->input, true, run->body, run->state, &run->report);
}

tile_status tile_unit_run(TileInput *input, tile_status (*body)(TileUnit *unit, void *state), void *state,
                          TileReport **report) {
    Run given = {.input = input, .body = body, .state = state};
    if (!tile_stack_run(run, &given)) {
        given.status = TILE_OUT_OF_MEMORY;
        given.report = tile_report_from_text("there is no memory for a stack to compile on");
    }
    if (report)
        *report = given.report;
    else
        tile_report_destroy(given.report);
    return given.status;
}
