/* Constants of tune clauses that come from tuning files: which rows are for a library's kernels, and which of them is
 * for the arguments of a launch. */
#ifndef TILE_DRIVER_COMPILE_TUNED_H
#define TILE_DRIVER_COMPILE_TUNED_H

#include "driver/cache/tuning.h"
#include "driver/compile/unit.h"
#include "launch/argument.h"

enum { TILE_MAX_TUNED_SIZES = 16 };

/* A row, as a launch compares it. */
typedef struct TileTunedRow {
    uint8_t generics[TILE_MAX_GENERICS];
    int64_t statics[TILE_MAX_STATICS];
    uint8_t sizes[TILE_MAX_TUNED_SIZES]; /* the powers of two that the kernel's sizes may be up to */
    const TileBinding *constants;
    size_t constant_count;
    const char *file; /* where it stands */
    uint64_t devices; /* a set of the numbers of those that it is for */
    bool pinned;
} TileTunedRow;

/* A dimension that sizes go by. */
typedef struct TileTunedSize {
    const char *name;
    uint16_t parameter, axis;
} TileTunedSize;

typedef struct TileTunedKernel {
    TileTunedSize sizes[TILE_MAX_TUNED_SIZES];
    uint32_t size_count;
    TILE_LIST(TileTunedRow) rows; /* those that win first */
} TileTunedKernel;

/* Fills in input->tuned for the kernels of the program, whose signatures are made; NULL where no row is for any of
 * them. A file that the settings name must be a good one; the search's own counts as far as it is good. */
tile_status tile_tuned_load(TileUnit *unit, const TileProgramInfo *program);
/* For TileImageSource. */
uint32_t tile_tuned_choose(void *input, uint32_t kernel, const TileImageRequest *request, const TileView *views);
/* The row of this number, which the request has; NULL for 0. */
const TileTunedRow *tile_tuned_row(const TileInput *input, uint32_t kernel, uint32_t number);

/* Where `tilec tune` keeps what it finds: beside the compiled code; NULL where nothing is kept. */
const char *tile_tuned_path(const TileCodeCache *cache, TileArena *arena);

/* ---- for the search ---- */

/* What can be tuned of a kernel for the arguments of a launch. */
typedef struct TileTunedSpace {
    TileTuningRow key;     /* its first five members */
    TileTunePoints points; /* the default first */
} TileTunedSpace;

/* In the arena. TILE_INVALID_ARGUMENT, and the error says why, where a setting has decided or nothing can be tuned; or
 * as tile_launch for wrong arguments. */
tile_status tile_tuned_space(const TileLibrary *library, const TileKernel *kernel, const TileArg *arguments,
                             size_t count, TileArena *arena, TileTunedSpace *space, TileError *error,
                             TileReport **report);
/* The row that a launch with these arguments takes, or NULL. */
const TileTunedRow *tile_tuned_for(const TileLibrary *library, const TileKernel *kernel, const TileArg *arguments,
                                   size_t count);

#endif
