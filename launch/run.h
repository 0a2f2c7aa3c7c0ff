/* A launch whose code is known: the memory of its temporaries, its slots, and the run of its phases. launch.c finds the
 * code; bound.c has found it before. */
#ifndef TILE_LAUNCH_RUN_H
#define TILE_LAUNCH_RUN_H

#include <pthread.h>

#include "launch/cuda.h"
#include "launch/print.h"
#include "launch/replay.h"
#include "launch/threads.h"

enum {
    TILE_LOCAL_VALUES = 128, /* values of the host program that need no memory of their own */
    TILE_LOCAL_SLOTS = 2 * TILE_REPLAY_SLOTS
};

typedef struct TileLaunchRun {
    TileKernel *kernel;
    TileVariant *variant;
    const TileImageCode *code;
    TileThreadPool *pool;
    TileError *error;
    TilePrinter printer; /* where lines go */
    TileView views[TILE_MAX_PARAMETERS];
    uint64_t *values;
    const uint64_t *slots;
    uint32_t slot_count;
    TileReplayed like;   /* what the launch comes to, also where an earlier one was like it */
    bool began;          /* a phase was run */
    bool provisional;    /* other code will serve such arguments once it is there */
    bool remembered;     /* the next such launch need not be looked at */
    uint64_t timed_from; /* 0: it is not timed */
    TileCudaStream on;   /* GPUs */
    void *device_temps;  /* GPUs: memory of the temporaries */
    TileScratch *memory; /* temporaries, and values and slots that are too many for the stack */
    uint64_t local_values[TILE_LOCAL_VALUES];
    uint64_t local_slots[TILE_LOCAL_SLOTS];
} TileLaunchRun;

/* Sets what the options say, and that nothing has run yet. TILE_OUT_OF_MEMORY; TILE_INVALID_ARGUMENT: a stream for a
 * CPU. */
tile_status tile_run_begin(TileLaunchRun *run, TileKernel *kernel, const TileLaunchOptions *options);
tile_status tile_run_out_of_memory(const TileLaunchRun *run);

/* Takes memory for temporaries and, where they are many, slots; fills the slots. */
tile_status tile_run_make_slots(TileLaunchRun *run);
/* The same, but temporaries get no memory of their own, and no address: for slots that are kept as a pattern. */
tile_status tile_run_make_slots_here(TileLaunchRun *run);
/* The number of programs of each phase that may be remembered, from the host program's values. */
tile_status tile_run_count_programs(TileLaunchRun *run);
/* Extents decide what a program costs: a number that is the same for the same extents, never 0. */
uint32_t tile_run_shape_key(TileLaunchRun *run);
/* The addresses that a GPU's driver is asked about; 0 where there is none. */
void tile_run_find_lows(const TileLaunchRun *run, uint64_t *lows);

/* GPUs: keeps the code that a graph captures. */
tile_status tile_run_note_capture(const TileKernel *kernel, TileVariant *variant, const TileCudaStream *on,
                                  TileError *error);

/* Runs a phase of a CPU that prints nothing and has no assertions. False: out of memory. */
bool tile_run_plain(TileThreadPool *pool, const TileImagePhase *phase, TilePhaseCost *cost, uint32_t shape_key,
                    const uint64_t *slots, int64_t programs);
/* Runs the phases, here or on the GPU. */
tile_status tile_run_phases(TileLaunchRun *run);
/* Gives back what tile_run_make_slots took. */
void tile_run_release(TileLaunchRun *run);

#endif
