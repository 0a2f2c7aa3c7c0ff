/* Updates a tuning file that other processes may update concurrently: it is read, changed and replaced under a lock, so
 * that it is always complete. */
#ifndef TILE_TOOLS_TUNE_UPDATE_H
#define TILE_TOOLS_TUNE_UPDATE_H

#include "driver/cache/tuning.h"

typedef void (*TileTuneChange)(void *state, TileTuning *tuning);
tile_status tile_tune_update(TileArena *arena, const char *path, TileTuneChange change, void *state, TileText *error);

#endif
