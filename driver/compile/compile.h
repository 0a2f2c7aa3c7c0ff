/* What tools ask of the driver beyond the public API (include/tile/tile.h): where the time of a library's
 * compilations went, and which names are settings. */
#ifndef TILE_DRIVER_COMPILE_COMPILE_H
#define TILE_DRIVER_COMPILE_COMPILE_H

#include "launch/image.h"
#include "tile/tile.h"

/* The steps of a compilation, in order, as times are told: one or more stages each. */
typedef enum TileStep {
#define STEP(id, name) TILE_STEP_##id,
#include "driver/compile/stages.def"
    TILE_STEP_COUNT
} TileStep;

const char *tile_step_name(TileStep step);

typedef struct TileStepTimes {
    double seconds[TILE_STEP_COUNT];
} TileStepTimes;

/* Sums over everything compiled for the library so far. Thread safe. */
TileStepTimes tile_library_times(const TileLibrary *library);

/* Does a kernel of the library have a generic, const, static or tune parameter of this name? Yes where
 * memory does not suffice for the answer. */
bool tile_library_has_setting(const TileLibrary *library, const char *name);

/* ---- other machines, for tests ---- */

/* An object with the code of a kernel's grids. */
typedef struct TileForeignObject {
    const void *data;
    size_t size;
    const char *const *symbols; /* of the phases, TilePhaseEntry each */
    const TileImageCode *code;
    const TileImageSignature *signature;
    const TileImageRequest *request;
    TilePhaseEntry *entries; /* for each phase: what the launcher is to call here */
} TileForeignObject;

/* Runs code that this machine cannot run elsewhere: under an emulator. */
typedef struct TileForeign {
    tile_status (*load)(void *state, const TileForeignObject *object);
    void *state;
} TileForeign;

/* For libraries that are compiled from now on: where code of targets goes that cannot run here (NULL: nowhere, such
 * targets are refused), and how many times 128 bits the scalable vectors have that the executor emulates (0: 1).
 * `foreign` is borrowed. Not while another thread compiles. */
void tile_compiler_emulate(TileCompiler *compiler, const TileForeign *foreign, unsigned vector_scale);
/* Likewise: the seed of the order in which the executor runs programs and threads; 0: in turn. */
void tile_compiler_schedule(TileCompiler *compiler, uint64_t seed);
/* Likewise: in the executor what a GPU's thread holds beyond a tile's own elements, where a layout rounds an extent up,
 * is undefined, so that code in which a result depends on it ends with an error. */
void tile_compiler_mark_padding(TileCompiler *compiler, bool mark);
/* Likewise: functions, parameters and values have other names after each pass, made from the seed (0: their own), and
 * symbols their own at the end. Nothing of the code may differ. */
void tile_compiler_rename(TileCompiler *compiler, uint64_t seed);
/* Likewise: these passes run behind each pass of a target's pipeline but the last. Borrowed. */
struct TilePassInfo;
void tile_compiler_between(TileCompiler *compiler, const struct TilePassInfo *const *passes, size_t count);
/* Likewise: behind the last. */
void tile_compiler_behind(TileCompiler *compiler, const struct TilePassInfo *const *passes, size_t count);
/* `hold` is called with true before a file is written, of the cache or one that shows an error, and with false when it
 * is there: for programs that have signals end them. Not while another thread compiles. */
void tile_compiler_hold(TileCompiler *compiler, void (*hold)(bool held));
/* What the interpreter says of results of a library that is compiled from now on: by how much each may differ where sums
 * are added in another order, as the code of other targets does (lang/execute/execute.h, slack). Likewise borrowed. `family`:
 * whose `tune` clauses count, "gpu"; NULL: those of CPUs. */
typedef struct TileSlackMemory {
    const void *storage; /* that results lie in */
    size_t bytes, element;
    double *slack; /* for each element of the storage; set in launches */
} TileSlackMemory;
typedef struct TileSlack {
    const TileSlackMemory *items;
    size_t count;
    const char *family;
} TileSlack;
void tile_compiler_slack(TileCompiler *compiler, const TileSlack *slack); /* NULL: nothing is said */
/* How many operations the executor has run under a mask, in all launches of the library so far: accesses, and mask_lt.
 */
uint64_t tile_library_masked(const TileLibrary *library);

#endif
