/* What the files of tilec tune share. */
#ifndef TILE_TOOLS_TUNE_H
#define TILE_TOOLS_TUNE_H

#include "driver/compile/tuned.h"
#include "tools/program.h"
#include "tools/tune_update.h"

typedef struct TileTuneOptions {
    const char *file; /* NULL: the search's own */
    double seconds;   /* limit on the whole search */
    uint64_t seed;
    bool again; /* ignore earlier measurements */
} TileTuneOptions;

/* tune_search.c: measures the points of the program's kernel. Returns an exit status. */
int tile_tune_search(TileProgram *program, const TileTuneOptions *options);

/* tune_file.c: the file, or the search's own if `given` is NULL; NULL if there is none. */
const char *tile_tune_path(TileArena *arena, const char *given);
/* The commands that measure nothing; each returns an exit status. `path` may be NULL if there is no file. */
int tile_tune_list(TileSession *session, const char *path);
int tile_tune_export(TileSession *session, const char *path, const char *to);
int tile_tune_import(TileSession *session, const char *path, const char *from, bool pin);
int tile_tune_forget(TileSession *session, const char *path, const char *kernel);

/* "1.234 ms" */
const char *tile_tune_time(TileArena *arena, double seconds);

#endif
