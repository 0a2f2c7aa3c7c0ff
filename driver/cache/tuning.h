/* Tuning files: the constants that `tilec tune` found best for a kernel, an instance of it, sizes and a device.
 *
 * Plain text. The first line names the format and its version; each other line is a row of fields separated by tabs, in
 * the order of TileTuningRow; lines that begin with `#` are for people. A line that is incomplete or no valid row is
 * ignored, and kept when the file is written. */
#ifndef TILE_DRIVER_CACHE_TUNING_H
#define TILE_DRIVER_CACHE_TUNING_H

#include <stdbool.h>

#include "base/list.h"
#include "base/string.h"

typedef struct TileTuningRow {
    /* The key: these five fields. */
    const char *kernel;
    const char *space;        /* names the tune clauses: a row with other clauses is for another kernel */
    const char *instance;     /* "T=f32 D=64": what arguments and settings decide; "-" for nothing */
    const char *shape;        /* "M<=1024 N<=64": each dimension that is not static, up to the next power of two; "-" */
    const char *device;       /* "avx512, Intel(R) Xeon(R), 2 threads"; or "avx512, *" for all that run such code */
    const char *constants;    /* "BM=64 BN=128" */
    double seconds;           /* median of a launch with these constants */
    double usual_seconds;     /* median of a launch with the default, in the same run */
    unsigned measured, total; /* points of the search, as "12/36" */
    bool pinned;              /* "pinned" or "-": no search replaces it */
} TileTuningRow;

typedef struct TileTuning {
    TileArena *arena;
    TILE_LIST(TileTuningRow) rows;
    TILE_LIST(const char *) others; /* lines that are no rows */
    unsigned bad_line;              /* number of the first of them that was meant as a row; 0: none */
} TileTuning;

/* Without tabs, which separate fields. */
const char *tile_tuning_clean(TileArena *arena, const char *text);

/* Adds the file's rows; a file that does not exist has none. On failure the message has the reason: TILE_IO;
 * TILE_INVALID_ARGUMENT where it is no tuning file, or one of an unknown version. */
tile_status tile_tuning_read(TileTuning *tuning, const char *path, TileText *message);
/* The same for a text in memory; `path` is for the message. */
tile_status tile_tuning_parse(TileTuning *tuning, const char *path, const char *text, size_t length, TileText *message);
/* The whole file. */
void tile_tuning_print(const TileTuning *tuning, TileText *text);

bool tile_tuning_same(const TileTuningRow *a, const TileTuningRow *b);
/* The row with this key, or NULL. */
TileTuningRow *tile_tuning_find(const TileTuning *tuning, const TileTuningRow *key);
/* Adds a row, or replaces the row with its key, unless that row is pinned and this one is not, or has measured more of
 * the same search. False where it is left out. */
bool tile_tuning_put(TileTuning *tuning, const TileTuningRow *row);

#endif
