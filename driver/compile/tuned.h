/* Constants of tune clauses from tuning files: the rows for a library's kernels, and which of them serves the arguments
 * of a launch. */
#ifndef TILE_DRIVER_COMPILE_TUNED_H
#define TILE_DRIVER_COMPILE_TUNED_H

#include "driver/cache/tuning.h"
#include "driver/compile/unit.h"
#include "launch/argument.h"

enum { TILE_MAX_TUNED_SIZES = 16 };

/* A row, in the form that a launch compares. */
typedef struct TileTunedRow {
    uint8_t generics[TILE_MAX_GENERICS];
    int64_t statics[TILE_MAX_STATICS];
    uint8_t sizes[TILE_MAX_TUNED_SIZES]; /* upper bounds of the kernel's sizes, as exponents of 2 */
    const TileBinding *constants;
    size_t constant_count;
    TileSchedule schedule; /* of the model */
    const char *file; /* where it stands */
    uint64_t devices; /* set of device numbers that the row is for */
    bool pinned;
    bool predicted; /* by the target's model, in no file */
} TileTunedRow;

/* A dimension whose size is part of the key. */
typedef struct TileTunedSize {
    const char *name;
    uint16_t parameter, axis;
} TileTunedSize;

typedef struct TileTunedKernel {
    TileTunedSize sizes[TILE_MAX_TUNED_SIZES];
    uint32_t size_count;
    TILE_LIST(TileTunedRow) rows; /* those that win first */
} TileTunedKernel;

/* Fills in input->tuned for the kernels of the program, whose signatures exist; NULL if no row is for any of them. A
 * file that the settings name must be valid; of the search's own file, valid rows count. */
tile_status tile_tuned_load(TileUnit *unit, const TileProgramInfo *program);
/* The number, from 1, of the row that serves the arguments; 0: there is none. */
uint32_t tile_tuned_find(const TileInput *input, uint32_t kernel, const TileImageRequest *request,
                         const TileView *views);

/* Does nothing bind any name of the tune clauses for the input's target, of which there may be none? */
bool tile_tuned_is_free(const TileInput *input, const TileKernelInfo *kernel, const TileImageSignature *signature);
/* The points for these types, the default first, in the arena of the tree. */
tile_status tile_tuned_points(TileUnit *unit, const TileKernelInfo *kernel, const TileImageSignature *signature,
                              const uint8_t *generics, TileTunePoints *points);

/* The file of `tilec tune`, in the folder of the disk cache; NULL without a cache. */
const char *tile_tuned_path(const TileCodeCache *cache, TileArena *arena);

/* ---- for the search ---- */

/* The search space of a kernel for the arguments of a launch. */
typedef struct TileTunedSpace {
    TileTuningRow key;     /* its first five members */
    TileTunePoints points; /* the default first */
} TileTunedSpace;

/* In the arena. TILE_INVALID_ARGUMENT, with the reason in the error, where settings bind the names or nothing can be
 * tuned; other statuses as of tile_launch, for wrong arguments. */
tile_status tile_tuned_space(const TileLibrary *library, const TileKernel *kernel, const TileArg *arguments,
                             size_t count, TileArena *arena, TileTunedSpace *space, TileError *error,
                             TileReport **report);
#endif
