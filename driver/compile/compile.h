/* What tools need of the driver beyond the public API (include/tile/tile.h): how long the steps of a library's
 * compilations took, and which names are settings. */
#ifndef TILE_DRIVER_COMPILE_COMPILE_H
#define TILE_DRIVER_COMPILE_COMPILE_H

#include "lang/execute/execute.h"
#include "launch/image.h"
#include "tile/tile.h"

/* The steps of a compilation, in order, by which times are reported: one or more stages each. */
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

/* Does a kernel of the library have a generic, const, static or tune parameter of this name? Also true if memory runs
 * out. */
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
    TilePhaseEntry *entries; /* out: for each phase, the function that the launcher calls */
} TileForeignObject;

/* Runs code for other machines, under an emulator. */
typedef struct TileForeign {
    tile_status (*load)(void *state, const TileForeignObject *object);
    void *state;
} TileForeign;

/* For libraries that are compiled from now on: the emulator for code of targets that cannot run here (NULL: none, such
 * targets are refused), and the length of the scalable vectors that the executor emulates, in units of 128 bits (0: 1).
 * `foreign` is borrowed. Not while another thread compiles. */
void tile_compiler_emulate(TileCompiler *compiler, const TileForeign *foreign, unsigned vector_scale);
/* Likewise: the seed of the order in which the executor runs programs and threads; 0: one after the other. */
void tile_compiler_schedule(TileCompiler *compiler, uint64_t seed);
/* Likewise: the executor runs the programs of each phase of a CPU in so many ranges, as threads would; 0: in one. */
void tile_compiler_divide(TileCompiler *compiler, unsigned ranges);
/* Likewise: elements that a GPU's thread holds in addition to a tile's own, where a layout rounds an extent up, are
 * undefined in the executor, so that code whose results depend on them fails. */
void tile_compiler_mark_padding(TileCompiler *compiler, bool mark);
/* Likewise: the kernel that is of interest (NULL: all): warnings within other kernels, and within tests, are left out. The
 * name is borrowed. */
void tile_compiler_warn_of(TileCompiler *compiler, const char *kernel);
/* Likewise: after each pass, functions, parameters and values are renamed by the seed (0: they are not); at the end
 * symbols get their own names back. The code must be the same. */
void tile_compiler_rename(TileCompiler *compiler, uint64_t seed);
/* Likewise: these passes run after each pass of a target's pipeline but the last. Borrowed. */
struct TilePassInfo;
void tile_compiler_between(TileCompiler *compiler, const struct TilePassInfo *const *passes, size_t count);
/* Likewise: after the last. */
void tile_compiler_behind(TileCompiler *compiler, const struct TilePassInfo *const *passes, size_t count);
/* `hold` is called with true before a file of the cache or a reproducer is written, and with false afterwards, for
 * programs that signals may end. Not while another thread compiles. */
void tile_compiler_hold(TileCompiler *compiler, void (*hold)(bool held));
/* For libraries that are compiled from now on, in the interpreter: by how much each result may differ if sums are added
 * in another order, as the code of other targets does (lang/execute/execute.h, slack). Borrowed. `family`: the one
 * whose `tune` clauses count, "gpu"; NULL: CPUs. `has_tf32`: the setting allow_tf32 counts as it does there. */
typedef struct TileSlackMemory {
    const void *storage; /* that results lie in */
    size_t bytes, element;
    double *slack; /* for each element of the storage; set in launches */
} TileSlackMemory;
typedef struct TileSlack {
    const TileSlackMemory *items;
    size_t count;
    const char *family;
    bool has_tf32;
} TileSlack;
void tile_compiler_slack(TileCompiler *compiler, const TileSlack *slack); /* NULL: nothing is said */
/* Likewise, in the interpreter: who is told of each statement of the text that a launch executes
 * (lang/execute/execute.h). Borrowed; NULL: nobody. */
struct TileExecutionObserver;
void tile_compiler_observe(TileCompiler *compiler, const struct TileExecutionObserver *observer);
/* Operations (accesses and mask_lt) that the executor has run under a mask, in all launches of the library so far. */
TileMaskedCounts tile_library_masked(const TileLibrary *library);

#endif
